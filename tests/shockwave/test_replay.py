"""A given schedule, flown on the simulator of all policies."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.cli.root import windtunnel

if TYPE_CHECKING:
    from pathlib import Path

JOBS = {
    "job_id": ["a", "b", "c"],
    "submit_time": [0.0, 0.0, 30.0],
    "duration": [1.0, 1.0, 1.0],
    "num_gpus": [2, 1, 1],
}
#: In the second round c has b's GPU, and b comes back in the third.
ROUNDS = "round,job,gpus\n0,a,0 1\n0,b,2\n1,a,0 1\n1,c,2\n2,b,3\n"


def written(folder: Path, text: str) -> str:
    """Return the path of a schedule."""
    path = folder / "schedule.csv"
    path.write_text(text)
    return str(path)


def test_rounds_by_hand(tmp_path: Path) -> None:
    clock = ":length=100:stop_time=10:each_stop=2:delay=5:last_part=0.5"
    out = wt.simulate(JOBS, "2x2", replay=written(tmp_path, ROUNDS) + clock)
    # b loses its GPU after the first round, which lasts 112 s; c and a end in mid-round.
    assert out.table["start_time"].to_pylist() == [5.0, 5.0, 117.0]
    assert out.table["end_time"].to_pylist() == pytest.approx([167.0, 267.0, 167.0])
    stays = [(s["row"], s["start"], s["nodes"]) for s in out.segments.to_pylist()]
    assert stays == [(0, 5.0, [0]), (1, 5.0, [1]), (2, 117.0, [1]), (1, 217.0, [1])]
    assert out.settings["policy"] == "replay"
    on_pool = wt.simulate(JOBS, "pool:4", replay=written(tmp_path, ROUNDS) + clock)
    assert on_pool.table["end_time"].equals(out.table["end_time"])


@pytest.mark.parametrize("policy", ["srtf", "sjf", "shockwave:gandiva_fair:round=10"])
def test_a_simulated_schedule_gives_its_own_completions(policy: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    jobs = {
        "submit_time": np.sort(rng.integers(0, 60, 25)).astype(float).tolist(),
        "duration": rng.integers(5, 60, 25).astype(float).tolist(),
        "num_gpus": rng.choice([1, 2, 4], 25).tolist(),
    }
    first = wt.simulate(jobs, "3x4", policy)
    ids, path = first.table["job_id"].to_pylist(), tmp_path / "schedule.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("job", "start", "end", "gpus"))
        for stay in first.segments.to_pylist():
            held = zip(stay["nodes"], stay["node_gpus"], strict=True)
            gpus = [4 * node + number for node, count in held for number in range(count)]
            rows.writerow((ids[stay["row"]], stay["start"], stay["end"], " ".join(map(str, gpus))))
    for engine in ("compiled", "reference"):
        again = wt.simulate(jobs, "3x4", replay=str(path), engine=engine)
        ends = [out.table["end_time"].to_numpy() for out in (again, first)]
        np.testing.assert_allclose(*ends, rtol=1e-12)


def test_a_failed_node_delays_whom_it_stops(tmp_path: Path) -> None:
    name = written(tmp_path, "job,start,end,gpus\na,0,100,0 1\nb,0,50,2\nc,40,60,3\n")
    down = {"node_failures": [{"node": 0, "time": 20.0, "until": 120.0}]}
    out = wt.simulate(JOBS, "2x2", replay=name, disruptions=down)
    assert out.table["end_time"].to_pylist() == [220.0, 50.0, 60.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("round,job,gpus\n,a,0\n", "line 2"),
        ("job,start,end\na,,3\n", "line 2"),
        ("round,job,gpus\n0,a,0 9\n", "line 2.*numbers of GPUs, 0 to 3"),
        ("round,job,gpus\n-1,a,0\n", "line 2"),
        ("job,start,end\na,5,3\n", "not before the start"),
        ("job,begin\na,1\n", "start"),
    ],
)
def test_schedules_that_are_none(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(wt.TraceError, match=message):
        wt.simulate(JOBS, "2x2", replay=written(tmp_path, text))


def test_what_does_not_go_with_it(tmp_path: Path) -> None:
    name = written(tmp_path, "job,start,end\na,0,3\n")
    (tmp_path / "other").mkdir()
    rounds = written(tmp_path / "other", ROUNDS)
    for given, options in (
        (name + ":length=3", {}),
        (name + ":lenght=3", {}),
        (name, {"policy": "sjf"}),
        (rounds + ":delay=-1", {}),
    ):
        with pytest.raises(wt.SpecError):
            wt.simulate(JOBS, "2x2", replay=given, **options)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "policy",
    [
        *("allox", "finish_time_fairness", "max_min_fairness", "max_sum_throughput_perf"),
        *("min_total_duration", "shockwave"),
    ],
)
def test_the_real_schedules(policy: str, data_dir: Path) -> None:
    """Two numbers fitted a run: completion by job within 0.7 % in the median, P90 2.5 %."""
    run = data_dir / "shockwave/physical" / policy
    jobs: Any = wt.open_trace(data_dir / "shockwave/120_jobs.trace").jobs
    name = f"{run / 'schedule.csv.gz'}:fit={run / 'jobs.csv.gz'}"
    out = wt.simulate(jobs, "4x8:v100", replay=name)
    from windtunnel.traces.tabular import read_text

    recorded = read_text(run / "jobs.csv.gz").finite("jct").to_numpy()
    off = np.abs(out.table["jct"].to_numpy() / recorded - 1)
    assert np.median(off) <= 0.007
    assert np.percentile(off, 90) <= 0.025


def test_the_command(tmp_path: Path) -> None:
    trace = tmp_path / "jobs.csv"
    trace.write_text("job_id,submit_time,duration,num_gpus\na,0,1,2\nb,0,1,1\nc,30,1,1\n")
    words = ["simulate", str(trace), "--cluster", "2x2", "--replay", written(tmp_path, ROUNDS)]
    ran = CliRunner().invoke(windtunnel, words)
    assert ran.exit_code == 0, ran.output
    assert "given schedule" in ran.output
