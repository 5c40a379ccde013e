"""Published cases: a row says workload, placement and what came out; here it is served again.

The row format is that of the results of AlpaServe's artifact (OSDI'23, section 6), the recipe
(arrivals, overheads, warm-up) its simulator's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import InfeasibleError, SpecError, TraceError
from windtunnel.serving.placement import Placement, as_placement
from windtunnel.serving.simulate import simulate
from windtunnel.serving.text_files import json_lines
from windtunnel.serving.workload_spec import WorkloadSpec

if TYPE_CHECKING:
    from windtunnel.serving.overheads import Overheads
    from windtunnel.serving.profile import Profile

#: Seconds that the published figures leave out at both ends.
WARM_UP = 10.0
#: ``arrival`` of a row -> kind of arrivals; Poisson has cv 1, whatever the row says.
_ARRIVALS = {"gamma": "gamma", "poisson": "gamma", "deterministic": "deterministic"}
#: Fields that a row needs: their types, in words, too.
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "model_set": ((list,), "a list"),
    "num_models": ((int,), "a whole number"),
    "total_rate": ((int, float), "a number"),
    "duration_s": ((int, float), "a number"),
    "groups": ((list,), "a list"),
}


@dataclass(frozen=True)
class Case:
    """A row of a file of cases.

    Attributes:
        line: in the file, from 1.
        row: as it stands there.
        workload: what it asks for.
        placement: its groups.
        mem_budget: bytes for weights on a GPU; None = any.
    """

    line: int
    row: dict[str, Any]
    workload: WorkloadSpec
    placement: Placement
    mem_budget: float | None


def read_cases(path: str | Path) -> list[Case]:
    """Read cases from JSON lines.

    Fields: ``model_set`` (model i has type model_set[i mod len]), ``num_models``, ``total_rate``
    (requests/s), ``rate_distribution`` [uniform], ``arrival`` [gamma], ``cv`` [1], ``slo_scale``
    [none], ``duration_s``, ``groups`` (a placement), ``mem_budget_bytes`` [any], ``goodput`` (what
    was published). Others are kept and not read.

    Raises:
        TraceError: a line is no case.
        OSError: the file cannot be read.
    """
    file = Path(path)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise TraceError(str(file), "a text file", hint=str(error)) from error
    found = [_case(file, line, row) for line, row in json_lines(file, lines)]
    if not found:
        raise TraceError(str(file), "at least one case")
    return found


def _case(file: Path, line: int, row: dict[str, Any]) -> Case:
    for field, (kinds, words) in _KINDS.items():
        value = row.get(field)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise TraceError(str(file), words, row=line, column=field, value=value)
    arrival = row.get("arrival", "gamma")
    if arrival not in _ARRIVALS:
        raise TraceError(
            str(file), f"one of {', '.join(_ARRIVALS)}", row=line, column="arrival", value=arrival
        )
    rates = row.get("rate_distribution", "uniform")
    spec = WorkloadSpec(
        models=tuple(str(name) for name in row["model_set"]),
        num_models=row["num_models"],
        slo_scale=_number(file, line, row, "slo_scale"),
        overheads="alpaserve",
        duration=row["duration_s"],
        rate=row["total_rate"],
        rates=rates if isinstance(rates, str) else tuple(rates),
        arrivals=_ARRIVALS[arrival],
        cv=1.0 if arrival == "poisson" else _number(file, line, row, "cv") or 1.0,
    )
    try:
        placement = as_placement(row["groups"])
    except SpecError as error:
        raise TraceError(
            str(file), "a placement", row=line, column="groups", hint=str(error)
        ) from error
    return Case(line, row, spec, placement, _number(file, line, row, "mem_budget_bytes"))


def _number(file: Path, line: int, row: dict[str, Any], field: str) -> float | None:
    value = row.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise TraceError(str(file), "a finite number > 0", row=line, column=field, value=value)
    return float(value)


def evaluate(
    case: Case,
    profile: Profile,
    *,
    overheads: Overheads | str = "alpaserve",
    warm_up: float = WARM_UP,
) -> dict[str, Any]:
    """Serve a case again.

    Args:
        case: from `read_cases`.
        profile: costs of its models.
        overheads: the published simulator's by default.
        warm_up: s left out at both ends.

    Returns:
        ``line``, ``goodput`` (share of counted requests within their SLO), ``n_requests``,
        ``n_counted``, ``n_good``, ``mean_latency_all_s`` (refused requests as 0 s, as published),
        ``mean_latency_s``, ``p99_latency_s`` (of served ones), ``published`` (the row's
        ``goodput``; None without) and ``difference`` to it.

    Raises:
        SpecError: a value makes no sense, the profile does not know a model, or a group's models
            need more memory than the row grants; the line is named.
    """
    try:
        workload = case.workload.draw(profile)
        run = simulate(
            case.placement, workload, profile, overheads=overheads, mem_budget=case.mem_budget
        )
        figures = run.metrics(warm_up)
    except (SpecError, InfeasibleError) as error:
        raise SpecError(f"line {case.line}", str(error)) from error
    counted = run.counted(warm_up)
    good = run.good[counted]
    published = case.row.get("goodput")
    share = figures["slo_attainment"]
    known = isinstance(published, int | float) and share is not None
    return {
        "line": case.line,
        "goodput": share,
        "n_requests": figures["num_requests"],
        "n_counted": figures["num_counted"],
        "n_good": figures["num_good"],
        "mean_latency_all_s": float(np.where(good, run.latency[counted], 0.0).mean())
        if len(good)
        else None,
        "mean_latency_s": figures["mean_latency"],
        "p99_latency_s": figures["p99_latency"],
        "published": published,
        "difference": share - published if known else None,
    }
