"""Users who try failed jobs again: by hand, against known habits, and beside everything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.cli.root import windtunnel
from windtunnel.schema import as_jobs
from windtunnel.study.recording import Recording
from windtunnel.study.resubmission import Habit, learn_habit
from windtunnel.study.whatif import WhatIf

NAMES = ("user", "submit_time", "duration", "num_gpus", "status", "template")


def log_of(*rows: tuple[Any, ...]) -> dict[str, list[Any]]:
    """Return a log of jobs that start at once: user, submission, run time, GPUs, status, name."""
    log = {name: [row[place] for row in rows] for place, name in enumerate(NAMES)}
    return log | {"start_time": log["submit_time"]}


KUEUE = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {{name: default}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {{name: one}}
spec:
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: default
      resources:
      - {{name: nvidia.com/gpu, nominalQuota: {quota}}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {{name: a, namespace: default}}
spec: {{clusterQueue: one}}
"""
#: Fifty failures of another user, each tried again after 7 s: a chance of 51 / 52.
STUBBORN = [
    ("old", -100_000.0 + 1000 * number + after, 10.0, 1.0, status, "x")
    for number in range(50)
    for after, status in ((0.0, "failed"), (17.0, "completed"))
]
ANN = [
    ("ann", 0.0, 50.0, 1.0, "completed", "a"),
    ("ann", 60.0, 5.0, 1.0, "completed", "b"),
]
FAILING: dict[str, Any] = {"node_failures": [{"time": 20.0, "node": 0, "until": 25.0}]}


def learnt(*rows: tuple[Any, ...], pause: float = 1200.0) -> Habit:
    table = as_jobs(log_of(*rows))
    end = table["submit_time"].to_numpy() + table["duration"].to_numpy()
    return learn_habit(table, end, pause, 0)


def test_a_habit_by_hand() -> None:
    found = learnt(
        ("ann", 0.0, 10.0, 4.0, "failed", "a"),  # again after 5 s
        ("ann", 12.0, 10.0, 4.0, "completed", "b"),  # another name
        ("ann", 15.0, 10.0, 4.0, "out_of_memory", "a"),  # only with other GPUs
        ("ann", 30.0, 10.0, 8.0, "completed", "a"),
        ("bob", 0.0, 10.0, 1.0, "failed", None),  # too late
        ("bob", 1300.0, 10.0, 1.0, "failed", None),  # again after 1 s; the last one never
        ("bob", 1311.0, 10.0, 1.0, "timeout", None),
        ("cat", 0.0, 10.0, 1.0, "cancelled", None),  # no failure
        ("cat", 11.0, 10.0, 1.0, "completed", None),
        (None, 0.0, 10.0, 1.0, "failed", None),  # nobody's
        (None, 11.0, 10.0, 1.0, "completed", None),
    )
    assert found.failures == 5
    assert found.pauses.tolist() == [5.0, 1.0]
    assert found.share == 3 / 7
    assert learnt(("bob", 0.0, 10.0, 1.0, "failed", None)).share == 0


def test_a_submission_is_another_try_of_one_failure() -> None:
    batch = [("ann", 0.0, 10.0, 1.0, "failed", "a")] * 10
    found = learnt(*batch, ("ann", 15.0, 10.0, 1.0, "completed", "a"))
    assert (found.failures, found.pauses.tolist()) == (10, [5.0])


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_flight_by_hand(engine: Any) -> None:
    # Ann's job fails at 20 and comes again at 27, runs whole till 77; her next followed its end by
    # 10 s in the log. The node is back at 25.
    log = log_of(*STUBBORN, *ANN)
    ends = {**FAILING, "on_failure": "end"}
    out = wt.simulate(log, "1x4", arrivals="closed", disruptions=ends, engine=engine)
    ended = (out.table[name].to_pylist() for name in ("end_time", "status"))
    rows = list(zip(out.jobs["submit_time"].to_pylist(), *ended, strict=True))
    assert rows[-3:] == [
        (0.0, 20.0, "failed"),
        (87.0, 92.0, "finished"),
        (27.0, 77.0, "finished"),
    ]
    assert out.jobs["job_id"].to_pylist()[-1] == f"{out.jobs['job_id'].to_pylist()[-3]} again 1"
    start = "fifo: 1 job failed here and not in the log: 1 were tried again from the beginning, as "
    assert any(note.startswith(start) for note in out.notes)
    # Who waits to go on is not tried again.
    out = wt.simulate(log, "1x4", arrivals="closed", disruptions=FAILING, engine=engine)
    assert out.jobs["submit_time"].to_pylist()[-2:] == [0.0, 85.0]  # anew from 25 to 75
    assert not any("failed here" in note for note in out.notes)


