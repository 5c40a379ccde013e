"""The table of docs/reference/semantics.md of what cannot be combined, as the tests go by it.

Each entry of a cell, between commas, is looked up here by its words: what they mean of a run. An
entry that nobody knows is an error, so that the page and the tests cannot part.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matrix_cases import KUEUES, NO_NODES, SHOCKWAVE, SLURMS

from windtunnel.sim.contract import BACKFILLING

if TYPE_CHECKING:
    from collections.abc import Callable

    from matrix_cases import Cell

PAGE = Path(__file__).parents[2] / "docs/reference/semantics.md"
HEADING = "## What cannot be combined"
#: Runs that are not in the matrix, as the page names them: by published clocks (tests/elastic,
#: tests/shockwave), and of what they cannot be.
ELSEWHERE = (
    *(
        "pollux:… with compat=pollux",
        "shockwave:… with compat=shockwave",
        "compat=morphling",
    ),
    *("a cluster of several GPU types", "replay", "jobs of priority 0 or less"),
    *("failures and maintenance of nodes", "power.host_w with power_cap"),
)


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        this, other: entries of the two cells; any of the one goes with none of the other.
        why: the reason.
    """

    this: tuple[str, ...]
    other: tuple[str, ...]
    why: str

    def refuses(self, entries: frozenset[str]) -> bool:
        """Return whether a run is refused by this row, given the entries that it is one of."""
        return not (entries.isdisjoint(self.this) or entries.isdisjoint(self.other))


@cache
def table() -> tuple[Row, ...]:
    """Return the rows of the page."""
    page = PAGE.read_text(encoding="utf-8")
    section = page.split(HEADING, 1)[1].split("\n## ", 1)[0]
    rows: list[Row] = []
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or set(line) <= set("|- ") or cells[0] == "This":
            continue
        this, other, why = cells
        entries = rows[-1].other if other == "the same" else _entries(other)
        rows.append(Row(_entries(this), entries, why))
    return tuple(rows)


def refusing(cell: Cell) -> list[Row]:
    """Return the rows that refuse a run; none = it flies."""
    entries = entries_of(cell)
    return [row for row in table() if row.refuses(entries)]


def entries_of(cell: Cell) -> frozenset[str]:
    """Return the entries that a run is one of."""
    return frozenset(entry for entry, means in MEANING.items() if means(cell))


def _entries(text: str) -> tuple[str, ...]:
    parts = re.split(r",\s*(?![^()]*\))", text)
    return tuple(part.replace("`", "").strip() for part in parts)


def _option(name: str, quiet: Any = None) -> Callable[[Cell], bool]:
    return lambda cell: cell.options.get(name, quiet) != quiet


def _slower(field: str) -> Callable[[Cell], bool]:
    return lambda cell: field in cell.options.get("slowdown", {})


def _placed(name: str) -> Callable[[Cell], bool]:
    return lambda cell: cell.placement.split(":")[0] == name


def _rule(name: str) -> Callable[[Cell], bool]:
    def is_flown(cell: Cell) -> bool:
        """The rule asked for, or else the policy's own; a policy of tier 3 has none."""
        chosen = cell.rule or cell.kind.queueing
        return cell.kind.tier < 3 and chosen == name

    return is_flown


def _is_pai_policy(cell: Cell) -> bool:
    kind = cell.kind
    return kind.tier == 1 and not kind.preemptive and kind.queueing not in BACKFILLING


def _plans_with_recorded(cell: Cell) -> bool:
    return cell.options.get("estimates") is None and cell.kind.estimates == "recorded"


def _mechanism(name: str) -> Callable[[Cell], bool]:
    return lambda cell: f"mechanism={name}" in cell.policy


