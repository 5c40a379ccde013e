"""The board's record, which ships with the package: digests, bounds, every built-in's values.

``python scripts/bench_record.py`` makes it; a test makes it again and compares the bytes.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from windtunnel.board.cards import CLAIRVOYANT, ONLINE
from windtunnel.board.flights import UNFORGIVEN, Flights, bounds_of, flights
from windtunnel.board.foreknowledge import foreseen
from windtunnel.board.scenarios import SCENARIOS, SEEDS, VERSION
from windtunnel.board.workloads import draw
from windtunnel.errors import WindtunnelError
from windtunnel.policies.catalogue import POLICIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: The record's file.
FILE = "bench_1.json"
#: How built-in policies are asked for where their name alone does not say all.
SPELT: dict[str, str] = {"edf": "edf:slack=2:by=estimate"}
#: Gavel's allocations that are on the board, an hour a round, of which others are forms, and Sia.
SHARED: tuple[str, ...] = (
    *(
        f"gavel:{name}:round=3600:fill=all"
        for name in (
            *("max_min_fairness_perf", "finish_time_fairness_perf", "min_total_duration_perf"),
            "gandiva",
        )
    ),
    "pollux:sia:interval=3600",
)
#: Built-in policies that are not on the board, and why.
ABSENT: dict[str, str] = {
    "kueue": "flies a cluster's own manifests, which the scenarios do not have; quota does",
    "decoupled-evaluation": "lets evaluations hold GPUs for less than their length: other work",
    "gavel:allox": "takes jobs of one GPU only",
    "other gavel:...": "other forms of the same objectives; some take minutes to hours of CPU time",
    "shockwave:...": "minutes to hours of CPU time a policy; knows one GPU type",
    "other pollux:...": "search every minute of the log: minutes to hours of CPU time a policy",
}


def board_names() -> list[str]:
    """Return the policies on the board as they are asked for."""
    return [*(SPELT.get(name, name) for name in POLICIES if name not in ABSENT), *SHARED]


@cache
def record() -> dict[str, Any]:
    """Return the record: ``version``, ``digests``, ``bounds``, ``policies``.

    ``policies``: name -> ``class``, ``found``, ``values`` (scenario -> a value a seed), ``refused``
    (scenario -> why).
    """
    text = (files("windtunnel.board") / FILE).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def recorded_flights(name: str) -> dict[str, Flights]:
    """Return the flights of a policy on the board, by scenario."""
    found = record()["policies"][name]
    return {
        s.name: Flights(tuple(found["values"].get(s.name, ())), found["refused"].get(s.name, ""))
        for s in SCENARIOS
    }


def entry(name: str, digests: Mapping[str, str], seeds: Sequence[int] = SEEDS) -> dict[str, Any]:
    """Fly a built-in policy over all scenarios, of some seeds; return its entry of the record."""
    values: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for scenario in SCENARIOS:
        flown = flights(scenario, seeds, name, digests)
        if flown.values:
            values[scenario.name] = list(flown.values)
        else:
            refused[scenario.name] = flown.reason
    found = foreknowledge(name, values)
    kind = CLAIRVOYANT if found else ONLINE
    return {"class": kind, "found": found, "values": values, "refused": refused}


def foreknowledge(policy: Any, scenarios: Iterable[str]) -> str:
    """Return what a policy decides by what it could not know, in the first scenario where it does.

    Args:
        policy: whose.
        scenarios: those that it flies.
    """
    known = set(scenarios)
    for scenario in SCENARIOS:
        if scenario.name in known:
            try:
                found = foreseen(draw(scenario, SEEDS[0]), policy)
            except UNFORGIVEN:
                raise
            except WindtunnelError as error:  # it flies this world, and not one like it
                found = str(error).splitlines()[0]
            if found:
                return f"{scenario.name}: {found}"
    return ""


def digests_and_bounds() -> dict[str, Any]:
    """Return the record's frozen part: ``version``, ``digests``, ``bounds``."""
    digests = {f"{s.name}/{seed}": draw(s, seed).digest for s in SCENARIOS for seed in SEEDS}
    bounds = {s.name: bounds_of(s, SEEDS, digests) for s in SCENARIOS}
    return {"version": VERSION, "digests": digests, "bounds": bounds}


def as_text(found: Mapping[str, Any]) -> str:
    """Return a record as its file has it."""
    return json.dumps(found, indent=1, sort_keys=True) + "\n"
