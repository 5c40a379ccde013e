"""Kueue's recorded decisions: all of them, and the page that says which are not the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import check_cases
import matrix
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "systems" / "kueue.md"


#: Of each kind a suite that takes no time.
QUICK = ("available", "dominant", "preemption_", "flavors", "cycle", "usage", "flight_classic/")


@pytest.fixture(scope="module")
def folder(data_dir: Path) -> Path:
    found = data_dir / "kueue_cases"
    if not found.is_dir():
        pytest.skip("WINDTUNNEL_DATA has no folder kueue_cases")
    return found


@pytest.fixture(scope="module")
def verdicts(folder: Path) -> list[dict[str, Any]]:
    return check_cases.check_folder(folder)


def test_quick_suites_are_decided_the_same(folder: Path) -> None:
    found = check_cases.check_folder(folder, QUICK)
    assert {v["name"] for v in found if not v["passed"] and not v["foreign"]} == set(matrix.DIFFERS)


@pytest.mark.slow
def test_all_that_needs_nothing_foreign_is_decided_the_same(verdicts: list[dict[str, Any]]) -> None:
    differs = {v["name"] for v in verdicts if not v["passed"] and not v["foreign"]}
    assert differs == set(matrix.DIFFERS)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random_", "flight_"])
def test_random_cases_and_whole_runs_are_the_same(
    verdicts: list[dict[str, Any]], kind: str
) -> None:
    of_kind = [verdict for verdict in verdicts if verdict["suite"].startswith(kind)]
    assert of_kind
    assert [verdict["id"] for verdict in of_kind if not verdict["passed"]] == []


@pytest.mark.slow
def test_the_page_shows_the_matrix_as_it_is(verdicts: list[dict[str, Any]]) -> None:
    page, found = PAGE.read_text(encoding="utf-8"), matrix.matrix(verdicts)
    if os.environ.get("WINDTUNNEL_WRITE_DOCS"):
        before, after = page.split(matrix.BEGIN)[0], page.split(matrix.END)[1]
        PAGE.write_text(f"{before}{matrix.BEGIN}\n{found}\n{matrix.END}{after}", encoding="utf-8")
    assert matrix.written(PAGE.read_text(encoding="utf-8")) == found
