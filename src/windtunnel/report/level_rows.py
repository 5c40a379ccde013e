"""Tables of runs on clusters with levels: domains that jobs went over, and what requests cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.curves import named
from windtunnel.report.format import count, gpu_time, percent, times
from windtunnel.report.names import clean
from windtunnel.report.sections import Cell, Line, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.sim.outcome import Outcome

_NONE = Cell("\u2013")


def level_tables(outcomes: Mapping[str, Outcome]) -> list[tuple[str, Table]]:
    """Return the tables of runs on nodes with levels above them, titled; none where there are none.

    What requests cost is told of runs that were placed by levels of whole GPUs, and lost no nodes.
    """
    runs = dict(zip((name for name, _ in named(outcomes)), outcomes.values(), strict=True))
    levelled = {name: run for name, run in runs.items() if _has_levels(run)}
    if not levelled:
        return []
    found = [("Domains that jobs went over", _domains(levelled))]
    placed = {
        name: run.topology_losses().to_pylist()
        for name, run in levelled.items()
        if str(run.settings.get("placement")).partition(":")[0] == "tree"
        and run.flight.interruptions is None
        and run.settings.get("sharing") is None
    }
    if any(placed.values()):
        found.append(("What jobs asked of the levels", _losses(placed)))
    return found


def _has_levels(run: Outcome) -> bool:
    """Return whether a run knows nodes, and levels above them."""
    by_node = not run.cluster.is_pool and run.settings.get("placement") != "pool"
    return by_node and bool(run.cluster.level_paths[0]) and bool(len(run.flight.nodes))


def _domains(runs: Mapping[str, Outcome]) -> Table:
    """Return one row a level, and for each run what its stays used of it."""
    tables = [{row["level"]: row for row in run.domains().to_pylist()} for run in runs.values()]
    lines = [
        Line(clean(level), [cell for table in tables for cell in _used(table.get(level))])
        for level in dict.fromkeys(level for table in tables for level in table)
    ]
    return Table("Level", list(runs), lines, under=["used", "least", "spread", "on the least"])


def _used(row: Mapping[str, Any] | None) -> list[Cell]:
    if row is None or not row["stays"]:
        return [_NONE] * 4
    return [
        Cell(f"{row['used']:.2f}"),
        Cell(f"{row['least']:.2f}"),
        Cell(times(row["spread"])),
        Cell(percent(row["tight"])),
    ]


def _losses(runs: Mapping[str, list[dict[str, Any]]]) -> Table:
    """Return one row a request, and for each run what it cost, most jobs first."""
    tables = [{_request(row): row for row in rows} for rows in runs.values()]
    lines = []
    for request in dict.fromkeys(request for table in tables for request in table):
        cells = []
        for table in tables:
            row = table.get(request)
            cells += [_NONE] * 4 if row is None else [
                Cell(count(row["jobs"])),
                Cell(count(row["refused"])),
                Cell(gpu_time(row["refused_gpu_time"])),
                Cell(f"{row['unusable']:.1f}" if row["slice"] > 1 else "\u2013"),
            ]  # fmt: skip
        lines.append(Line(clean(request), cells))
    under = ["jobs", "refused with room", "GPU time refused", "GPUs in no slice"]
    return Table("Request", list(runs), lines, under=under)


def _request(row: Mapping[str, Any]) -> str:
    """Return a request in its words."""
    if row["kind"] == "slices":
        return f"slice={row['level']}/{row['slice']}"
    more = f", slices of {row['slice']}" if row["slice"] > 1 else ""
    return f"{row['kind']}:{row['level']}{more}"
