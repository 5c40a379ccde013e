"""Shockwave's published rounds: recorded runs, phases, and what must hold on any trace."""

from __future__ import annotations

import csv
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from check_runs import BANDS, found_of

import windtunnel as wt
from windtunnel.errors import SchemaError, SpecError, TraceError
from windtunnel.policies.shockwave.replay import Replay, RoundClock
from windtunnel.study import shockwave
from windtunnel.throughput.batch_sizes import Kind
from windtunnel.throughput.shockwave import shockwave_speeds

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

LINE = "{kind}\tpython3 main.py\timage\t--num_steps\t1\t{steps}\t{gpus}\t{mode}\t1\t-1.0\t9\t{at}\n"


@pytest.fixture(scope="module")
def folder(data_dir: Path) -> Path:
    """The published runs."""
    return data_dir / "shockwave"


def trace_of(tmp_path: Path, *lines: dict[str, Any]) -> pa.Table:
    """Return the jobs of a trace of such lines."""
    usual = {"kind": "LM (batch size 10)", "steps": 20_000, "gpus": 1, "mode": "static", "at": 0}
    path = tmp_path / "some.trace"
    path.write_text("".join(LINE.format(**{**usual, **line}) for line in lines), "utf-8")
    return wt.open_trace(path).jobs


def test_profiles_as_published(folder: Path) -> None:
    jobs = wt.open_trace(folder / "120_jobs.trace").jobs
    with (folder / "profiles.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert jobs["duration"].to_pylist() == [float(row["ideal_duration"]) for row in rows]
    assert jobs["mode"].to_pylist() == [row["mode"] for row in rows]


@pytest.mark.sample(1)
@pytest.mark.parametrize("run", ["recomputed/gandiva_fair", "recomputed/isolated"])
def test_every_job_and_round_equal(folder: Path, tmp_path: Path, run: str) -> None:
    found = found_of(folder / run, folder, tmp_path)
    assert found["profiles_largest_difference"] == 0.0
    assert found["within"]
    for column in ("jct", "ftf_static", "ftf_themis", "rounds_scheduled"):
        compared = found["compared"][f"job {column}"]
        assert (compared["equal"], compared["compared"]) == (120, 120), column
    for column in ("rounds", "cluster_util", "num_lease_extensions"):
        assert found["compared"][column]["equal"], column
    rows = found["compared"]["timeline rows"]
    assert rows["equal"] == rows["compared"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("run", ["simulated/max_min_fairness", "simulated/allox"])
def test_shares_within_their_band(folder: Path, tmp_path: Path, run: str) -> None:
    pytest.importorskip("scipy")
    assert found_of(folder / run, folder, tmp_path)["within"]


@pytest.mark.slow
def test_market_within_its_band(folder: Path, tmp_path: Path) -> None:
    found = found_of(folder / "simulated" / "shockwave", folder, tmp_path)
    assert found["band"] == list(BANDS["shockwave"])
    assert found["within"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "policy",
    [
        *("allox", "finish_time_fairness", "max_min_fairness"),
        *("max_sum_throughput_perf", "min_total_duration", "shockwave"),
    ],
)
def test_real_schedules_replayed(folder: Path, tmp_path: Path, policy: str) -> None:
    found = found_of(folder / "physical" / policy, folder, tmp_path)
    assert found["jobs"] == 120
    assert found["median_error"] <= 0.007
    assert found["p90_error"] <= 0.025


#: Part by which the published simulator is off the real runs: mean completion, makespan.
PUBLISHED = {
    "allox": (0.020, 0.012),
    "finish_time_fairness": (0.008, 0.0),
    "max_min_fairness": (0.084, 0.045),
    "max_sum_throughput_perf": (0.020, 0.090),
    "min_total_duration": (0.087, 0.057),
    "shockwave": (0.054, 0.074),
}


@pytest.mark.slow
def test_the_testbed_mode_is_nearer_to_real_runs(folder: Path, tmp_path: Path) -> None:
    nearer = 0
    for policy, bars in PUBLISHED.items():
        run = folder / "physical" / policy
        found = found_of(run, folder, tmp_path, flown=True)["testbed"]
        for column, bar in zip(("avg_jct", "makespan"), bars, strict=True):
            nearer += abs(found[column][0]) <= bar
    assert nearer >= 8


def test_a_testbed_starts_late_and_waits_for_stops(tmp_path: Path) -> None:
    table = trace_of(tmp_path, {}, {})
    flights = [
        wt.simulate(
            table,
            "v100:1",
            policy=f"shockwave:max_min_fairness:cut=1:testbed=1:seed={seed}",
            compat="shockwave",
        )
        for seed in (0, 0, 1)
    ]
    assert min(flights[0].flight.start) in {177, 183, 215, 747}
    ends = [flight.flight.end.tolist() for flight in flights]
    assert ends[0] == ends[1] != ends[2]
    for text in ("testbed=2", "seed=3", "testbed=1:seed=0.5"):
        with pytest.raises(SpecError):
            wt.simulate(table, "v100:1", policy=f"shockwave:allox:{text}", compat="shockwave")
    with pytest.raises(SpecError, match="compat"):
        wt.simulate(table, "v100:1", policy="shockwave:allox:testbed=1")


def test_other_folders_are_checked_too(folder: Path, tmp_path: Path) -> None:
    """Renamed, without its summary and other tables, and beside what cannot be compared."""
    root, run = tmp_path / "others", tmp_path / "others" / "deep" / "isolated"
    run.mkdir(parents=True)
    shutil.copy(folder / "120_jobs.trace", root / "renamed.trace")
    shutil.copy(folder / "recomputed" / "isolated" / "jobs.csv.gz", run)
    found = found_of(run, root, tmp_path)
    assert found["within"]
    assert found["compared"]["job jct"]["equal"] == 120
    assert abs(found["compared"]["makespan"]["difference"]) < 1e-9
    other = root / "deep" / "unknown"
    other.mkdir()
    (other / "summary.json").write_text('{"policy": "unknown"}')
    assert "no policy 'unknown'" in found_of(other, root, tmp_path)["error"]


def test_a_replay_by_hand() -> None:
    # Job 0 loses its GPU to job 1 after round 0 and comes back after round 1: two stops.
    replay = Replay([{0: (0,)}, {1: (0,)}, {0: (0,)}, {1: (0,)}])
    assert replay.stops.tolist() == [1, 1, 0, 0]
    ends = replay.ends(RoundClock(length=100.0, stop_time=10.0, each_stop=1.0, delay=5.0))
    assert ends == {0: 5 + 2 * 111 + 50, 1: 5 + 2 * 111 + 100 + 50}
    submit, jct = {0: 0.0, 1: 0.0}, replay.ends(RoundClock(stop_time=7.0, delay=30.0))
    clock = replay.fitted(submit, jct)
    assert replay.errors(clock, submit, jct).max() < 1e-12


def test_a_static_job_alone_by_hand(tmp_path: Path) -> None:
    jobs = trace_of(tmp_path, {})
    speed = shockwave_speeds()["LM", 1][10]
    run = wt.simulate(jobs, "v100:1", "shockwave:isolated:cut=inf", compat="shockwave")
    per_round = int(speed * 120)
    whole, rest = divmod(20_000, per_round)
    assert run.flight.end[0] == pytest.approx(whole * (per_round / speed) + rest / speed)


def test_a_job_that_waited_a_round_loses_the_overhead(tmp_path: Path) -> None:
    jobs = trace_of(tmp_path, {}, {})
    free = wt.simulate(jobs, "v100:1", "shockwave:isolated:cut=inf:overhead=0", compat="shockwave")
    paid = wt.simulate(jobs, "v100:1", "shockwave:isolated:cut=inf", compat="shockwave")
    # Job 1 waits for the first round; from then on one of the two has always waited.
    later = paid.flight.end.max() - free.flight.end.max()
    assert later == pytest.approx(20.0, abs=0.1)


def test_the_cut_ends_a_job_that_ran_too_long(tmp_path: Path) -> None:
    jobs = trace_of(tmp_path, {"steps": 200_000}, {"steps": 200_000})
    run = wt.simulate(jobs, "v100:1", "shockwave:isolated:cut=0.5", compat="shockwave")
    ideal = jobs["duration"].to_numpy()
    assert (run.flight.gpu_time < 0.5 * ideal + 120).all()
    assert any("0.5 times its ideal duration" in note for note in run.notes)


def test_batch_sizes_change_where_the_mode_says_so() -> None:
    static = Kind("LM", 10, 1, "static")
    assert set(static.planned(50)) == {10}
    gns = Kind("LM", 10, 1, "gns")
    assert gns.planned(11) == [10] * 11  # a pattern applies only beyond its first entry
    assert gns.planned(30)[10:12] == [10, 20]
    assert gns.planned(30)[-1] == 10  # published: the very last epoch has the first size
    accordion = Kind("ResNet-18", 32, 1, "accordion")
    assert accordion.planned(40)[:14] == [32] * 13 + [256]
    assert Kind("Transformer", 16, 1, "accordion").planned(30) == [16] * 30


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "policy", ["gandiva_fair", "isolated", "max_min_fairness", "max_sum_throughput_perf",
               "min_total_duration", "finish_time_fairness", "market"]
)  # fmt: skip
@pytest.mark.parametrize("compat", [None, "shockwave"])
def test_every_policy_accounts_for_every_job(
    tmp_path: Path, policy: str, compat: str | None
) -> None:
    lines = [
        {"gpus": g, "kind": f"LM (batch size {b})", "mode": mode, "at": 50 * n, "steps": 30_000}
        for n, (g, b, mode) in enumerate(
            [(1, 10, "gns"), (2, 20, "accordion"), (4, 5, "gns"), (1, 80, "static")] * 3
        )
    ]
    jobs = trace_of(tmp_path, *lines)
    name = f"shockwave:{policy}"
    one, other = (wt.simulate(jobs, "v100:4", name, compat=compat) for _ in range(2))
    assert one.metrics()["num_finished"] == len(lines)
    assert one.table.equals(other.table)
    held = np.nansum(one.flight.run_time * jobs["num_gpus"].to_numpy())
    assert held <= 4 * one.flight.end.max() * (1 + 1e-9)


def test_other_traces_and_failures_fly_on_our_simulator() -> None:
    jobs = wt.open_trace("synthetic:philly:jobs=60:seed=2").jobs
    run = wt.simulate(
        jobs, "8x8:v100", "shockwave:market", disruptions="mtbf:20d/mttr:4h", seed=1,
        oversize="reject",
    )  # fmt: skip
    assert run.metrics()["num_finished"] > 0
    assert any("equal epochs" in note for note in run.notes)


@pytest.mark.parametrize("estimates", ["perfect", "recorded"])
def test_what_the_market_is_to_note_may_wait(
    estimates: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until not all jobs fit: as if it had been noted at once, or in between."""
    rng = np.random.default_rng(4)
    jobs = {
        "submit_time": np.sort(rng.integers(0, 40_000, 60)),
        "duration": rng.integers(100, 5_000, 60),
        "estimate": rng.integers(100, 9_000, 60),
        "num_gpus": rng.choice([1, 2, 4, 8], 60),
    }

    def flown(most: int) -> wt.Outcome:
        monkeypatch.setattr(shockwave, "_MOST_UNNOTED", most)
        return wt.simulate(jobs, "3x8", "shockwave:market", estimates=estimates)

    late = flown(1_000_000)
    assert late.metrics()["avg_wait"] > 0
    assert all(flown(most).segments.equals(late.segments) for most in (0, 30))


def test_what_is_refused(tmp_path: Path) -> None:
    jobs = trace_of(tmp_path, {})
    with pytest.raises(SpecError, match="know one GPU type"):
        wt.simulate(jobs, "v100:1,k80:1", "shockwave:market")
    with pytest.raises(SpecError, match="no horizon"):
        wt.simulate(jobs, "v100:1", "shockwave:isolated", compat="shockwave", until=9.0)
    with pytest.raises(SpecError, match="shockwave:market"):
        wt.simulate(jobs, "v100:1", "shockwave:markte")
    with pytest.raises(SpecError, match="only policies shockwave"):
        wt.simulate(jobs, "v100:1", "fifo", compat="shockwave")
    path = tmp_path / "bad.trace"
    path.write_text(LINE.format(kind="LM (batch size 10)", steps=1, gpus=1, mode="gsn", at=0))
    with pytest.raises(TraceError, match="static, accordion, gns"):
        wt.open_trace(path, format="shockwave")
    plain = {"submit_time": [0.0], "duration": [50.0], "num_gpus": [1.0]}
    with pytest.raises(SchemaError, match="its mode"):
        wt.simulate(plain, "v100:1", "shockwave:isolated", compat="shockwave")
