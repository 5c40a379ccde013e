"""Calls drawn from a seed: refused in a sentence, or done, in time."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from calls import WORLDS, Call, commands, drawn
from judged import again, judged, lost_rows, prepare
from right import right

ABOUT = {"source": "jobs.csv", "dropped": {}}


def test_the_first_calls_hold() -> None:
    """Some of those that `make test-fuzz` makes."""
    prepare()
    for index in range(4):
        verdict = judged(drawn("fixed", index))
        assert not verdict.failed, f"{verdict.failed}: {again('fixed', index)}"


def test_the_same_seed_draws_the_same_call() -> None:
    assert drawn("a", 7) == drawn("a", 7)
    assert drawn("a", 7) != drawn("b", 7)


def test_what_is_right_is_known_of_every_option() -> None:
    unknown = {
        f"{' '.join(names)} {param.opts[0]}"
        for names, command in commands()
        for param in command.params
        if isinstance(param, click.Option) and not param.is_flag and not right(param, names[0])
    }
    assert not unknown, "tests/fuzz/right.py wants words for these"


def test_in_every_world_a_call_is_made_and_judged() -> None:
    prepare()
    words = ("simulate", "synthetic:kalos:jobs=40", "--cluster", "64x8", "--json")
    for world in WORLDS:
        verdict = judged(Call(words, {}, world=world))
        assert not verdict.failed, world
        assert verdict.code == (2 if world in {"disk", "full stdout"} else 0), world


@pytest.mark.parametrize(
    ("command", "answer", "failed"),
    [
        ("describe", {"trace": {**ABOUT, "num_jobs": 3, "rows_read": 3}}, ""),
        ("describe", {"trace": {**ABOUT, "num_jobs": 2, "rows_read": 3}}, "of 3 rows 3 were read"),
        ("describe", {"trace": {**ABOUT, "num_jobs": 2, "rows_read": 2}}, "of 3 rows 2 were read"),
        (
            "convert",
            {**ABOUT, "rows_in": 3, "rows_out": 3, "out": "out.csv"},
            "1 rows were written",
        ),
        (
            "convert",
            {
                **ABOUT,
                "rows_in": 3,
                "rows_out": 2,
                "dropped": {"x": 1},
                "out": "out.csv",
                "to": "swf",
            },
            "",
        ),
        ("convert", {**ABOUT, "rows_in": 3, "rows_out": 1, "dropped": {"x": 2}}, ""),
        (
            "simulate",
            {"trace": {**ABOUT, "num_jobs": 3, "rows_read": 3}, "num_finished": 2},
            "fates of 2 jobs of 3",
        ),
    ],
)
def test_a_lost_row_is_a_failure(
    tmp_path: Path, command: str, answer: dict[str, Any], failed: str
) -> None:
    (tmp_path / "out.csv").write_text("; a comment of SWF\njob_id\na\n")
    (tmp_path / ".out").write_text(json.dumps(answer))
    found = lost_rows(Call((command, "jobs.csv", "--json"), {}, 3), tmp_path)
    assert found.startswith(failed)
    assert bool(found) == bool(failed)


def test_a_parquet_file_of_an_odd_name_is_not_read_as_csv(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_bytes(b"PAR1\xc0")
    answer = {**ABOUT, "rows_in": 3, "rows_out": 3, "out": "out.csv", "to": "parquet"}
    (tmp_path / ".out").write_text(json.dumps(answer))
    assert not lost_rows(Call(("convert", "jobs.csv", "--json"), {}, 3), tmp_path)


def test_many_calls_are_judged_by_their_rows() -> None:
    calls = [drawn("fixed", number) for number in range(200)]
    assert sum(call.rows is not None and "--json" in call.words for call in calls) > 40
