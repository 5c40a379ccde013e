"""What a run does with horizons, overheads, rejections and unusual tables; both engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import windtunnel as wt
from windtunnel.testing import assert_outcomes_equal

ENGINES = ("reference", "compiled")
engines = pytest.mark.parametrize("engine", ENGINES)
POLICIES = (
    "fifo",
    "sjf",
    "sjf-estimate",
    "sjf-preemptive",
    "srtf",
    "priority",
    "priority-preemptive",
)
JOBS = {"submit_time": [0.0, 1.0, 4.0], "duration": [5.0, 2.0, 9.0], "num_gpus": [1.0, 1.0, 1.0]}


@engines
@pytest.mark.parametrize("policy", ["fifo", "srtf"])
def test_a_horizon_cuts_the_run(engine: str, policy: str) -> None:
    # One GPU. fifo: a 0-5, b 5-7, c 7-16. srtf: a 0-1, b 1-3, a 3-7, c 7-16.
    def at(until: float) -> list[tuple[Any, ...]]:
        out = wt.simulate(JOBS, "pool:1", policy, until=until, engine=engine)
        names = ("status", "start_time", "end_time", "run_time")
        return list(zip(*(out.table[name].to_pylist() for name in names), strict=True))

    none = ("not_submitted", None, None, 0.0)
    assert at(0.0) == [("running", 0.0, None, 0.0), none, none]
    if policy == "fifo":
        assert at(4.0) == [
            ("running", 0.0, None, 4.0),
            ("waiting", None, None, 0.0),
            ("waiting", None, None, 0.0),
        ]
        assert at(5.0)[:2] == [("finished", 0.0, 5.0, 5.0), ("running", 5.0, None, 0.0)]
    else:
        assert at(2.5) == [("waiting", 0.0, None, 1.0), ("running", 1.0, None, 1.5), none]
        assert at(4.0) == [
            ("running", 0.0, None, 2.0),
            ("finished", 1.0, 3.0, 2.0),
            ("waiting", None, None, 0.0),
        ]
    assert at(7.5)[2] == ("running", 7.0, None, 0.5)
    whole = wt.simulate(JOBS, "pool:1", policy, engine=engine)
    assert_outcomes_equal(whole, wt.simulate(JOBS, "pool:1", policy, until=None, engine=engine))
    assert at(16.0)[2] == ("finished", 7.0, 16.0, 9.0)


@engines
def test_a_horizon_before_everything(engine: str) -> None:
    jobs = {**JOBS, "submit_time": [10.0, 11.0, 14.0]}
    for policy in POLICIES[:2] + POLICIES[3:]:
        out = wt.simulate(jobs, "pool:1", policy, until=9.0, engine=engine)
        assert out.table["status"].to_pylist() == ["not_submitted"] * 3
        assert (len(out.segments), out.metrics()["scheduling_points"]) == (0, 0)
        assert out.flight.run_time.dtype == np.float64
        assert out.metrics()["utilization"] is None


@engines
def test_save_and_restore_are_paid_at_each_resumption(engine: str) -> None:
    # a runs 0-4, b 4-6; a resumes at 6: 3 s overhead, 6 s of work, done at 15.
    jobs = {"submit_time": [0.0, 4.0], "duration": [10.0, 2.0], "num_gpus": [1.0, 1.0]}
    out = wt.simulate(jobs, "pool:1", "srtf", save_time=1, restore_time=2, engine=engine)
    assert out.table["end_time"].to_pylist() == [15, 6]
    assert out.table["run_time"].to_pylist() == [13, 2]
    metrics = out.metrics()
    assert (metrics["gpu_time"], metrics["num_preemptions"]) == (15, 1)
    assert metrics["avg_preempted_time"] == 1  # a waited 2 s after its first start, b none


@engines
def test_nothing_is_gained_during_the_overhead(engine: str) -> None:
    # As above, but c (1 s) arrives at 7, one second into a's overhead of three: a has still 6 s of
    # work, and pays the overhead again from 8 on: 8 + 3 + 6 = 17.
    jobs = {"submit_time": [0.0, 4.0, 7.0], "duration": [10.0, 2.0, 1.0], "num_gpus": [1.0] * 3}
    out = wt.simulate(jobs, "pool:1", "srtf", save_time=3, engine=engine)
    assert out.table["end_time"].to_pylist() == [17, 6, 8]
    assert out.table["run_time"].to_pylist() == [4 + 1 + 9, 2, 1]
    assert out.table["num_preemptions"].to_pylist() == [2, 0, 0]


@engines
def test_the_overhead_counts_in_what_is_left(engine: str) -> None:
    # At 6 a (6 s left + 3 s overhead = 9 to go) meets c (8 s): by time left c goes first.
    jobs = {"submit_time": [0.0, 4.0, 5.0], "duration": [10.0, 2.0, 8.0], "num_gpus": [1.0] * 3}
    out = wt.simulate(jobs, "pool:1", "srtf", restore_time=3, engine=engine)
    assert out.table["end_time"].to_pylist() == [14 + 9, 6, 14]


@engines
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("disruptions", [None, {"node_failures": [{"node": 0, "time": 3.0}]}])
def test_an_empty_table_flies(engine: str, policy: str, disruptions: Any) -> None:
    jobs: dict[str, list[float]] = {name: [] for name in (*JOBS, "estimate")}
    out = wt.simulate(jobs, "2x2", policy, engine=engine, disruptions=disruptions)
    metrics = out.metrics()
    assert (metrics["num_jobs"], metrics["avg_wait"], metrics["makespan"]) == (0, None, None)
    assert (len(out.table), len(out.segments), len(out.queue())) == (0, 0, 0)
    assert (len(out.by_size()), len(out.by_vc()), len(out.utilization())) == (0, 0, 0)
    other = wt.simulate(jobs, "2x2", policy, engine="reference", disruptions=disruptions)
    assert_outcomes_equal(out, other)


@engines
def test_zero_durations_and_zero_gpus(engine: str) -> None:
    # The zero-GPU job never waits; zero-second jobs start in turn, all at 0.
    jobs = {
        "submit_time": [0.0] * 4,
        "duration": [0.0, 0.0, 5.0, 3.0],
        "num_gpus": [2.0, 2.0, 2.0, 0.0],
    }
    out = wt.simulate(jobs, "1x2", "fifo", engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 0, 0, 0]
    assert out.table["end_time"].to_pylist() == [0, 0, 5, 3]
    assert out.table["nodes"].to_pylist() == [[0], [0], [0], []]
    assert out.metrics()["scheduling_points"] == 5  # three at 0, then 3 and 5


@engines
def test_jobs_too_large_raise_or_are_listed(engine: str) -> None:
    jobs = {**JOBS, "job_id": ["a", "b", "c"], "num_gpus": [1.0, 5.0, 9.0]}
    with pytest.raises(wt.SchemaError) as error:
        wt.simulate(jobs, "2x2", engine=engine)
    text = str(error.value)
    assert "job 'b' asks for 5 GPUs; the cluster cannot hold it: 4 GPUs: 2 nodes x 2 GPUs" in text
    assert "(2 rows, first in row 2: 5.0)" in text
    assert "oversize='reject'" in text
    out = wt.simulate(jobs, "2x2", oversize="reject", engine=engine)
    assert out.table["status"].to_pylist() == ["finished", "rejected", "rejected"]
    assert out.table["reason"].to_pylist()[0] is None
    assert out.table["reason"].to_pylist()[2].startswith("asks for 9 GPUs; the cluster cannot")
    metrics = out.metrics()
    assert (metrics["num_rejected"], metrics["num_finished"], metrics["avg_jct"]) == (2, 1, 5)


@engines
def test_a_gang_that_fits_in_number_but_not_by_task(engine: str) -> None:
    jobs = {"submit_time": [0.0], "duration": [1.0], "num_gpus": [6.0], "num_tasks": [2]}
    with pytest.raises(wt.SchemaError, match="asks for 6 GPUs"):
        wt.simulate(jobs, "3x2", engine=engine)
    out = wt.simulate(jobs, "2x4", engine=engine)
    assert out.table["nodes"].to_pylist() == [[0, 1]]


@engines
def test_a_gpu_type_nobody_has(engine: str) -> None:
    jobs = {**JOBS, "gpu_type": [None, "T4|V100", "V100"]}
    out = wt.simulate(jobs, "1x2:T4", oversize="reject", engine=engine)
    assert out.table["status"].to_pylist() == ["finished", "finished", "rejected"]
    assert "asks for 1 GPUs of type V100" in out.table["reason"][2].as_py()


@engines
def test_types_mean_nothing_where_the_cluster_tells_none_apart(engine: str) -> None:
    out = wt.simulate({**JOBS, "gpu_type": ["T4", None, "V100"]}, "1x2", engine=engine)
    assert out.metrics()["num_finished"] == 3
    (note,) = out.notes
    assert note.startswith("2 jobs name a GPU type; the cluster tells no types apart")


@engines
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("column", ["submit_time", "duration", "num_gpus"])
def test_incomplete_jobs_raise_or_are_listed(engine: str, policy: str, column: str) -> None:
    jobs = {**JOBS, "job_id": ["a", "b", "c"], "estimate": [5.0, 2.0, 9.0]}
    jobs[column] = [*JOBS[column][:1], None, *JOBS[column][2:]]
    with pytest.raises(wt.SchemaError) as error:
        wt.simulate(jobs, "pool:1", policy, engine=engine)
    assert f"{column!r}: expected a known value; job 'b' has none (1 row" in str(error.value)
    out = wt.simulate(jobs, "pool:1", policy, incomplete="reject", engine=engine)
    assert out.table["status"].to_pylist() == ["finished", "rejected", "finished"]
    assert out.table["reason"].to_pylist() == [None, f"{column} unknown", None]
    metrics = out.metrics()
    assert (metrics["gpu_time"], metrics["num_rejected"]) == (14, 1)
    assert 0 < metrics["utilization"] <= 1
    assert sum(out.by_size()["gpu_time"].to_pylist()) == 14
    assert sum(out.by_vc()["gpu_time"].to_pylist()) == 14


@engines
def test_a_rejected_job_needs_no_key(engine: str) -> None:
    jobs = {**JOBS, "num_gpus": [1.0, 9.0, 1.0], "estimate": [5.0, None, 9.0]}
    out = wt.simulate(jobs, "pool:1", "sjf-estimate", oversize="reject", engine=engine)
    assert out.table["status"].to_pylist() == ["finished", "rejected", "finished"]


def test_all_that_is_incomplete_is_reported_at_once() -> None:
    jobs = {"submit_time": [None, 0.0, None], "duration": [1.0, None, 1.0], "num_gpus": [1.0] * 3}
    with pytest.raises(wt.SchemaError) as error:
        wt.simulate(jobs, "pool:1")
    assert [v.count for v in error.value.violations] == [2, 1]
    assert [v.column for v in error.value.violations] == ["submit_time", "duration"]


@engines
def test_shares_of_a_gpu(engine: str) -> None:
    jobs = {"submit_time": [0.0] * 4, "duration": [2.0] * 4, "num_gpus": [0.3, 0.7, 0.1, 1 / 3]}
    out = wt.simulate(jobs, "pool:1", engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 0, 2, 2]  # 0.3 + 0.7 is exactly a GPU
    # On one device 0.3 + 0.7 are a GPU, too, and two more shares go to the other one.
    shared = wt.simulate({**jobs, "num_gpus": [0.3, 0.7, 0.1, 0.5]}, "1x2", engine=engine)
    assert shared.table["start_time"].to_pylist() == [0, 0, 0, 0]
    assert shared.segments["devices"].to_pylist() == [[[0]], [[0]], [[1]], [[1]]]
    assert shared.segments["node_gpus"].to_pylist() == [[0.3], [0.7], [0.1], [0.5]]
    assert shared.settings["sharing"] == "devices"
    # Half of one device and half of another are no GPU, unless a node's GPUs are one pool.
    halves = {**jobs, "num_gpus": [0.6, 0.6, 0.8, 0.0]}
    apart = wt.simulate(halves, "1x2", engine=engine)
    assert apart.table["start_time"].to_pylist() == [0, 0, 2, 2]
    pooled = wt.simulate(halves, "1x2", sharing="pooled", engine=engine)
    assert pooled.table["start_time"].to_pylist() == [0, 0, 0, 0]
    with pytest.raises(wt.SchemaError, match="cannot put GPUs together"):
        wt.simulate({**jobs, "num_gpus": [1.5, 1, 1, 1]}, "1x8", engine=engine)
    assert wt.simulate(jobs, "1x8", placement="pool", engine=engine).metrics()["max_wait"] == 0
    with pytest.raises(wt.SchemaError, match="a share of at least 1e-06 GPU; job '0' asks"):
        wt.simulate({**jobs, "num_gpus": [1e-7, 1, 1, 1]}, "pool:1", engine=engine)


@engines
def test_a_pool_with_cores(engine: str) -> None:
    # 8 cores: two jobs of 4 fill them, whatever GPUs are left; null asks for none.
    jobs = {
        "submit_time": [0.0] * 4,
        "duration": [2.0] * 4,
        "num_gpus": [1.0, 0.0, 1.0, 1.0],
        "num_cpus": [4.0, 4.0, 0.5, None],
    }
    out = wt.simulate(jobs, wt.ClusterSpec.pool(4, cpus=8), queueing="skip", engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 0, 2, 0]
    assert out.notes == ("1 jobs without a CPU request were given no CPU constraint.",)


@engines
def test_a_pool_per_gpu_type(engine: str) -> None:
    # Two pools: 2 T4, 4 V100. The fuller pool that suffices is taken; gangs do not span them.
    jobs = {
        "submit_time": [0.0, 0.0, 1.0, 2.0],
        "duration": [3.0, 9.0, 3.0, 3.0],
        "num_gpus": [1.0, 4.0, 2.0, 1.0],
        "gpu_type": [None, "V100", "T4|V100", None],
    }
    out = wt.simulate(jobs, "1x2:T4,2x2:V100", placement="pool", engine=engine)
    # a takes a T4 and b all V100; c needs two of one type: T4 at 3; d the V100s at 9? No: T4 at 6.
    assert out.table["start_time"].to_pylist() == [0, 0, 3, 6]
    with pytest.raises(wt.SchemaError, match="asks for 5 GPUs"):
        wt.simulate(
            {**jobs, "num_gpus": [5.0, 1.0, 1.0, 1.0]},
            "1x2:T4,2x2:V100",
            placement="pool",
            engine=engine,
        )


class Stream:
    """Anything that exports the Arrow C stream, and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Lazy:
    """An expression that is turned into Arrow on request, as ibis' are."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def to_pyarrow(self) -> pa.Table:
        return self.table


def test_jobs_may_be_given_in_any_table() -> None:
    columns: dict[str, Any] = {**JOBS, "user": ["u", None, "v"], "num_tasks": [1, 1, None]}
    table = pa.table(columns)
    expected = wt.simulate(columns, "2x2")
    for jobs in (table, Stream(table), Lazy(table), pd.DataFrame(columns), expected.jobs):
        assert_outcomes_equal(wt.simulate(jobs, "2x2"), expected)
    arrays = {name: np.asarray(values) for name, values in JOBS.items()}
    assert wt.simulate(arrays, "2x2").table.equals(expected.table)
    chunks = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    assert chunks["user"].num_chunks == 2
    assert_outcomes_equal(wt.simulate(chunks, "2x2"), expected)
    assert expected.jobs["job_id"].to_pylist() == ["0", "1", "2"]


@pytest.mark.parametrize(
    "jobs",
    [
        3,
        [1, 2],
        {"submit_time": 0, "duration": 1, "num_gpus": 1},
        {"submit_time": [0], "duration": [1, 2], "num_gpus": [1]},
        {"submit_time": [object()], "duration": [1], "num_gpus": [1]},
        {"submit_time": ["x"], "duration": [1], "num_gpus": [1]},
        {"submit_time": np.zeros((1, 2)), "duration": [1], "num_gpus": [1]},
    ],
)
def test_what_is_no_table_is_refused(jobs: Any) -> None:
    with pytest.raises(wt.SchemaError, match="the jobs table breaks the schema"):
        wt.simulate(jobs, "2x2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queueing": "strct"}, "queueing: unknown name 'strct'. Did you mean 'strict'?"),
        ({"placement": "bestfit"}, "placement: unknown name 'bestfit'. Did you mean 'best_fit'?"),
        ({"oversize": "drop"}, "oversize: unknown name 'drop'. Known: raise, reject."),
        ({"incomplete": "drop"}, "incomplete: unknown name 'drop'. Known: raise, reject."),
        ({"until": -1}, "until: found -1; expected seconds >= 0"),
        ({"until": float("nan")}, "until: found nan; expected seconds >= 0"),
        ({"save_time": "x"}, "save_time: found 'x'; expected seconds >= 0"),
        ({"restore_time": float("inf")}, "restore_time: found inf; expected seconds >= 0"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(wt.SpecError) as error:
        wt.simulate(JOBS, "2x2", **options)
    assert str(error.value).startswith(message)
    assert error.value.path == next(iter(options))


def test_a_type_that_is_to_bind_is_known() -> None:
    jobs = {**JOBS, "gpu_type": ["A100"] * len(JOBS["submit_time"])}
    wt.simulate(jobs, "2x2:T4", bind_types=("T4",))
    with pytest.raises(wt.SpecError, match=r"unknown name 'A10'\. Did you mean 'A100'"):
        wt.simulate(jobs, "2x2:T4", bind_types=("A10",))


def test_settings_are_enough_to_run_it_again() -> None:
    out = wt.simulate(JOBS, "2x2", "srtf", save_time=1, seed=7, until=30.0)
    assert out.settings == {
        "policy": "srtf",
        "queueing": "skip",
        "placement": "best_fit",
        "sharing": None,
        "resources": "all",
        "bind_types": None,
        "arrivals": None,
        "compat": None,
        "estimates": None,
        "events": "batch",
        "ready": None,
        "preemption": "feasible",
        "quotas": None,
        "blocking_limits": False,
        "decide_every": None,
        "engine": "compiled",
        "seed": 7,
        "save_time": 1,
        "restore_time": None,
        "slowdown": None,
        "until": 30.0,
        "oversize": "raise",
        "incomplete": "raise",
        "disruptions": None,
        "power": None,
        "power_cap": None,
        "shift": None,
        "node_sleep": None,
        "metrics": None,
        "window": None,
        "slurm_conf": None,
        "slurm": None,
        "replay": None,
        "topology": None,
        "topology_request": None,
    }
    assert_outcomes_equal(wt.simulate(JOBS, "2x2", **out.settings), out)


def test_a_comparison_flies_them_all() -> None:
    done: list[str] = []
    runs = wt.compare(JOBS, "pool:1", ["fifo", "srtf"], on_done=done.append, save_time=1.0)
    assert done == ["fifo", "srtf"] == list(runs.outcomes)
    assert runs.table["policy"].to_pylist() == done
    assert runs.table["avg_jct"].to_pylist() == [runs[p].metrics()["avg_jct"] for p in done]
    assert_outcomes_equal(runs["srtf"], wt.simulate(JOBS, "pool:1", "srtf", save_time=1.0))
    for bad, message in (
        ([], "at least one policy, each once"),
        (["fifo", "fcfs"], "name each once"),
    ):
        with pytest.raises(wt.SpecError, match=message):
            wt.compare(JOBS, "pool:1", bad)


def test_a_placement_without_nodes_to_choose_from_is_told() -> None:
    jobs = {"submit_time": [0, 0], "duration": [5, 5], "num_gpus": [1, 1]}
    note = "The cluster has no nodes to choose from: placement 'fgd' was flown as a pool."
    assert note in wt.simulate(jobs, "pool:2", placement="fgd").notes
    for cluster, placement in (("pool:2", None), ("pool:2", "pool"), ("1x2", "fgd")):
        outcome = wt.simulate(jobs, cluster, placement=placement)
        assert not any("no nodes to choose" in one for one in outcome.notes)
