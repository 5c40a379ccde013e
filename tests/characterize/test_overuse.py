"""Use against request: a hand-worked table, and plain Python on the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from used_tasks import DRAWN_ROWS, drawn_cap, drawn_tables

from windtunnel.characterize.overuse import (
    jobs_against_use,
    requests_against_use,
)
from windtunnel.characterize.requests import RESOURCES
from windtunnel.errors import SchemaError, SpecError

if TYPE_CHECKING:
    import pyarrow as pa
    from backends import Backend


def test_tasks_that_use_more_than_they_asked_for_by_hand(tasks: pa.Table, nodes: pa.Table) -> None:
    cpu, gpu, mem = requests_against_use(tasks, nodes).to_pylist()
    assert (cpu["n"], cpu["over"], cpu["under"]) == (3, 2, 1)
    assert cpu["mean_excess"] == pytest.approx((0.1 - 0.05 + 0.05) / 3)
    assert (cpu["left_out"], cpu["why"]) == (1, "no cpus_used: 1")
    assert (gpu["n"], gpu["over"], gpu["under"], gpu["why"]) == (3, 1, 2, "no num_gpus: 1")
    assert (mem["n"], mem["over_share"], mem["excess_n"]) == (4, 0.25, 3)


def test_jobs_add_up_their_tasks_before_they_are_compared(
    tasks: pa.Table, nodes: pa.Table, backend: Backend
) -> None:
    cpu, gpu, _ = requests_against_use(backend(tasks), backend(nodes), unit="job").to_pylist()
    assert (cpu["n"], cpu["over"]) == (2, 2)
    assert cpu["mean_excess"] == pytest.approx((0.5 / 20 + 1 / 20) / 2)
    assert (gpu["n"], gpu["over"], gpu["under"]) == (2, 0, 1)  # j: 1 of 1, neither over nor under
    without = requests_against_use(tasks, unit="job").to_pylist()
    assert without[0]["mean_excess"] is None
    assert without[0]["excess_n"] == 0
    assert without[0]["over"] == 2


def test_the_notebook_counts_what_is_unknown_as_nothing(
    tasks: pa.Table, nodes: pa.Table, backend: Backend
) -> None:
    cpu, gpu, mem = requests_against_use(
        backend(tasks), backend(nodes), unit="job", compat="pai"
    ).to_pylist()
    assert (cpu["n"], cpu["over"], cpu["under"]) == (3, 2, 1)  # l: 4 cores asked, 0 used
    assert (gpu["n"], gpu["over"], gpu["under"]) == (3, 1, 1)
    assert (mem["n"], mem["over"]) == (3, 1)
    with pytest.raises(SpecError, match="nodes"):
        requests_against_use(tasks, unit="job", compat="pai")


def test_jobs_left_out_are_jobs(tasks: pa.Table, nodes: pa.Table, backend: Backend) -> None:
    """Three jobs have four tasks; without the nodes the third, of no known use, is in no sum."""
    by_rule, as_published = jobs_against_use(backend(tasks), backend(nodes))
    assert as_published
    assert by_rule.drop_columns(["left_out"]).equals(
        requests_against_use(tasks, nodes, unit="job", compat="pai").drop_columns(["left_out"])
    )
    plain, as_published = jobs_against_use(backend(tasks), None)
    assert not as_published
    for found in (by_rule, plain):
        jobs = len(set(tasks["job_id"].to_pylist()))
        assert [row["n"] + row["left_out"] for row in found.to_pylist()] == [jobs] * 3
    assert plain["n"].to_pylist()[0] < jobs


@pytest.mark.slow
@given(rows=DRAWN_ROWS, unit=st.sampled_from(["task", "job"]))
@settings(max_examples=20, deadline=None)
def test_overuse_equals_plain_python(rows: list[dict[str, Any]], unit: Any) -> None:
    tasks, nodes = drawn_tables(rows)
    for i, found in enumerate(requests_against_use(tasks, nodes, unit=unit).to_pylist()):
        resource = RESOURCES[i]
        both = [r for r in rows if r[resource.asked] is not None and r[resource.used] is not None]
        assert found["left_out"] == len(rows) - len(both)
        groups: dict[Any, list[dict[str, Any]]] = {}
        for place, row in enumerate(both):
            groups.setdefault(row["job_id"] if unit == "job" else place, []).append(row)
        sums = [
            (sum(r[resource.asked] for r in g), sum(r[resource.used] for r in g), g)
            for g in groups.values()
        ]
        assert found["n"] == len(sums)
        assert found["over"] == sum(used > asked for asked, used, _ in sums)
        assert found["under"] == sum(used < asked for asked, used, _ in sums)
        excess = [
            (used - asked) / sum(drawn_cap(r, i) for r in g)  # type: ignore[misc]
            for asked, used, g in sums
            if all(drawn_cap(r, i) is not None for r in g) and sum(drawn_cap(r, i) for r in g)  # type: ignore[misc]
        ]
        assert found["excess_n"] == len(excess)
        if excess:
            assert found["mean_excess"] == pytest.approx(np.mean(excess))
        else:
            assert found["mean_excess"] is None


@pytest.mark.slow
@given(rows=DRAWN_ROWS)
@settings(max_examples=20, deadline=None)
def test_the_notebooks_rule_equals_plain_python(rows: list[dict[str, Any]]) -> None:
    tasks, nodes = drawn_tables(rows)
    used = [r for r in rows if any(r[resource.used] is not None for resource in RESOURCES)]
    table = requests_against_use(tasks, nodes, unit="job", compat="pai").to_pylist()
    for i, found in enumerate(table):
        resource = RESOURCES[i]
        shares = []
        for job in {r["job_id"] for r in used}:
            mine = [r for r in used if r["job_id"] == job]
            plan = sum(r[resource.asked] or 0 for r in mine)
            use = sum(r[resource.used] or 0 for r in mine)
            cap = sum(drawn_cap(r, i) or 0 for r in mine)
            with np.errstate(all="ignore"):
                shares.append(float(np.float64(use - plan) / np.float64(cap)))
        known = [s for s in shares if not np.isnan(s)]
        assert found["n"] == len(known)
        assert found["over"] == sum(s > 0 for s in known)
        assert found["under"] == sum(s < 0 for s in known)


def test_a_table_without_use_is_refused_by_name(tasks: pa.Table) -> None:
    with pytest.raises(SchemaError, match="gpus_used"):
        requests_against_use(tasks.drop_columns(["gpus_used"]))
