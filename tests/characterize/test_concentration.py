"""The share of the top users, its curve and Gini."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from job_tables import EXAMPLES, asked, job_rows, table_of

from windtunnel.characterize.concentration import concentration, top_users
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from backends import Backend


def _of_users(amounts: dict[str, float]) -> Any:
    count = len(amounts)
    return as_jobs(
        {
            "submit_time": [0] * count,
            "duration": list(amounts.values()),
            "num_gpus": [1] * count,
            "user": list(amounts),
        }
    )


def test_top_users_by_hand(backend: Backend) -> None:
    jobs = backend(_of_users({"a": 10.0, "b": 60.0, "c": 20.0, "d": 10.0}))
    found = top_users(jobs, 0.25)
    assert found["part"] == pytest.approx(0.6)
    assert found["users"] == 4
    assert found["top"] == 1.0
    assert found["total"] == 100.0
    # Between whole users the curve is a line: half of b, then all of b and half of c.
    assert top_users(jobs, 0.125)["part"] == pytest.approx(0.3)
    assert top_users(jobs, 0.375)["part"] == pytest.approx(0.7)
    assert top_users(jobs, 1)["part"] == pytest.approx(1)
    # Gini by its definition: mean absolute difference over twice the mean.
    values = np.array([10, 60, 20, 10])
    differences = np.abs(values[:, None] - values[None, :]).mean()
    assert found["gini"] == pytest.approx(differences / (2 * values.mean()))


def test_the_curve_by_hand(backend: Backend) -> None:
    found = concentration(backend(_of_users({"a": 10.0, "b": 60.0, "d": 10.0, "c": 20.0})))
    assert found["user"].to_pylist() == ["b", "c", "a", "d"]
    assert found["rank"].to_pylist() == [1, 2, 3, 4]
    assert found["percent"].to_pylist() == pytest.approx([60, 80, 90, 100])
    assert found["user_percent"].to_pylist() == [25.0, 50.0, 75.0, 100.0]


def test_jobs_without_a_user_are_in_no_share_and_counted(backend: Backend) -> None:
    jobs = as_jobs(
        {
            "submit_time": [0] * 5,
            "duration": [4, 6, 10, None, 1],
            "num_gpus": [1, 1, 1, 1, None],
            "user": ["a", None, "b", "b", "a"],
        }
    )
    found = top_users(backend(jobs), 0.5)
    assert found["total"] == 14.0
    assert found["part"] == pytest.approx(10 / 14)
    assert (found["n"], found["left_out"], found["unnamed"], found["unsized"]) == (2, 1, 1, 1)
    assert found["unnamed_total"] == 6.0


def test_nobody_takes_anything() -> None:
    found = top_users(_of_users({"a": 0.0, "b": 0.0}))
    assert found["part"] is None
    assert found["gini"] is None
    assert concentration(_of_users({"a": 0.0}))["percent"].to_pylist() == [None]
    empty = as_jobs({"submit_time": [], "duration": [], "num_gpus": []})
    assert concentration(empty).num_rows == 0
    assert top_users(empty)["users"] == 0


@EXAMPLES
@given(job_rows(), st.sampled_from(["jobs", "gpu_time", "wait"]), st.floats(0.01, 1))
def test_top_users_equal_plain_python(rows: list[Any], of: str, share: float) -> None:
    members, unknown = asked(rows, "gpu")
    amounts: dict[str, float] = {}
    known = [r for r in members if of == "jobs" or r[of] is not None]
    for row in known:
        if row["user"] is not None:
            amount = 1 if of == "jobs" else row[of]
            amounts[row["user"]] = amounts.get(row["user"], 0) + amount
    found = top_users(table_of(rows), share, of)
    assert found["users"] == len(amounts)
    assert found["total"] == pytest.approx(sum(amounts.values()))
    assert found["left_out"] == len(members) - len(known)
    assert found["unnamed"] == sum(r["user"] is None for r in known)
    assert found["n"] == sum(r["user"] is not None for r in known)
    assert found["unsized"] == len(unknown)
    if not sum(amounts.values()):
        assert found["part"] is None
        return
    left, part = share * len(amounts), 0.0
    for amount in sorted(amounts.values(), reverse=True):
        part += amount * min(1.0, max(left, 0.0))
        left -= 1
    assert found["part"] == pytest.approx(part / sum(amounts.values()))
    assert -1e-9 <= found["gini"] <= 1
    curve = concentration(table_of(rows), of)
    assert dict(zip(curve["user"].to_pylist(), curve["amount"].to_pylist(), strict=True)) == {
        user: pytest.approx(amount) for user, amount in amounts.items()
    }


def test_bad_arguments_are_refused() -> None:
    jobs = _of_users({"a": 1.0})
    for share in (0, -1, 1.5, float("nan")):
        with pytest.raises(SpecError, match="share"):
            top_users(jobs, share)
    with pytest.raises(SpecError, match="gpu_tim"):
        top_users(jobs, of="gpu_tim")
