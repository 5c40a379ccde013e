"""``windtunnel energy``: batch sizes and power limits of training that recurs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import COUNT, FILE, Parsed, lazy_group, option, together
from windtunnel.plain import fields_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from windtunnel.energy.optimum import Configuration
    from windtunnel.energy.workload import Workload

    Command = TypeVar("Command", bound=Callable[..., Any])


@lazy_group(
    "Batch sizes and power limits of recurring training.",
    optimum="energy_optimum",
    simulate="energy_simulate",
    groups="energy_groups",
)
def energy() -> None:
    """Tell what batch size and power limit recurring training jobs should use, and who finds them.

    Measurements are the Zeus artifact's (NSDI'23), your own in the same columns (--data), or made
    up (--workload synthetic).
    """


def _factor(word: str) -> float:
    """Return a number greater than 0, infinity included."""
    try:
        number = float(word)
    except ValueError:
        number = 0.0
    if not number > 0:
        raise ValueError(f"found {word!a}; expected a number > 0, or inf.")
    return number


#: Add where measurements are and of which GPU: ``--data`` and ``--gpu``.
data_options = together(
    option(
        "--gpu GPU", "Kind of GPU: v100, a40, p100, rtx6000, or one of --data's.", default="v100"
    ),
    option(
        "--data DIR",
        "Folder with summary_train.csv and summary_power_GPU.csv.  [default: the "
        "published ones, downloaded once]",
        FILE,
    ),
)


#: Add a workload and what may be changed about it.
workload_options = together(
    option(
        "--workload NAME",
        "cifar100, imagenet, librispeech, movielens-1m, squad, sentiment140, a dataset of "
        "--data's (or DATASET/NETWORK/OPTIMIZER), or synthetic.",
        required=True,
    ),
    data_options,
    option("--target X", "Validation metric to reach.  [default: the paper's]", float),
    option("--max-epochs N", "Epochs after which a run has failed.  [default: the paper's]", COUNT),
    option(
        "--default-batch-size B",
        "Batch size to start from.  [default: the paper's, cut to the GPU's largest]",
        COUNT,
    ),
)


def eta_option(command: Command) -> Command:
    """Add the weight of energy against time."""
    return option(
        "--eta X",
        "Weight of energy: 0 = only time counts, 1 = only energy.",
        click.FloatRange(0, 1),
        default=0.5,
    )(command)


#: Add what a simulation of optimisers takes.
tuning_options = together(
    eta_option,
    option(
        "--beta X",
        "Stop a run at so many times the lowest cost so far; inf = never.",
        Parsed("factor", _factor),
        default=2.0,
    ),
    option(
        "--power-limits NAME",
        "Who chooses power limits: jit (profiles in the first epoch; jit:by=energy), "
        "known, largest, or pkg.mod:name.",
        default="jit",
    ),
)


def opened(asked: dict[str, Any]) -> Workload:
    """Take the options of `workload_options` out of ``asked``; return the workload."""
    from windtunnel.energy.open import open_workload

    return open_workload(
        asked.pop("workload"),
        asked.pop("gpu"),
        data=asked.pop("data"),
        target_metric=asked.pop("target"),
        max_epochs=asked.pop("max_epochs"),
        default_batch_size=asked.pop("default_batch_size"),
    )


def workload_data(workload: Workload) -> dict[str, Any]:
    """Return a workload as plain data.

    Keys: ``name``, ``gpu``, ``dataset``, ``network``, ``optimizer``, ``target_metric``,
    ``max_epochs``, ``default_batch_size``, ``max_power_w``, ``batch_sizes``,
    ``feasible_batch_sizes``, ``power_limits`` (W).
    """
    job = workload.job
    return {
        **fields_of(workload, "name", "gpu"),
        **fields_of(job, "dataset", "network", "optimizer", "target_metric", "max_epochs"),
        **fields_of(workload, "default_batch_size", "max_power_w"),
        **fields_of(workload, "batch_sizes", "feasible_batch_sizes", "power_limits"),
    }


def configuration_data(found: Configuration) -> dict[str, Any]:
    """Return a configuration as plain data.

    Keys: ``batch_size``, ``power_limit`` (W), ``feasible``, ``mean_epochs``, ``tta_s``, ``eta_j``,
    ``cost_j``.
    """
    names = ("batch_size", "power_limit", "feasible", "mean_epochs", "tta_s", "eta_j", "cost_j")
    return fields_of(found, *names)


def joules(energy: float) -> str:
    """Return an energy with four digits, in the unit that suits it.

    >>> joules(28477.86), joules(3.6e9), joules(512.0)
    ('28.48 kJ', '3.600 GJ', '512.0 J')
    """
    if math.isnan(energy):  # a default that misses its target
        return "\u2013"
    unit, size = next(
        (found for found in (("GJ", 1e9), ("MJ", 1e6), ("kJ", 1e3)) if energy >= found[1]),
        ("J", 1.0),
    )
    whole = len(f"{energy / size:.0f}")
    return f"{energy / size:,.{max(0, 4 - whole)}f} {unit}"
