"""Fitting the analytic model to a few profiled points (MLSys'25, section 5.1, and its artifact).

Minimised by L-BFGS-B with exact gradients within the published bounds, from the published start,
to the precision of the numbers: the library's own tolerances stop gpt2 0.1 points of error early.
The objective has a kink wherever a phase is explained without error, and descent may end there;
``refine`` goes round it by the squares of the errors. The result is a function of the points alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.throughput.analytic import Bandwidths, Parameters
from windtunnel.throughput.objective import SCALE, Objective

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.throughput.tables import ProfiledPoint

#: Where the published fit begins; the overlap is moved to its bound.
START = (1.5, 0.1, 0.001, 1.0, 1.0, 1.0, 1.0)
_TINY = 1e-8
_INF = float("inf")
#: The published bounds of each parameter.
BOUNDS = (
    (1.0, 10.0),
    (1.0, _INF),
    (_TINY, _INF),
    (_TINY, _INF),
    (_TINY, _INF),
    (0.0, _INF),
    (0.0, _INF),
)
#: Backward over forward time where no phase was measured that tells them apart.
USUAL_K_BWD = 2.0
#: Where the fit of a bandwidth begins and what it may reach, in its own unit.
_START_EXTRA = {"pcie": SCALE / 16, "nvlink": 1.0}
_BOUNDS_EXTRA = (1e-3, 1e4)
#: Above, communication and backward overlap perfectly to 0.01 %.
_SANE_OVERLAP = 1e4
#: Starts tried where the overlap runs off; gpt2's does from about half of them.
_ATTEMPTS = 12
_PRECISE = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 2_000, "maxfun": 4_000}


@dataclass(frozen=True, slots=True)
class Fit:
    """What a fit found.

    Attributes:
        parameters: the seven parameters.
        bandwidths: GB/s, given or fitted; None where no point depends on one that is not given.
        forward_time: seconds of the forward pass of the global batch on one GPU: given by the
            points, or fitted.
        objective: the sum of errors that was reached.
        on_bounds: parameters that ended on a bound: the points do not determine them.
        fitted_too: what was fitted beside the parameters because it was not given.
    """

    parameters: Parameters
    bandwidths: Bandwidths | None
    forward_time: float
    objective: float
    on_bounds: tuple[str, ...]
    fitted_too: tuple[str, ...]


def fit(
    points: Sequence[ProfiledPoint],
    *,
    theta: float,
    pcie: float | None = None,
    nvlink: float | None = None,
    refine: bool = False,
) -> Fit:
    """Return the parameters that explain profiled points best.

    Args:
        points: at least one, of data-parallel plans on one node.
        theta: parameters / 2^20.
        pcie: GB/s between a GPU and its CPUs; None = fitted.
        nvlink: GB/s between the GPUs of a node; None = fitted.
        refine: descend from the best squares, too, and keep the better end. The published fits
            did not: gpt2's is then another one, with other errors.

    Raises:
        SpecError: scipy is missing, or there are no points.
    """
    if not points:
        raise SpecError("points", "found none of a data-parallel plan on one node to fit to.")
    minimize = scipy_optimize().minimize
    objective = Objective(points, theta=theta, pcie=pcie, nvlink=nvlink)
    start, bounds = _box(objective, points)
    how = {"jac": True, "method": "L-BFGS-B", "bounds": bounds, "options": _PRECISE}
    found = _descend(minimize, objective, start, how)
    if refine:
        smooth = minimize(objective.squares, start, **how)
        again = minimize(objective, smooth.x, **how)
        found = min(found, again, key=lambda end: float(end.fun))
    values = [float(value) for value in found.x]
    extra = dict(zip(objective.extras, values[7:], strict=True))
    links = {"pcie": pcie, "nvlink": nvlink}
    links |= {name: SCALE / extra[name] for name in links if name in extra}
    names = Parameters.__struct_fields__
    return Fit(
        parameters=Parameters(*values[:7]),
        bandwidths=_bandwidths(links, points),
        forward_time=_forward_time(points, extra.get("forward")),
        objective=float(found.fun),
        on_bounds=tuple(
            name for name, value, ends in zip(names, values, BOUNDS, strict=False) if value in ends
        ),
        fitted_too=objective.extras,
    )


def _descend(minimize: Any, objective: Objective, start: list[float], how: dict[str, Any]) -> Any:
    """Return where descent ends; begun again a hair aside where the overlap ran off.

    Where communication is small the overlap hardly matters, and rounding decides whether descent
    carries it to 1e5, where no scale is left for the others. The published fits did not end there.
    """
    ends = []
    for attempt in range(_ATTEMPTS):
        aside = 1 + attempt * 1e-13 * np.arange(1, len(start) + 1)
        lows, highs = zip(*how["bounds"], strict=True)
        ends.append(minimize(objective, np.clip(start * aside, lows, highs), **how))
        if ends[-1].x[1] <= _SANE_OVERLAP:
            return ends[-1]
    return min(ends, key=lambda end: float(end.fun))


def scipy_optimize() -> Any:
    """Return scipy's optimizers.

    Raises:
        SpecError: scipy is missing.
    """
    try:
        import scipy.optimize
    except ImportError as error:
        raise SpecError(
            "fit",
            'needs scipy, which is not installed; install it with: pip install "windtunnel[ml]".',
        ) from error
    return scipy.optimize


def _box(
    objective: Objective, points: Sequence[ProfiledPoint]
) -> tuple[list[float], list[tuple[float, float]]]:
    """Return where the fit begins, and between which bounds it goes."""
    bounds = list(BOUNDS)
    if "forward" in objective.extras and not objective.has_phases:
        bounds[0] = (USUAL_K_BWD, USUAL_K_BWD)
    start = [float(np.clip(x, *ends)) for x, ends in zip(START, bounds, strict=True)]
    for name in objective.extras:
        if name == "forward":
            whole = max(point.total * point.gpus for point in points)
            start.append(whole / 4)
            bounds.append((whole * 1e-6, whole))
        else:
            start.append(_START_EXTRA[name])
            bounds.append(_BOUNDS_EXTRA)
    return start, bounds


def _bandwidths(
    links: dict[str, float | None], points: Sequence[ProfiledPoint]
) -> Bandwidths | None:
    """Return the bandwidths; one that nothing depends on counts as without limit."""
    pcie, nvlink = links["pcie"], links["nvlink"]
    if pcie is None and nvlink is None and all(point.gpus == 1 for point in points):
        return None
    return Bandwidths(pcie or _INF, nvlink or _INF)


def _forward_time(points: Sequence[ProfiledPoint], fitted: float | None) -> float:
    """Return seconds on one GPU: the median over the points, or what was fitted."""
    if fitted is not None:
        return fitted / 1000
    whole = [point.forward * point.gpus for point in points if point.forward is not None]
    return float(np.median(whole)) / 1000
