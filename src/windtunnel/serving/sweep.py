"""How placements do as one thing about the workload or the cluster changes.

Attainment against rate, burstiness, SLO scale and GPUs are AlpaServe's figures (OSDI'23, section
6); replication beside a pipeline at several rates is its figure 5 and the lecture's.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.checked import checked_choice
from windtunnel.errors import InfeasibleError, SpecError
from windtunnel.plain import fields_of
from windtunnel.serving.placement import MEM_BUDGET, Placement
from windtunnel.serving.search.policies import REFINE, named_policy, search
from windtunnel.serving.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windtunnel.serving.outcome import ServingOutcome
    from windtunnel.serving.workload_spec import WorkloadSpec

#: What may change, and in which unit.
AXES = {
    "rate": "requests/s",
    "cv": "of the gaps",
    "slo_scale": "times the latency on one GPU",
    "gpus": "GPUs",
    "compress": "times as fast",
}
#: Axes that recorded requests do not have.
_DRAWN = ("rate", "cv")
#: Figures of a point.
MEASURES = ("slo_attainment", "mean_latency", "p50_latency", "p99_latency", "utilization")


@dataclass(frozen=True)
class Sweep:
    """Figures of every candidate at every point.

    Attributes:
        spec: the workload at the base point.
        gpus: at the base point.
        rows: ``axis``, ``value``, ``candidate``, ``num_requests``, ``gpus``, `MEASURES` and
            ``groups`` (configurations with their numbers, as text); the measures are None where no
            model fits. Axes, values and candidates in the order asked for.
        runs: each candidate at the base point; missing where no model fits.
        placements: of those runs.
    """

    spec: WorkloadSpec
    gpus: int
    rows: list[dict[str, Any]]
    runs: dict[str, ServingOutcome]
    placements: dict[str, Placement]


@dataclass(frozen=True)
class _Point:
    axis: str
    value: float
    candidate: str
    spec: WorkloadSpec
    gpus: int


def sweep(
    spec: WorkloadSpec,
    gpus: int,
    over: Mapping[str, Sequence[float]],
    candidates: Mapping[str, Placement | str],
    *,
    mem_budget: float = MEM_BUDGET,
    warm_up: float = 0.0,
    refine: int = REFINE,
    workers: int = 1,
    on_done: Callable[[str], None] | None = None,
) -> Sweep:
    """Serve a workload with several candidates while one thing at a time changes.

    Args:
        spec: the base point.
        gpus: of the base point.
        over: axis of `AXES` -> its values; the rest stays as at the base point.
        candidates: name -> a placement, which stays, or a policy, which searches at every point.
        mem_budget: bytes for weights on a GPU, of searches.
        warm_up: s left out at both ends.
        refine: as in the search.
        workers: threads, over points; the result is the same.
        on_done: called after each point.

    Raises:
        SpecError: an unknown axis or policy, no values, or one that makes no sense.
    """
    points = _points(spec, gpus, over, candidates)
    profile = spec.read_profile()

    def at(point: _Point) -> tuple[ServingOutcome, Placement] | None:
        asked = candidates[point.candidate]
        requests = point.spec.draw(profile)
        costs = point.spec.overheads
        if isinstance(asked, str):
            try:
                found = search(
                    requests, profile, point.gpus, asked, mem_budget=mem_budget, overheads=costs,
                    refine=refine,
                )  # fmt: skip
            except InfeasibleError:
                return None
            asked = found.placement
        return simulate(asked, requests, profile, overheads=costs), asked

    base = [_Point("", 0.0, name, spec, gpus) for name in candidates]
    rows, runs, placements = [], {}, {}
    with ThreadPoolExecutor(workers) as pool:
        for point, served in zip([*points, *base], pool.map(at, [*points, *base]), strict=True):
            if point.axis:
                rows.append(_row(point, served, warm_up))
            elif served is not None:
                runs[point.candidate], placements[point.candidate] = served
            if on_done is not None:
                on_done("point")
    return Sweep(spec, gpus, rows, runs, placements)


def _points(
    spec: WorkloadSpec,
    gpus: int,
    over: Mapping[str, Sequence[float]],
    candidates: Mapping[str, Placement | str],
) -> list[_Point]:
    if not candidates:
        raise SpecError("candidates", "expected at least one policy or placement.")
    for asked in candidates.values():
        if isinstance(asked, str):
            named_policy(asked)
    points = []
    for axis, values in over.items():
        checked_choice("over", axis, AXES)
        if axis in _DRAWN and spec.requests is not None:
            raise SpecError("over", f"recorded requests have their own {axis}; change compress.")
        if not values:
            raise SpecError("over", f"expected values of {axis}.")
        for value in values:
            here, size = _at(spec, gpus, axis, value)
            points += [_Point(axis, float(value), name, here, size) for name in candidates]
    return points


def _at(spec: WorkloadSpec, gpus: int, axis: str, value: float) -> tuple[WorkloadSpec, int]:
    """Return the workload and the number of GPUs at a point."""
    if axis != "gpus":
        return spec.but(**{axis: float(value)}), gpus
    if value < 1 or value != int(value):
        raise SpecError("over", f"gpus: found {value:g}; expected whole numbers >= 1.")
    return spec, int(value)


def _row(
    point: _Point, served: tuple[ServingOutcome, Placement] | None, warm_up: float
) -> dict[str, Any]:
    row: dict[str, Any] = {
        **fields_of(point, "axis", "value", "candidate"),
        "num_requests": None,
        "gpus": point.gpus,
        **dict.fromkeys(MEASURES),
        "groups": "",
    }
    if served is None:
        return row
    run, placement = served
    figures = run.metrics(warm_up)
    row |= {name: figures[name] for name in MEASURES}
    row |= {"num_requests": figures["num_counted"], "gpus": placement.num_gpus}
    return {**row, "groups": groups_text(placement)}


def groups_text(placement: Placement) -> str:
    """Return a placement's configurations with their numbers.

    >>> from windtunnel.serving import as_placement
    >>> groups_text(as_placement([{"parallel": [1, 1, 2], "models": [0]}] * 3))
    '3 x (1,1,2)'
    """
    counts: dict[str, int] = {}
    for group in placement.groups:
        counts[group.parallel.name] = counts.get(group.parallel.name, 0) + 1
    return ", ".join(f"{count} x {name}" for name, count in counts.items())