#: What the words of an entry mean of a run.
MEANING: dict[str, Callable[[Cell], bool]] = {
    "slowdown": _option("slowdown"),
    "slowdown.rack": _slower("rack"),
    "slowdown.cpu": _slower("cpu"),
    "slowdown.share": _slower("share"),
    "node_sleep": _option("node_sleep"),
    "reservations": lambda cell: "reservations" in cell.options.get("disruptions", {}),
    "on_failure=swap": lambda cell: cell.options.get("disruptions", {}).get("on_failure") == "swap",
    "power_cap with unlike power.gpus": lambda cell: (
        "power_cap" in cell.options
        and "default" not in cell.options["power"]["gpus"]
        and (cell.placement == NO_NODES or cell.policy not in SHOCKWAVE)  # of one GPU type
    ),
    "failures and maintenance of nodes": lambda _: False,  # tests/sim/test_refused.py
    "power.host_w with power_cap": lambda _: False,  # ditto
    "jobs of priority 0 or less": lambda _: False,  # ditto
    "engine=compiled": lambda _: False,  # ditto
    "placement=pool": _placed("pool"),
    "placement=fgd": _placed("fgd"),
    "placement=tree": _placed("tree"),
    "placement=gpu_packing": _placed("gpu_packing"),
    "tree:balanced": lambda cell: cell.placement == "tree:balanced",
    "slice=… in topology": lambda cell: any(
        "slice=" in words for words in cell.jobs.get("topology", ()) if words
    ),
    "gang=fill": lambda cell: "gang=fill" in cell.placement,
    "topology": lambda cell: "topology=" in cell.placement,
    "a cluster without nodes": lambda cell: cell.placement == NO_NODES,
    "a cluster without nodes_per_rack": lambda cell: not cell.has_racks,
    "a cluster without cpus": lambda cell: not cell.has_cores,
    "sharing=pooled": _option("sharing"),
    "sharing": _option("sharing"),
    "preemption=quota_walk": _option("preemption"),
    "preemption=quota_walk of a policy that preempts": lambda cell: (
        cell.options.get("preemption") == "quota_walk" and cell.kind.preemptive
    ),
    "queueing=easy": _rule("easy"),
    "queueing=easy_sjbf": _rule("easy_sjbf"),
    "queueing=conservative": _rule("conservative"),
    "queueing": lambda cell: cell.rule is not None,
    "las": lambda cell: cell.policy == "las",
    "slurm": lambda cell: cell.policy in SLURMS,
    "kueue": lambda cell: cell.policy in KUEUES,
    "blocking_limits": _option("blocking_limits"),
    "tiresias": lambda cell: cell.policy == "tiresias",
    "sjf-estimate": lambda cell: cell.policy == "sjf-estimate",
    "a trace without estimate": lambda cell: (
        "estimate" not in cell.jobs
        and (_plans_with_recorded(cell) or cell.policy == "sjf-estimate")
    ),
    "policies of tier 3": lambda cell: cell.kind.tier == 3,
    "policies with elastic = True": lambda cell: cell.kind.elastic,
    "gavel:…": lambda cell: cell.policy.startswith("gavel:"),
    "shockwave:…": lambda cell: cell.policy.startswith("shockwave:"),
    "a cluster of several GPU types": lambda _: False,
    "replay": lambda _: False,  # tests/shockwave
    "any policy": lambda _: True,
    "shockwave:… with compat=shockwave": lambda _: False,
    "pollux:… with compat=pollux": lambda _: False,
    "arrivals": lambda _: False,
    "a pool": lambda _: False,
    "nodes of several sizes": lambda _: False,
    "what mechanism=published refuses": lambda _: False,
    "fill": lambda cell: "fill=" in cell.policy,
    "gavel:allox": lambda cell: cell.policy == "gavel:allox",
    "gavel:…:mechanism=ideal": _mechanism("ideal"),
    "gavel:…:mechanism=published (compat=gavel)": _mechanism("published"),
    "jobs of less than a GPU": lambda cell: any(gpus < 1 for gpus in cell.jobs["num_gpus"]),
    "jobs of several GPUs": lambda cell: any(gpus > 1 for gpus in cell.jobs["num_gpus"]),
    "save_time + restore_time as long as a turn": lambda cell: (
        cell.options.get("save_time") == 50.0
    ),
    "save_time": _option("save_time", 0.0),
    "restore_time": _option("restore_time", 0.0),
    "placement": lambda cell: cell.placement not in (NO_NODES, "best_fit", "pool"),
    "compat=pai": _option("compat"),
    "any policy but a static order that does not preempt": lambda cell: not _is_pai_policy(cell),
    "any queueing but skip": lambda cell: cell.rule not in (None, "skip"),
    # Runs with nodes of 8 GPUs and whole models have tests of their own (tests/elastic).
    "compat=morphling": lambda _: False,
    "any policy but morphling": lambda _: False,
    "nodes of other than 8 GPUs": lambda _: False,
} | {
    name: _option(name)
    for name in (
        *("estimates", "decide_every", "disruptions", "power_cap", "shift", "bind_types"),
        *("until", "penalty", "models", "power", "quotas"),
    )
}
MEANING["events"] = _option("events", "batch")
MEANING["preemption=quota_walk"] = lambda cell: cell.options.get("preemption") == "quota_walk"