def test_an_attempt_that_fails_is_tried_again() -> None:
    times = [20.0, 40.0, 60.0]
    failures = [{"time": time, "node": 0, "until": time + 1} for time in times]
    ends: Any = {"node_failures": failures, "on_failure": "end"}
    out = wt.simulate(log_of(*STUBBORN, *ANN), "1x4", arrivals="closed", disruptions=ends)
    # 0-20, 27-40, 47-60, 67-117, and the next job 10 s behind.
    assert out.jobs["submit_time"].to_pylist()[-5:] == [0.0, 127.0, 27.0, 47.0, 67.0]
    cut = wt.simulate(log_of(*STUBBORN, *ANN), "1x4", arrivals="closed", disruptions=ends, until=50)
    assert cut.table["status"].to_pylist()[-4:] == ["failed", "not_submitted", "failed", "running"]


def test_who_has_no_habit_goes_on_without_the_job() -> None:
    ends = {**FAILING, "on_failure": "end"}
    out = wt.simulate(log_of(*ANN), "1x4", arrivals="closed", disruptions=ends)
    assert out.jobs["submit_time"].to_pylist() == [0.0, 30.0]  # 10 s behind the failure
    assert any("the log has no failed job" in note for note in out.notes)
    log = log_of(("bob", -900.0, 10.0, 1.0, "failed", "x"), *ANN)
    out = wt.simulate(log, "1x4", arrivals="closed", disruptions=ends)
    assert any("no failed job of the log was tried again" in note for note in out.notes)


@pytest.mark.parametrize("share", [0.3, 0.8])
def test_known_users_do_as_in_their_log(share: float) -> None:
    """Users who try again with a known chance, after an exponential pause, in log and flight."""
    draw = np.random.default_rng(7)
    rows, wanted = [], []
    for number in range(400):
        start = 5000.0 * number
        rows.append((f"u{number % 9}", start, 60.0, 1.0, "failed", f"n{number}"))
        if draw.random() < share:
            wanted.append(draw.exponential(90.0))
            rows.append(
                (f"u{number % 9}", start + 60 + wanted[-1], 60.0, 1.0, "completed", f"n{number}")
            )
    for number in range(400):
        start = 5000.0 * (400 + number)
        rows.append((f"u{number % 9}", start, 1800.0, 1.0, "completed", f"m{number}"))
    disruptions = {"on_failure": "end", "job_failures": {"rate": 1.0}}
    out = wt.simulate(log_of(*rows), "8x8", arrivals="closed", disruptions=disruptions)
    status = np.array(out.table["status"].to_pylist())
    recorded = np.array([row[4] == "failed" for row in rows] + [False] * (len(status) - len(rows)))
    failures = int(((status == "failed") & ~recorded).sum())
    attempts = len(status) - len(rows)
    assert failures > 120
    assert abs(attempts / failures - share) < 4 * np.sqrt(share * (1 - share) / failures)
    # The pauses are the log's.
    ends = dict(zip(out.jobs["job_id"].to_pylist(), out.table["end_time"].to_pylist(), strict=True))
    pauses = [
        submit - ends[name.split(" again ")[0]]
        for name, submit in zip(
            out.jobs["job_id"].to_pylist(), out.jobs["submit_time"].to_pylist(), strict=True
        )
        if name.endswith(" again 1")
    ]
    assert all(np.abs(np.array(wanted) - pause).min() < 1e-6 for pause in pauses)
    assert np.mean(pauses) == pytest.approx(np.mean(wanted), rel=0.25)


def test_attempts_are_the_same_under_every_policy_and_predictor() -> None:
    draw = np.random.default_rng(3)
    rows = [
        ("bob", 100.0 * n, float(draw.integers(20, 900)), 1.0, "completed", f"t{n % 5}")
        for n in range(40)
    ]
    rows += [(user, submit + 4_000_000, *rest) for user, submit, *rest in STUBBORN]
    found = wt.compare(
        log_of(*rows),
        "1x4",
        ["fifo", "srtf", "sjf:by=cart", "las:quantum=60", "easy"],
        arrivals="closed",
        estimates="cart",
        disruptions={"on_failure": "end", "job_failures": {"rate": 3.0}},
    )
    for outcome in found.outcomes.values():
        names = outcome.jobs["job_id"].to_pylist()
        assert len(set(names)) == len(names) > len(rows)
        submit = dict(zip(names, outcome.jobs["submit_time"].to_pylist(), strict=True))
        end = dict(zip(names, outcome.table["end_time"].to_pylist(), strict=True))
        for name in names[len(rows) :]:
            first, _, number = name.rpartition(" again ")
            before = first if number == "1" else f"{first} again {int(number) - 1}"
            assert submit[name] == pytest.approx(end[before] + 7.0)
    assert "compare" in found._repr_html_() or len(found.table) == 5


