"""Fly Slurm's recorded runs again, decision by decision: check_recordings.py FOLDER [--json].

FOLDER has the scenarios (or is one). Printed for each: decisions compared and equal by loop
(those that started nothing included), node lists, reasons, priorities, and what free flights of the
same workload make of the waits.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from decisions import Replay, Tally, compare_idle, compare_starts
from free_run import compare_flights
from priorities import Priorities, compare_priorities
from reasons import compare_reasons
from records import read_record


def check(folder: Path, flights: int) -> dict[str, Any]:
    """Return what a scenario's record says of the scheduler here, by so many free flights."""
    record = read_record(folder)
    replay = Replay(record)
    found: dict[str, Any] = {"scenario": folder.name, "jobs": len(record.rows)}
    if record.site.settings.priority.multifactor:
        replay.priority = Priorities(record, replay.world).priority
        compared, equal, wrong = compare_priorities(record, replay.world)
        found["priorities"] = {"compared": compared, "equal": equal, "different": wrong[:20]}
    tally = {loop: Tally() for loop in ("main", "backfill", "idle_main", "idle_backfill")}
    compare_starts(replay, tally)
    compare_idle(replay, tally)
    for loop, one in tally.items():
        found[loop] = {"compared": one.compared, "equal": one.equal, "different": one.examples[:20]}
    found["nodes"] = {
        "compared": sum(one.starts for one in tally.values()),
        "equal": sum(one.same_nodes for one in tally.values()),
    }
    compared, equal, wrong = compare_reasons(record, replay)
    found["reasons"] = {"compared": compared, "equal": equal, "different": wrong[:20]}
    if flights:
        found["free"] = compare_flights(record, replay.world, flights)
    loops = [found[loop] for loop in tally]
    found["decisions"] = {
        "compared": sum(one["compared"] for one in loops),
        "equal": sum(one["equal"] for one in loops),
    }
    return found


def folders(folder: Path) -> list[Path]:
    """Return the scenarios of a folder: itself, or those in it."""
    if (folder / "slurm.conf").exists():
        return [folder]
    return sorted(one.parent for one in folder.glob("*/slurm.conf"))


def share(one: dict[str, Any]) -> str:
    """Return equal of compared, and in per cent."""
    if not one["compared"]:
        return "-"
    return f"{one['equal']}/{one['compared']} ({100 * one['equal'] / one['compared']:.1f} %)"


def flown(one: dict[str, Any]) -> str:
    """Return what free flights made of the mean wait, in words."""
    free = one.get("free")
    if not free:
        return ""
    inside = f"{free['equal']} of {free['compared']}" if "equal" in free else free["is_inside"]
    return f"mean wait {100 * free['error']:+.1f} %, inside the band: {inside}"


def total(results: list[dict[str, Any]], name: str) -> dict[str, int]:
    """Return the sums of one measure over all scenarios."""
    some = [one[name] for one in results if name in one]
    return {key: sum(one[key] for one in some) for key in ("compared", "equal")}


COLUMNS = ("decisions", "main", "backfill", "idle_main", "idle_backfill", "nodes", "reasons",
           "priorities")  # fmt: skip


def main() -> None:
    """Check the scenarios of a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--flights", type=int, default=20, help="free flights; 0 = none")
    asked = parser.parse_args()
    results = [check(folder, asked.flights) for folder in folders(asked.folder)]
    everything: dict[str, Any] = {name: total(results, name) for name in COLUMNS}
    if asked.flights:
        free = [one["free"] for one in results]
        everything["free"] = {
            "compared": len(free),
            "equal": sum(one["is_inside"] for one in free),
            "error": sum(one["error"] for one in free) / max(len(free), 1),
        }
    if asked.json:
        print(json.dumps({"scenarios": results, "all": everything}, indent=1))  # noqa: T201
        return
    for one in [*results, {"scenario": "all", **everything}]:
        cells = (f"{name} {share(one[name])}" for name in COLUMNS if name in one)
        print(one["scenario"], *cells, flown(one), sep="  ")  # noqa: T201


if __name__ == "__main__":
    main()
