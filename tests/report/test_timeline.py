"""Time-lines: the sample's shape, hand-worked cases, and totals that agree with the run."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.report.stays import waits
from windtunnel.report.timeline import timeline, write_timeline

if TYPE_CHECKING:
    from pathlib import Path

Event = dict[str, Any]


def events(outcome: wt.Outcome, **request: Any) -> list[Event]:
    found: list[Event] = timeline(outcome, **request).to_dict()["traceEvents"]
    return found


def of(found: list[Event], phase: str) -> list[Event]:
    return [event for event in found if event["ph"] == phase]


@pytest.fixture
def preempted() -> wt.Outcome:
    """Job b (1 GPU, 10 s) takes GPU 0 while a (2 GPUs, 30 s) has run 5 s; a goes on at 15 s."""
    jobs = {
        "job_id": ["a", "b"],
        "submit_time": [0, 5],
        "duration": [30, 10],
        "num_gpus": [2, 1],
        "user": ["ann", None],
        "workload": ["nlp,large", None],
    }
    return wt.simulate(jobs, "1x2:A100", policy="srtf")


def test_slices_waits_and_preemptions_of_a_hand_worked_run(preempted: wt.Outcome) -> None:
    found = events(preempted)
    drawn = [(e["name"], e["pid"], e["tid"], e["ts"] / 1e6, e["dur"] / 1e6) for e in of(found, "X")]
    assert drawn == [
        ("job a", 1, 0, 0, 5),
        ("job a", 1, 1, 0, 5),
        ("job b", 1, 0, 5, 10),
        ("job a", 1, 0, 15, 25),
        ("job a", 1, 1, 15, 25),
    ]
    assert [(e["ph"], e["id"], e["ts"] / 1e6) for e in found if e.get("cat") == "queue"] == [
        ("b", "a", 5),
        ("e", "a", 15),
    ]
    assert [(e["name"], e["cat"], e["ts"] / 1e6, e["s"]) for e in of(found, "i")] == [
        ("preempt job a", "preemption", 5, "t")
    ]
    first = of(found, "X")[0]
    assert first["cat"] == "run,nlp large"
    assert first["args"] == {
        "job_id": "a",
        "user": "ann",
        "workload": "nlp,large",
        "gpus": 2,
        "submit_s": 0.0,
    }


def test_counters_are_the_runs_own_curves(preempted: wt.Outcome) -> None:
    counters: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for event in of(events(preempted), "C"):
        (value,) = event["args"].values()
        counters[event["name"]].append((event["ts"] / 1e6, value))
    assert counters["free_gpus"] == [(0, 0), (5, 1), (15, 0), (40, 2)]
    assert counters["utilization"] == [(0, 100), (5, 50), (15, 100), (40, 0)]
    queue = preempted.queue()
    pairs = list(zip(queue["time"].to_pylist(), queue["jobs"].to_pylist(), strict=True))
    assert counters["waiting_jobs"] == pairs
    assert set(counters) == {"free_gpus", "utilization", "waiting_jobs", "waiting_gpus"}


def shape(event: Event) -> tuple[tuple[str, str], ...]:
    kinds = {int: "number", float: "number", str: "text", dict: "object"}
    return tuple(sorted((key, kinds[type(value)]) for key, value in event.items()))


def test_events_have_the_shape_of_the_published_sample(
    data_dir: Path, preempted: wt.Outcome
) -> None:
    sample = json.loads((data_dir / "formats" / "chrome_trace.json").read_text("utf-8"))
    data = timeline(preempted, epoch="2025-10-06T12:00:00Z").to_dict()
    assert set(sample) == set(data)
    assert data["displayTimeUnit"] == sample["displayTimeUnit"]
    assert data["otherData"]["time_origin"] == sample["otherData"]["time_origin"]
    known = {
        (event["ph"], event["name"].split()[0]): shape(event) for event in sample["traceEvents"]
    }
    phases = {phase for phase, _ in known}
    assert {event["ph"] for event in data["traceEvents"]} == phases
    for event in data["traceEvents"]:
        key = (event["ph"], event["name"].split()[0])
        if key in known:
            assert shape(event) == known[key]
    ours = {(event["ph"], event["name"].split()[0]) for event in data["traceEvents"]}
    assert known.keys() <= ours


def test_every_node_and_gpu_has_its_name_and_place() -> None:
    cluster = wt.ClusterSpec((wt.NodeType(1, 2, "A100"), wt.NodeType(1, 1)), "two kinds")
    out = wt.simulate({"submit_time": [0], "duration": [1], "num_gpus": [1]}, cluster)
    named = {
        (e["pid"], e.get("tid")): e["args"]["name"]
        for e in of(events(out), "M")
        if e["name"].endswith("_name")
    }
    assert named == {
        (0, None): "cluster",
        (1, None): "node 0 (2 A100)",
        (1, 0): "GPU 0",
        (1, 1): "GPU 1",
        (2, None): "node 1 (1 GPU)",
        (2, 0): "GPU 0",
    }


def test_threads_stand_in_the_order_of_their_gpus() -> None:
    jobs = {"submit_time": [0, 0], "duration": [5, 5], "num_gpus": [1, 0.5]}
    found = of(events(wt.simulate(jobs, "1x12")), "M")
    placed = {e["tid"]: e["args"]["sort_index"] for e in found if e["name"] == "thread_sort_index"}
    assert placed == {gpu: gpu for gpu in range(12)}


def test_jobs_that_share_a_gpu_lie_beside_it() -> None:
    jobs = {"submit_time": [0, 0, 0], "duration": [9, 5, 5], "num_gpus": [0.5, 0.5, 1.0]}
    out = wt.simulate(jobs, "1x2:A100", placement="best_fit")
    drawn = {(e["name"], e["tid"]) for e in of(events(out), "X")}
    assert drawn == {("job 0", 0), ("job 1", 1000), ("job 2", 1)}
    names = [e["args"]["name"] for e in of(events(out), "M") if e["name"] == "thread_name"]
    assert names == ["GPU 0", "GPU 0, share 2", "GPU 1"]


def test_a_pool_has_a_slot_a_job() -> None:
    jobs = {"submit_time": [0, 0, 4], "duration": [4, 9, 1], "num_gpus": [5, 1.5, 3]}
    out = wt.simulate(jobs, "pool:8")
    chosen = timeline(out)
    drawn = [(e["name"], e["tid"]) for e in of(chosen.to_dict()["traceEvents"], "X")]
    assert drawn == [("job 0", 0), ("job 1", 1), ("job 2", 0)]
    assert any("no nodes" in note for note in chosen.notes)


def test_hostile_names_are_text_of_one_harmless_line() -> None:
    name = "\x1b[31m</script><script>alert(1)\n\u202e" + "x" * 10_000
    jobs = {
        "job_id": [name],
        "submit_time": [0.0],
        "duration": [1.0],
        "num_gpus": [1.0],
        "user": ['"}],{'],
        "vc": ["=cmd()"],
    }
    text = b"".join(timeline(wt.simulate(jobs, "1x1")).chunks())
    assert len(text) < 6000
    assert text.isascii()
    assert b"\\u001b" not in text
    assert b"\\u202e" not in text
    (slice_,) = of(json.loads(text)["traceEvents"], "X")
    assert len(slice_["name"]) <= 44
    assert slice_["args"]["user"] == '"}],{'


@pytest.fixture(scope="module")
def busy() -> wt.Outcome:
    """2,000 jobs of which many are preempted, on 16 nodes."""
    rng = np.random.default_rng(3)
    n = 2000
    jobs = {
        "submit_time": np.sort(rng.uniform(0, 20_000, n)),
        "duration": np.ceil(rng.lognormal(5, 1.3, n)),
        "num_gpus": rng.choice([1.0, 2.0, 4.0, 8.0, 16.0], n),
    }
    return wt.simulate(jobs, "16x8:A100", policy="srtf")


def test_slices_add_up_to_the_gpu_time_of_the_run(busy: wt.Outcome) -> None:
    found = events(busy)
    drawn = sum(event["dur"] for event in of(found, "X")) / 1e6
    assert drawn == pytest.approx(busy.metrics()["gpu_time"], rel=1e-9)
    assert len(of(found, "i")) == busy.metrics()["num_preemptions"] > 50
    begun = {}
    for event in (e for e in found if e.get("cat") == "queue"):
        begun.setdefault(event["id"], []).append(event["ts"] * (1 if event["ph"] == "e" else -1))
    jct = busy.table["jct"].to_numpy() - busy.table["run_time"].to_numpy()
    waited = np.array([sum(begun.get(str(row), [0])) / 1e6 for row in range(2000)])
    assert waited == pytest.approx(jct, abs=1e-4)


def test_what_is_too_much_is_cut_to_a_window_and_noted(busy: wt.Outcome) -> None:
    chosen = timeline(busy, max_events=3000)
    data = chosen.to_dict()["traceEvents"]
    drawn = [event for event in data if event["ph"] in "Xbei"]
    assert 2700 < len(drawn) <= 3000 + 600  # waits that begin in it have an end, too
    last = chosen.window[1] * 1e6
    assert max(event["ts"] + event.get("dur", 0) for event in drawn) <= last + 1
    assert any("3,000" in note for note in chosen.notes)
    assert not any("3,000" in note for note in timeline(busy).notes)


def test_jobs_are_sampled_where_one_instant_is_too_much() -> None:
    n = 100
    jobs = {"submit_time": [0] * n, "duration": [5] * n, "num_gpus": [1] * n}
    chosen = timeline(wt.simulate(jobs, "100x1"), max_events=30)
    assert [e["name"] for e in of(chosen.to_dict()["traceEvents"], "X")] == [
        f"job {row}" for row in range(0, n, 4)
    ]
    assert any("1 in 4 jobs" in note for note in chosen.notes)


def test_a_window_shows_what_lies_in_it(busy: wt.Outcome) -> None:
    first, last = 5000.0, 6000.0
    found = events(busy, window=(first, last))
    held = sum(event["dur"] for event in of(found, "X")) / 1e6
    use = busy.utilization()
    time, gpus = use["time"].to_numpy(), use["gpus"].to_numpy()
    knots = np.concatenate([[first], time[(time > first) & (time < last)], [last]])
    values = gpus[np.searchsorted(time, knots[:-1], side="right") - 1]
    assert held == pytest.approx(float((np.diff(knots) * values).sum()), rel=1e-6)
    cut = next(e for e in of(found, "X") if "start_s" in e["args"])
    assert cut["args"]["start_s"] < first or cut["args"]["end_s"] > last
    with pytest.raises(wt.SpecError, match="start before its end"):
        timeline(busy, window=(5.0, 5.0))


def test_what_goes_on_at_the_horizon_ends_there() -> None:
    jobs = {"submit_time": [0, 1], "duration": [30, 10], "num_gpus": [1, 1]}
    out = wt.simulate(jobs, "1x1", until=12)
    (slice_,) = of(events(out), "X")
    assert slice_["dur"] == 12e6
    assert [values.tolist() for values in waits(out)] == [[1], [1.0], [12.0]]


@pytest.mark.slow
def test_packed_or_not_the_same_bytes_again(tmp_path: Path, busy: wt.Outcome) -> None:
    plain, packed, again = (tmp_path / n for n in ("a.json", "b.json.gz", "c.json.gz"))
    for path in (plain, packed, again):
        write_timeline(path, timeline(busy))
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert packed.read_bytes() == again.read_bytes()
    assert json.loads(plain.read_bytes())["otherData"]["generator"].startswith("windtunnel ")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.json", "b.json.gz", "c.json.gz"]


def test_stays_that_failures_cut_are_stopped_not_preempted() -> None:
    rng = np.random.default_rng(1)
    n = 300
    jobs = {
        "submit_time": np.sort(rng.uniform(0, 20_000, n)),
        "duration": rng.uniform(60, 3000, n),
        "num_gpus": rng.choice([1.0, 2.0, 4.0, 8.0, 16.0], n),
    }
    out = wt.simulate(jobs, "6x8:A100", disruptions="mtbf:6h/mttr:1h/checkpoint:10m")
    found = events(out)
    held = sum(event["dur"] for event in of(found, "X")) / 1e6
    assert held == pytest.approx(out.metrics()["gpu_time"], rel=1e-9)
    stops = of(found, "i")
    assert len(stops) == out.metrics()["num_failures"] > 10
    assert {event["cat"] for event in stops} == {"interruption"}
    assert all(event["name"].startswith("stop job ") for event in stops)
    assert all(event["tid"] < 8 for event in of(found, "X"))
