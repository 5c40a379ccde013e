"""Waits split by cause: hand-worked cases, a second implementation, and a log with eligibility."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.cluster import ClusterSpec
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs
from windtunnel.study.in_front import in_front
from windtunnel.study.recording import observed_cluster
from windtunnel.study.simulate import simulate
from windtunnel.study.wait_causes import CAUSES, WaitCauses, hours_of, limits_of, wait_causes
from windtunnel.traces import open_trace

if TYPE_CHECKING:
    from pathlib import Path

Job = tuple[int, int | None, int, int]


def history(rows: list[Job], vcs: list[str] | None = None, **more: Any) -> Any:
    """Return jobs recorded as (submit, start, run time, GPUs)."""
    columns = {
        "job_id": [str(i) for i in range(len(rows))],
        "submit_time": [row[0] for row in rows],
        "start_time": [row[1] for row in rows],
        "end_time": [None if row[1] is None else row[1] + row[2] for row in rows],
        "duration": [row[2] for row in rows],
        "num_gpus": [row[3] for row in rows],
        "vc": vcs or ["a"] * len(rows),
        **more,
    }
    return as_jobs(columns)


def causes_of(found: WaitCauses, row: int) -> dict[str, float]:
    place = found.rows.tolist().index(row)
    causes = dict(zip(CAUSES, found.causes[place].tolist(), strict=True))
    return {cause: seconds for cause, seconds in causes.items() if seconds}


def test_busy_gpus_and_who_was_served_first() -> None:
    """B waits for A, then for C, which came later and was started first."""
    jobs = history([(0, 0, 10, 4), (1, 25, 5, 4), (2, 10, 15, 4)])
    found = wait_causes(jobs, ClusterSpec.pool(4))
    assert causes_of(found, 1) == {"resources": 9.0, "order": 15.0}
    assert causes_of(found, 2) == {"resources": 8.0}
    assert causes_of(found, 0) == {}
    front = found.in_front("vc")
    assert front[0]["vc"] == "a"
    # While B or C waits (9 + 8 + 15 s together) 4 GPUs are held at every instant.
    assert front[0]["gpus"] == pytest.approx(4)


def test_fragments_are_distinguished_from_busy_gpus() -> None:
    """Two nodes of 4: three of 2 GPUs leave 2 on one of them; 3 GPUs are not on one node."""
    cluster = ClusterSpec.uniform(nodes=2, gpus_per_node=4)
    jobs = history([(0, 0, 10, 3), (0, 0, 10, 3), (1, 10, 5, 2)])
    assert causes_of(wait_causes(jobs, cluster), 2) == {"fragmentation": 9.0}
    assert causes_of(wait_causes(jobs, ClusterSpec.pool(8)), 2) == {"other": 9.0}


def test_unused_gpus_are_order_only_behind_somebody() -> None:
    jobs = history([(0, 0, 10, 3), (1, 10, 5, 2), (2, 12, 5, 1)])
    found = wait_causes(jobs, ClusterSpec.pool(4))
    assert causes_of(found, 1) == {"resources": 9.0}
    assert causes_of(found, 2) == {"order": 8.0, "other": 2.0}


def test_quotas_come_before_busy_gpus(tmp_path: Path) -> None:
    jobs = history([(0, 0, 10, 2), (1, 10, 5, 2), (1, 3, 2, 2)], ["a", "a", "b"])
    found = wait_causes(jobs, ClusterSpec.pool(8), quotas={"a": 2.0})
    assert causes_of(found, 1) == {"quota": 9.0}
    assert causes_of(found, 2) == {"order": 2.0}  # behind the job that its quota held up
    named = wait_causes(jobs, ClusterSpec.pool(8), quotas={"a": 2.0, "*": 1.0, "vX": 1.0})
    extra = set(named.notes) - set(found.notes)
    assert extra == {"The quotas name vc 'vX'; the trace has 'a', 'b'."}
    path = tmp_path / "q.toml"
    path.write_text(
        '[[queues]]\nvc = "a"\nnominal_quota = 2\n[[queues]]\nvc = "b"\nnominal_quota = 4\n'
        'cohort = "c"\nborrowing_limit = 1\n[[queues]]\nvc = "d"\nnominal_quota = 3\n'
        'cohort = "c"\n',
        encoding="utf-8",
    )
    assert limits_of(str(path)) == {"a": 2.0, "b": 5.0, "d": 7.0}
    with pytest.raises(SpecError):
        limits_of(str(tmp_path / "none.toml"))


def test_a_dependency_ends_when_the_job_is_eligible() -> None:
    jobs = history([(0, 8, 5, 1)], eligible_time=[6.0])
    assert causes_of(wait_causes(jobs, ClusterSpec.pool(1)), 0) == {"dependency": 6.0, "other": 2.0}
    late = history([(0, 8, 5, 1)], eligible_time=[60.0])
    assert causes_of(wait_causes(late, ClusterSpec.pool(1)), 0) == {"dependency": 8.0}


def test_a_job_that_is_held_is_before_nobody() -> None:
    rows: list[Job] = [(0, None, 0, 1), (1, 5, 5, 1)]
    held = history(rows, status=["pending", "completed"], reason=["JobHeldUser", None])
    waits = history(rows, status=["pending", "completed"], reason=["Priority", None])
    assert causes_of(wait_causes(held, ClusterSpec.pool(4)), 1) == {"other": 4.0}
    assert causes_of(wait_causes(waits, ClusterSpec.pool(4)), 1) == {"order": 4.0}
    assert wait_causes(held, ClusterSpec.pool(4)).left_out == {}
    assert wait_causes(waits, ClusterSpec.pool(4)).left_out == {"that never started": 1}


def test_more_than_the_cluster_has_counts_as_taken() -> None:
    jobs = history([(0, 0, 10, 4), (0, 0, 4, 4), (1, 10, 5, 4)])
    found = wait_causes(jobs, ClusterSpec.pool(4))
    assert causes_of(found, 2) == {"resources": 9.0}
    assert any("had no room so: 1;" in note for note in found.notes)


@st.composite
def _histories(draw: st.DrawFn) -> tuple[list[Job], list[str], int]:
    size = draw(st.integers(1, 10))
    rows: list[Job] = []
    for _ in range(size):
        submit, run, gpus = (
            draw(st.integers(0, 12)),
            draw(st.integers(0, 8)),
            draw(st.integers(0, 5)),
        )
        wait = draw(st.none() | st.integers(0, 12))
        rows.append((submit, None if wait is None else submit + wait, run, gpus))
    vcs = draw(st.lists(st.sampled_from("ab"), min_size=size, max_size=size))
    return rows, vcs, draw(st.integers(5, 9))


@given(case=_histories(), limit=st.none() | st.integers(0, 6))
def test_a_second_by_second_account_says_the_same(
    case: tuple[list[Job], list[str], int], limit: int | None
) -> None:
    rows, vcs, gpus = case
    quotas = None if limit is None else {"a": float(limit)}
    found = wait_causes(history(rows, vcs), ClusterSpec.pool(gpus), quotas=quotas)
    assert found.causes.sum(axis=1) == pytest.approx(found.wait)
    line = [(row[0], index) for index, row in enumerate(rows) if row[3]]
    line = [index for _, index in sorted(line)]

    def held(second: int, among: list[int]) -> int:
        running = (rows[i] for i in among)
        return sum(g for _, s, run, g in running if s is not None and s <= second < s + run)

    for place, index in enumerate(line):
        submit, start, _, asked = rows[index]
        if start is None:
            continue
        expected = dict.fromkeys(CAUSES, 0.0)
        for second in range(submit, start):
            of_vc = [i for i in line if vcs[i] == vcs[index]]
            free = gpus - held(second, line)
            starts = [rows[i][1] for i in line[:place]]
            if quotas and vcs[index] == "a" and held(second, of_vc) + asked > quotas["a"]:
                cause = "quota"
            elif free < asked:
                behind = held(second, line[place + 1 :])
                cause = "order" if free + behind >= asked else "resources"
            else:
                cause = "order" if any(s is None or s > second for s in starts) else "other"
            expected[cause] += 1
        assert causes_of(found, index) == {c: s for c, s in expected.items() if s}


def test_hours_are_those_of_the_zone() -> None:
    times = np.array([0.0, 3600.0 * 5])
    assert hours_of(times, None, None).tolist() == [0, 5]
    assert hours_of(times, "2025-01-01T22:30:00+00:00", None).tolist() == [22, 3]
    assert hours_of(times, "2025-01-01T22:30:00+00:00", "Asia/Shanghai").tolist() == [6, 11]


def test_the_sample_log_against_direct_queries(data_dir: Path) -> None:
    """Job 1040 waited 1 s of 1801 s in the queue (README of the samples)."""
    import duckdb

    trace = open_trace(data_dir / "formats" / "sacct_parsable2.txt", zone="America/New_York")
    cluster = observed_cluster(trace.jobs)
    assert cluster is not None
    found = wait_causes(trace.jobs, cluster)
    row = trace.jobs["job_id"].to_pylist().index("1040")
    # One task of an array was eligible before it, and still waited.
    assert causes_of(found, row) == {"dependency": 1800.0, "order": 1.0}
    jobs = trace.jobs
    waited, most = duckdb.sql(
        "with e as (select start_time t, num_gpus g from jobs where start_time is not null "
        "union all select coalesce(end_time, start_time + duration), -num_gpus from jobs "
        "where start_time is not null), s as (select t, sum(g) g from e group by t) "
        "select (select sum(start_time - submit_time) from jobs where num_gpus > 0 "
        "and start_time is not null), (select max(c) from (select sum(g) over (order by t) c "
        "from s))"
    ).fetchall()[0]
    assert sum(found.total().values()) == pytest.approx(waited)
    assert cluster.num_gpus == most
    assert jobs.num_rows == 29


def test_who_is_in_front_of_a_job() -> None:
    rows: list[Job] = [(0, 0, 10, 3), (1, 12, 5, 4), (2, 10, 5, 1), (3, None, 0, 2)]
    jobs = history(rows, user=["u", "v", None, "w"], status=[*["completed"] * 3, "pending"])
    found = wait_causes(jobs, ClusterSpec.pool(4))
    job = in_front(found, "2")
    assert (job.at, job.wait, job.causes and job.causes["resources"]) == (2.0, 8.0, 0.0)
    assert [(row["job_id"], row["end_time"]) for row in job.running] == [("0", 10.0)]
    assert [(row["job_id"], row["user"], row["since"]) for row in job.waiting] == [("1", "v", 1.0)]
    assert (job.running_gpus, job.waiting_gpus) == (3.0, 4.0)
    last = in_front(found, "3")
    assert (last.at, last.wait, last.causes, last.running) == (17.0, None, None, [])
    with pytest.raises(SpecError, match=r"--job: found job '.*'; the trace has"):
        in_front(found, "9")


@pytest.mark.slow
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(1, 12)),
        min_size=1,
        max_size=25,
    ),
    policy=st.sampled_from(("fifo", "sjf")),
)
def test_a_run_that_leaves_no_gpus_unused_has_no_other_cause(
    rows: list[tuple[int, int, int]], policy: str
) -> None:
    """Under `skip` a job that fits starts: no wait is left that nothing explains."""
    cluster = ClusterSpec.uniform(nodes=3, gpus_per_node=4)
    jobs = {
        "submit_time": [float(row[0]) for row in rows],
        "duration": [float(row[1]) for row in rows],
        "num_gpus": [float(row[2]) for row in rows],
    }
    run = simulate(jobs, cluster, policy=policy, queueing="skip").table
    recorded = as_jobs({**jobs, "start_time": run["start_time"], "end_time": run["end_time"]})
    found = wait_causes(recorded, cluster)
    assert found.total()["other"] == 0
    assert found.causes.sum() == pytest.approx(np.nansum(run["wait"].to_numpy()))
    if policy == "fifo":
        strict = simulate(jobs, cluster, policy="fifo", queueing="strict").table
        times = {name: strict[name] for name in ("start_time", "end_time")}
        total = wait_causes(as_jobs({**jobs, **times}), cluster).total()
        assert total["other"] == 0


def test_nobody_is_in_front_of_itself_and_running_jobs_are_in_front_of_waiting_ones() -> None:
    # 0 and 1 start at once, 2 and 3 start when 4 joins: only 2, before it in the line, counts.
    rows: list[Job] = [(0, 0, 90, 2), (0, 0, 5, 1), (3, 5, 85, 1), (5, 5, 10, 1), (5, None, 0, 4)]
    status = ["running", "completed", "running", "completed", "pending"]
    jobs = history(rows, status=status, end_time=[None, 5, None, 15, None])
    found = wait_causes(jobs, ClusterSpec.pool(5))
    assert in_front(found, "0").running == []
    assert [row["job_id"] for row in in_front(found, "1").running] == ["0"]
    assert [row["job_id"] for row in in_front(found, "3").running] == ["0", "2"]
    last = in_front(found, "4")
    assert last.at == 90.0
    assert [(row["job_id"], row["end_time"]) for row in last.running] == [("0", None), ("2", None)]
    assert (last.running_gpus, last.left) == (3.0, None)


def test_who_was_in_front_of_a_job_that_was_cancelled_in_the_queue() -> None:
    rows: list[Job] = [(0, 0, 10, 4), (2, None, 0, 4), (3, 20, 30, 1)]
    status = ["completed", "cancelled", "completed"]
    jobs = history(rows, status=status, end_time=[10, 8, 50])
    job = in_front(wait_causes(jobs, ClusterSpec.pool(4)), "1")
    assert (job.at, job.left, job.wait) == (2.0, 8.0, None)
    assert [row["job_id"] for row in job.running] == ["0"]
