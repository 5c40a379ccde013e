"""``windtunnel energy``: batch sizes and power limits of training that recurs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.group import LazyGroup
from windtunnel.cli.options import debug_option

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from windtunnel.energy.optimum import Configuration
    from windtunnel.energy.workload import Workload

    Command = TypeVar("Command", bound=Callable[..., Any])


@click.group(
    cls=LazyGroup,
    homes={
        "optimum": "windtunnel.cli.energy_optimum",
        "simulate": "windtunnel.cli.energy_simulate",
        "groups": "windtunnel.cli.energy_groups",
    },
    short_help="Batch sizes and power limits of recurring training.",
)
@debug_option
def energy() -> None:
    """Tell what batch size and power limit recurring training jobs should use, and who finds them.

    Measurements are the Zeus artifact's (NSDI'23), your own in the same columns (--data), or made
    up (--workload synthetic).
    """


class Factor(click.ParamType):  # type: ignore[type-arg] # generic from click 8.5 on
    """A number greater than 0, infinity included."""

    name = "factor"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number.

        Raises:
            click.BadParameter: it is none, or not greater than 0.
        """
        try:
            number = float(value)
        except ValueError:
            number = 0.0
        if not number > 0:
            self.fail(f"found {value!a}; expected a number > 0, or inf.", param, ctx)
        return number


def data_options(command: Command) -> Command:
    """Add where measurements are and of which GPU: ``--data`` and ``--gpu``."""
    for add in (
        click.option(
            "--data",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Folder with summary_train.csv and summary_power_GPU.csv.  [default: the "
            "published ones, downloaded once]",
        ),
        click.option(
            "--gpu",
            default="v100",
            show_default=True,
            metavar="GPU",
            help="Kind of GPU: v100, a40, p100, rtx6000, or one of --data's.",
        ),
    ):
        command = add(command)
    return command


def workload_options(command: Command) -> Command:
    """Add a workload and what may be changed about it."""
    for add in (
        click.option(
            "--default-batch-size",
            type=click.IntRange(min=1),
            metavar="B",
            help="Batch size to start from.  [default: the paper's, cut to the GPU's largest]",
        ),
        click.option(
            "--max-epochs",
            type=click.IntRange(min=1),
            metavar="N",
            help="Epochs after which a run has failed.  [default: the paper's]",
        ),
        click.option(
            "--target",
            type=float,
            metavar="X",
            help="Validation metric to reach.  [default: the paper's]",
        ),
        data_options,
        click.option(
            "--workload",
            required=True,
            metavar="NAME",
            help="cifar100, imagenet, librispeech, movielens-1m, squad, sentiment140, a dataset of "
            "--data's (or DATASET/NETWORK/OPTIMIZER), or synthetic.",
        ),
    ):
        command = add(command)
    return command


def eta_option(command: Command) -> Command:
    """Add the weight of energy against time."""
    return click.option(
        "--eta",
        type=click.FloatRange(0, 1),
        default=0.5,
        show_default=True,
        metavar="X",
        help="Weight of energy: 0 = only time counts, 1 = only energy.",
    )(command)


def tuning_options(command: Command) -> Command:
    """Add what a simulation of optimisers takes."""
    for add in (
        click.option(
            "--power-limits",
            default="jit",
            show_default=True,
            metavar="NAME",
            help="Who chooses power limits: jit (profiles in the first epoch; jit:by=energy), "
            "known, largest, or pkg.mod:name.",
        ),
        click.option(
            "--beta",
            type=Factor(),
            default=2.0,
            show_default=True,
            metavar="X",
            help="Stop a run at so many times the lowest cost so far; inf = never.",
        ),
        eta_option,
    ):
        command = add(command)
    return command


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
        "name": workload.name,
        "gpu": workload.gpu,
        "dataset": job.dataset,
        "network": job.network,
        "optimizer": job.optimizer,
        "target_metric": job.target_metric,
        "max_epochs": job.max_epochs,
        "default_batch_size": workload.default_batch_size,
        "max_power_w": workload.max_power_w,
        "batch_sizes": list(workload.batch_sizes),
        "feasible_batch_sizes": list(workload.feasible_batch_sizes),
        "power_limits": list(workload.power_limits),
    }


def configuration_data(found: Configuration) -> dict[str, Any]:
    """Return a configuration as plain data.

    Keys: ``batch_size``, ``power_limit`` (W), ``feasible``, ``mean_epochs``, ``tta_s``, ``eta_j``,
    ``cost_j``.
    """
    return {
        "batch_size": found.batch_size,
        "power_limit": found.power_limit,
        "feasible": found.feasible,
        "mean_epochs": found.mean_epochs,
        "tta_s": found.tta_s,
        "eta_j": found.eta_j,
        "cost_j": found.cost_j,
    }


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
