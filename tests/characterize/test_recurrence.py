"""The share of jobs that come back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_tables import EXAMPLES, asked, job_rows, table_of

from windtunnel.characterize.recurrence import recurrence
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from backends import Backend


def _jobs(templates: list[str | None], users: list[str | None]) -> Any:
    count = len(templates)
    return as_jobs(
        {
            "submit_time": [0] * count,
            "duration": [1] * count,
            "num_gpus": [1] * count,
            "template": templates,
            "user": users,
        }
    )


def test_recurrence_by_hand(backend: Backend) -> None:
    # Template x runs three times; user a, without a template, twice; nothing is known of the last.
    jobs = backend(_jobs(["x", "x", "x", None, None, None], ["a", "b", "a", "a", "a", None]))
    found = recurrence(jobs, [1, 2, 3, 4]).to_pylist()
    common = {"n": 5, "left_out": 1, "by_user": 2, "unsized": 0}
    assert found == [
        {"runs": 1, "num_templates": 2, "num_jobs": 5, "job_share": 1.0, **common},
        {"runs": 2, "num_templates": 2, "num_jobs": 5, "job_share": 1.0, **common},
        {"runs": 3, "num_templates": 1, "num_jobs": 3, "job_share": 0.6, **common},
        {"runs": 4, "num_templates": 0, "num_jobs": 0, "job_share": 0.0, **common},
    ]
    dropped = recurrence(jobs, [2], missing="drop").to_pylist()
    assert dropped == [
        {
            "runs": 2,
            "num_templates": 1,
            "num_jobs": 3,
            "job_share": 1.0,
            "n": 3,
            "left_out": 3,
            "by_user": 0,
            "unsized": 0,
        }
    ]


def test_a_user_named_like_a_template_is_not_it() -> None:
    (row,) = recurrence(_jobs(["x", None], ["a", "x"]), [2]).to_pylist()
    assert row["num_jobs"] == 0


@EXAMPLES
@given(job_rows(), st.sampled_from(["user", "drop"]), st.sampled_from(["gpu", "all"]))
def test_recurrence_equals_plain_python(rows: list[Any], missing: str, where: str) -> None:
    members, unknown = asked(rows, where)
    keys = [
        ("template", r["template"])
        if r["template"] is not None
        else (("user", r["user"]) if missing == "user" and r["user"] is not None else None)
        for r in members
    ]
    runs = Counter(key for key in keys if key is not None)
    for row in recurrence(table_of(rows), [1, 2, 3], missing=missing, where=where).to_pylist():
        k = row["runs"]
        assert row["num_templates"] == sum(v >= k for v in runs.values())
        assert row["num_jobs"] == sum(v for v in runs.values() if v >= k)
        assert row["n"] == runs.total()
        assert row["left_out"] == keys.count(None)
        assert row["unsized"] == len(unknown)
        assert row["by_user"] == sum(v for (kind, _), v in runs.items() if kind == "user")


@pytest.mark.parametrize("at", [[], [0], [2, 1], [1.5], [True]])
def test_runs_that_are_no_numbers_of_runs_are_refused(at: list[Any]) -> None:
    with pytest.raises(SpecError, match="at: expected"):
        recurrence(_jobs(["x"], ["a"]), at)


def test_an_unknown_way_with_missing_templates_is_refused() -> None:
    with pytest.raises(SpecError, match="missing"):
        recurrence(_jobs(["x"], ["a"]), missing="own")