def test_a_what_if_pairs_the_jobs_of_the_log() -> None:
    """Runs before and after have other numbers of attempts, and submit jobs at other times."""
    draw = np.random.default_rng(5)
    rows = [
        (f"u{n % 4}", 300.0 * n, float(draw.integers(20, 900)), 1.0, "completed", f"t{n % 5}")
        for n in range(80)
    ]
    rows += [(user, submit + 4_000_000, *rest) for user, submit, *rest in STUBBORN]
    recording = Recording.of(as_jobs(log_of(*rows)))
    failing = {"on_failure": "end", "job_failures": {"rate": 3.0}}
    before, after = (
        wt.simulate(recording.jobs, site, arrivals="closed", disruptions=failing)
        for site in ("pool:1", "pool:2")
    )
    assert len(before.jobs) != len(after.jobs)
    table = {
        row["measure"]: row
        for row in WhatIf(before, after, (), "users", None, recording=recording).table()
    }
    runs = {"before": before, "after": after}
    finished = [
        run.table["status"].to_numpy(zero_copy_only=False)[: len(rows)] for run in runs.values()
    ]
    both = (finished[0] == "finished") & (finished[1] == "finished")
    assert 0 < both.sum() < len(rows)
    for name, run in runs.items():
        waits = run.table["start_time"].to_numpy() - run.jobs["submit_time"].to_numpy()
        assert table["avg_wait"][name] == pytest.approx(waits[: len(rows)][both].mean())


def test_a_failure_is_no_completion() -> None:
    recording = Recording.of(
        as_jobs(log_of(("ann", 0.0, 1000.0, 1.0, "completed", "a"), *STUBBORN))
    )
    before, after = (
        wt.simulate(recording.jobs, "1x4", arrivals="closed", disruptions=disruptions)
        for disruptions in (None, {**FAILING, "on_failure": "end"})
    )
    found = WhatIf(before, after, (), "users", None, recording=recording)
    assert (found.num_pairs, found.num_unpaired) == (100, (1, 0))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log whose failed jobs are tried again, failures, and a site where its users wait."""
    draw = np.random.default_rng(2)
    rows = [
        (f"u{n % 4}", 100.0 * n, float(draw.integers(20, 900)), 1.0, "completed", f"t{n % 5}")
        for n in range(60)
    ]
    rows += [(user, submit + 4_000_000, *rest) for user, submit, *rest in STUBBORN]
    log = pa.table(
        {**log_of(*rows), "job_id": [str(n) for n in range(len(rows))], "vc": ["a"] * len(rows)}
    )
    pa.csv.write_csv(log, tmp_path / "log.csv")
    (tmp_path / "dis.toml").write_text('on_failure = "end"\n[job_failures]\nrate = 1.0\n')
    (tmp_path / "site.toml").write_text(
        '[site]\ncluster = "1x4"\narrivals = "closed"\ndisruptions = "dis.toml"\n'
    )
    (tmp_path / "study.toml").write_text(
        'traces = ["log.csv"]\nclusters = ["1x4"]\npolicies = ["fifo", "sjf"]\nseeds = 2\n'
        '[options]\narrivals = "closed"\ndisruptions = "dis.toml"\n'
    )
    return tmp_path


def test_studies_and_what_ifs_have_attempts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)

    def run(*words: str) -> dict[str, Any]:
        result = CliRunner().invoke(windtunnel, [*words, "--json"])
        assert result.exit_code == 0, result.stderr
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    run("study", "run", "study.toml", "--out", "out", "--workers", "1")
    rows = pq.read_table("out/results.parquet").to_pylist()
    assert [row["status"] for row in rows] == ["ok"] * 4
    for row in rows:
        assert row["num_jobs"] > 160
        for groups in ("weeks", "users", "sizes"):
            assert sum(group["num_jobs"] for group in row[groups]) == row["num_jobs"]
    found = run("whatif", "log.csv", "--site", "site.toml", "--nodes", "+1", "--anyway")
    assert found["measures"]
    for name, quota in (("now", 4), ("then", 2)):
        Path(name).mkdir()
        Path(name, "q.yaml").write_text(KUEUE.format(quota=quota))
    words = ("--policy", "kueue", "--kueue", "now", "--kueue", "then", "--anyway")
    found = run("whatif", "log.csv", "--site", "site.toml", *words)
    (queue,) = found["by_cluster_queue"]
    assert min(queue["before_jobs"], queue["after_jobs"]) > 160
    surface = ("--surface", "policy=fifo,sjf", "--out", "page.html", "--anyway")
    result = CliRunner().invoke(windtunnel, ["whatif", "log.csv", "--site", "site.toml", *surface])
    assert result.exit_code == 0, result.stderr
    assert "Closed loop" in result.stdout
    assert "stretched" not in result.stdout
