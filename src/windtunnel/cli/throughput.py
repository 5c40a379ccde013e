"""``windtunnel throughput``: how fast training runs, by plan and GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.group import LazyGroup
from windtunnel.cli.options import debug_option

if TYPE_CHECKING:
    from windtunnel.throughput.options import Option
    from windtunnel.throughput.training import TrainingModel


@click.group(
    cls=LazyGroup,
    homes={
        "curve": "windtunnel.cli.throughput_curve",
        "allocate": "windtunnel.cli.throughput_curve",
        "plan": "windtunnel.cli.throughput_losses",
        "fit": "windtunnel.cli.throughput_fit",
        "errors": "windtunnel.cli.throughput_errors",
        "losses": "windtunnel.cli.throughput_losses",
    },
    short_help="How fast training runs, by execution plan and GPUs.",
)
@debug_option
def throughput() -> None:
    """Tell how fast a model trains under each execution plan, and what more GPUs would bring it.

    MODEL is one of those that Morphling's authors measured (vit, roberta, bert, t5, gpt2, llama7,
    llama30, t5_3B, llama7b_bsz16) or a file that windtunnel throughput fit wrote.
    """


def opened(text: str) -> TrainingModel:
    """Return the model that the user named: one that comes with us, or a file.

    Raises:
        SpecError: no such model.
        TraceError: the file is no training model.
    """
    from windtunnel.throughput.model_file import read_model
    from windtunnel.throughput.morphling_models import training_model

    if text.lower().endswith(".json"):
        return read_model(text)
    return training_model(text)


def option_data(option: Option) -> dict[str, Any]:
    """Return an option as plain data."""
    from windtunnel.throughput.options import placement_name

    return {
        "num_gpus": option.num_gpus,
        "plan": option.plan.name,
        "placement": placement_name(option.shape),
        "num_cpus": option.num_cpus,
        "iteration_time": option.iteration_time,
        "measured": option.measured,
    }
