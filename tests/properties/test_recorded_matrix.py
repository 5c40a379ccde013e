"""The flight recorder with everything: a run is the same with it, and both engines say the same."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matrix_cases import FEATURES, POLICIES, Cell
from matrix_table import refusing

from windtunnel.sim.observe.causes import causes

if TYPE_CHECKING:
    import windtunnel as wt


def cells() -> list[Cell]:
    """Return every policy by itself, and every feature under some rules, in a mixed order."""
    found = [Cell(policy, None, "best_fit", (), 2) for policy in POLICIES]
    for feature in FEATURES:
        for rule in ("strict", "skip", "easy", "conservative"):
            found += [Cell(name, rule, "best_fit", (feature,), 5) for name in ("fifo", "srtf")]
    random.Random(0).shuffle(found)  # noqa: S311 - a test's own chance
    return [cell for cell in found if not refusing(cell) and not _has_own_loop(cell)]


def _has_own_loop(cell: Cell) -> bool:
    """Return whether a published mechanism flies it, which tells no reasons."""
    return any(word in cell.policy for word in ("ideal", "published")) or (
        cell.options.get("compat") is not None
    )


def check(cell: Cell) -> None:
    """Fly a cell plain and recorded, on both engines."""
    plain = cell.fly()
    cell.options["record"] = True
    recorded, reference = cell.fly(), cell.fly("reference")
    assert plain.segments.equals(recorded.segments), cell
    assert plain.table.equals(recorded.table), cell
    assert recorded.decisions.equals(reference.decisions), cell
    assert waits_differ(recorded) < 1e-6, cell


def waits_differ(out: wt.Outcome) -> float:
    """Return by how many seconds the causes of a finished job's wait miss its wait, at most."""
    table, found = out.table, causes(out.decisions)
    waited = np.zeros(table.num_rows)
    np.add.at(waited, found["row"].to_numpy(), found["seconds"].to_numpy())
    over = np.array(table["status"].to_pylist()) == "finished"
    expected = table["jct"].to_numpy() - table["run_time"].to_numpy()
    return float(np.abs(waited - expected)[over].max(initial=0.0))


def test_some_cells_of_the_matrix() -> None:
    for cell in cells()[:24]:
        check(cell)


@pytest.mark.slow
def test_all_cells() -> None:
    for cell in cells():
        check(cell)
