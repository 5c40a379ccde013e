"""Whether an execution plan changes what is learnt: figure 9 of MLSys'25.

The same training under several plans; how far their losses are apart, beside how far another seed
of the same plan is. Published labels confuse two plans; here a plan is called by its degrees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError, quote
from windtunnel.throughput.plans import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

#: Steps that a difference is the mean over, and steps looked at, as published.
WINDOW, STEPS = 25, 3000


@dataclass(frozen=True, eq=False)
class LossDifference:
    """How far one run's loss is from that of the reference.

    Attributes:
        run: the run's name in the file.
        title: its degrees in words; a name that is no plan stands as it is.
        differences: mean absolute difference of each window, shape (windows,), in order of steps.
    """

    run: str
    title: str
    differences: npt.NDArray[np.float64]

    @property
    def mean(self) -> float:
        """The mean over all windows."""
        return float(self.differences.mean())


def loss_differences(
    losses: Mapping[str, npt.NDArray[np.float64]],
    reference: str,
    *,
    window: int = WINDOW,
    steps: int = STEPS,
) -> tuple[LossDifference, ...]:
    """Return the difference of every run from one of them.

    Args:
        losses: run -> loss of each step, shape (steps,), all of one length.
        reference: the run that the others are compared with.
        window: steps that are averaged over; a rest that fills no window is left out.
        steps: steps looked at, from the first on.

    Raises:
        SpecError: an unknown reference, no other run, or fewer steps than one window.

    >>> runs = {"181": np.array([1.0, 1.0]), "811": np.array([0.5, 2.0])}
    >>> loss_differences(runs, "181", window=2)[0].mean
    0.75
    """
    if reference not in losses:
        raise SpecError.unknown("--reference", reference, losses)
    if len(losses) < 2:  # noqa: PLR2004 - the reference and one to compare
        raise SpecError("losses", f"found only {quote(reference)}; expected another run beside it.")
    count = min(steps, len(losses[reference])) // window
    if count < 1:
        have = min(steps, len(losses[reference]))
        raise SpecError("--window", f"found {window}; expected at most the {have} steps there are.")
    base = losses[reference][: count * window]
    return tuple(
        LossDifference(
            run,
            title_of(run),
            np.abs(values[: count * window] - base).reshape(count, window).mean(axis=1),
        )
        for run, values in losses.items()
        if run != reference
    )


def title_of(run: str) -> str:
    """Return a run's plan in words.

    >>> title_of("241"), title_of("181_seed")
    ('241: pipeline 2, tensor 4, data 1', '181 (seed): pipeline 1, tensor 8, data 1')
    """
    word, _, rest = run.partition("_")
    try:
        plan = Plan.parse(word)
    except SpecError:
        return run
    name = plan.name + f" ({rest})" * bool(rest)
    if plan.num_gpus is None:
        return name
    pipeline, tensor, data = plan.degrees(plan.num_gpus)
    return f"{name}: pipeline {pipeline}, tensor {tensor}, data {data}"
