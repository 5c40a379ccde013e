"""Tables of runs on clusters with levels: domains that jobs went over, and what requests cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.report.columns import runs_table
from windtunnel.report.curves import named
from windtunnel.report.format import UNKNOWN, count, gpu_time, percent, times

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.report.columns import Columns, Row
    from windtunnel.report.sections import Table
    from windtunnel.sim.outcome import Outcome


def level_tables(outcomes: Mapping[str, Outcome]) -> list[tuple[str, Table]]:
    """Return the tables of runs on nodes with levels above them, titled; none where there are none.

    What requests cost is shown of runs that were placed by levels of whole GPUs, lost no nodes, and
    have no elastic jobs.
    """
    levelled = {name: run for name, run in named(outcomes) if _has_levels(run)}
    if not levelled:
        return []
    used = {name: run.domains().to_pylist() for name, run in levelled.items()}
    found = [("Domains that jobs went over", runs_table("Level", used, "level", _DOMAINS))]
    placed = {
        name: [{**row, "request": _request(row)} for row in run.topology_losses().to_pylist()]
        for name, run in levelled.items()
        if str(run.settings.get("placement")).partition(":")[0] == "tree"
        and run.flight.interruptions is None
        and run.settings.get("sharing") is None
        and run.flight.stretches is None
    }
    if any(placed.values()):
        losses = runs_table("Request", placed, "request", _LOSSES)
        found.append(("What jobs asked of the levels", losses))
    return found


def _has_levels(run: Outcome) -> bool:
    """Return whether a run knows nodes, and levels above them."""
    by_node = not run.cluster.is_pool and run.settings.get("placement") != "pool"
    return by_node and bool(run.cluster.level_paths[0]) and bool(len(run.flight.nodes))


def _mean(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}"


_DOMAINS: Columns = (
    ("used", "used", _mean),
    ("least", "least", _mean),
    ("spread", "spread", times),
    ("on the least", "tight", percent),
)


def _request(row: Row) -> str:
    """Return a request in its words."""
    if row["kind"] == "slices":
        return f"slice={row['level']}/{row['slice']}"
    more = f", slices of {row['slice']}" if row["slice"] > 1 else ""
    return f"{row['kind']}:{row['level']}{more}"


def _unusable(row: Row) -> str:
    return f"{row['unusable']:.1f}" if row["slice"] > 1 else UNKNOWN


_LOSSES: Columns = (
    ("jobs", "jobs", count),
    ("refused by the levels", "refused", count),
    ("GPU time refused", "refused_gpu_time", gpu_time),
    ("GPUs in no slice", "", _unusable),
)
