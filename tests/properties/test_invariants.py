"""What must hold in every run, on both engines, checked from the segments alone."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from flight_cases import Case, cases
from hypothesis import given, settings
from naive_oracle import layout

if TYPE_CHECKING:
    import windtunnel as wt

ENGINES = ("reference", "compiled")


def stays_of(out: wt.Outcome) -> dict[int, list[tuple[float, float]]]:
    """Each job's stays on GPUs; one that lasts beyond the horizon ends there."""
    stays: dict[int, list[tuple[float, float]]] = {}
    for segment in out.segments.to_pylist():
        end = out.settings["until"] if segment["end"] is None else segment["end"]
        stays.setdefault(segment["row"], []).append((segment["start"], end))
    return stays


def check_accounts(out: wt.Outcome, overhead: float) -> None:
    """Every job is accounted for once, and its times add up."""
    stays = stays_of(out)
    until = math.inf if out.settings["until"] is None else out.settings["until"]
    rows = zip(out.table.to_pylist(), out.jobs.to_pylist(), strict=True)
    for row, (job, asked) in enumerate(rows):
        own = stays.get(row, [])
        status = job["status"]
        assert (job["reason"] is not None) == (status == "rejected")
        if status == "rejected":
            assert own == []
            assert job["run_time"] == 0
            continue
        assert (status == "not_submitted") == (asked["submit_time"] > until)
        assert (status == "finished") == (job["end_time"] is not None)
        assert (job["start_time"] is None) == (own == [])
        on_gpus = status in ("finished", "running")
        assert len(own) == job["num_preemptions"] + on_gpus
        assert job["run_time"] == pytest.approx(sum(end - start for start, end in own), abs=1e-9)
        if not own:
            continue
        assert job["start_time"] == own[0][0] >= asked["submit_time"]
        assert all(start <= end <= until for start, end in own)
        assert all(end <= after for (_, end), (after, _) in itertools.pairwise(own))
        # Nothing is gained during the overhead, which every stay but the first begins with.
        paid = sum(min(overhead, end - start) for start, end in own[1:])
        work = job["run_time"] - paid
        if status == "finished":
            assert own[-1][1] == job["end_time"] <= until
            assert work == pytest.approx(asked["duration"], abs=1e-9)
            if all(end - start >= overhead for start, end in own[1:]):
                expected = asked["duration"] + overhead * job["num_preemptions"]
                assert job["run_time"] == pytest.approx(expected, abs=1e-9)
        else:
            assert work <= asked["duration"] + 1e-9
    counted = out.metrics()
    names = ("finished", "running", "waiting", "not_submitted", "rejected", "failed")
    assert sum(counted[f"num_{name}"] for name in names) == len(out.jobs) == counted["num_jobs"]


def check_capacity(out: wt.Outcome) -> None:
    """No GPU is held twice, on no node and in no pool, and only by jobs that accept its type."""
    sizes = [node.gpus for node in out.cluster.node_types for _ in range(node.count)]
    types = [node.gpu_type for node in out.cluster.node_types for _ in range(node.count)]
    known = set(out.cluster.gpu_types)  # those of nodes that have GPUs
    asked = out.jobs["gpu_type"].to_pylist()
    tasks = out.jobs["num_tasks"].to_pylist()
    segments = out.segments.to_pylist()
    lasting = [s for s in segments if s["end"] is None or s["end"] > s["start"]]
    on_pool = out.settings["placement"] == "pool"
    for segment in segments:
        accepted = {part.strip() for part in (asked[segment["row"]] or "").split("|")} - {""}
        for node, gpus in zip(segment["nodes"], segment["node_gpus"], strict=True):
            assert not (accepted and known) or types[node] in accepted
            task = int(segment["num_gpus"]) // (tasks[segment["row"]] or int(segment["num_gpus"]))
            assert gpus % task == 0
        assert sum(segment["node_gpus"]) == (0 if on_pool else segment["num_gpus"])
        # Use only grows at a start, so this is where it could be too much.
        now = segment["start"]
        held = [s for s in lasting if s["start"] <= now and (s["end"] is None or s["end"] > now)]
        assert sum(s["num_gpus"] for s in held) <= sum(sizes) + 1e-9
        used = np.zeros(len(sizes), dtype=int)
        for other in held:
            np.add.at(used, other["nodes"], other["node_gpus"])
        assert (used <= sizes).all()


def check_layouts(out: wt.Outcome) -> None:
    """Every job lies where the canonical rule puts it, given who was there before."""
    segments = out.segments.to_pylist()
    placement = out.settings["placement"]
    if placement == "pool" or any(s["end"] == s["start"] for s in segments):
        return  # a stay of no length may have held its GPUs within its instant, or not any more
    sizes = [node.gpus for node in out.cluster.node_types for _ in range(node.count)]
    types = [node.gpu_type for node in out.cluster.node_types for _ in range(node.count)]
    apart = any(types[node] is not None and sizes[node] for node in range(len(sizes)))
    asked, tasks = out.jobs["gpu_type"].to_pylist(), out.jobs["num_tasks"].to_pylist()
    for number, segment in enumerate(segments):
        free = list(sizes)
        for before in segments[:number]:
            if before["end"] is None or before["end"] > segment["start"]:
                for node, gpus in zip(before["nodes"], before["node_gpus"], strict=True):
                    free[node] -= gpus
        accepted = {part.strip() for part in (asked[segment["row"]] or "").split("|")} - {""}
        serves = [not (accepted and apart) or name in accepted for name in types]
        gpus = int(segment["num_gpus"])
        expected = layout(
            [f if ok else -1 for f, ok in zip(free, serves, strict=True)],
            [s if ok else 0 for s, ok in zip(sizes, serves, strict=True)],
            gpus,
            max(gpus // (tasks[segment["row"]] or gpus or 1), 1),
            spread=placement == "spread",
        )
        assert list(zip(segment["nodes"], segment["node_gpus"], strict=True)) == expected


def check_curves(out: wt.Outcome) -> None:
    """Little's law: jobs in the system over time add up to their times in the system."""
    metrics = out.metrics()
    if metrics["num_finished"] + metrics["num_rejected"] < metrics["num_jobs"]:
        return

    def area(table: object, name: str) -> float:
        time, values = table["time"].to_numpy(), table[name].to_numpy()  # type: ignore[index]
        assert (np.diff(time) > 0).all()
        assert len(time) == 0 or values[-1] == 0
        assert (values >= 0).all()
        return float((np.diff(time) * values[:-1]).sum()) if len(time) else 0.0

    jct = np.nansum(out.table["jct"].to_numpy())
    running = np.nansum(out.table["run_time"].to_numpy())
    assert area(out.queue(), "jobs") + running == pytest.approx(jct, abs=1e-6)
    # Shares are exact to a millionth of a GPU.
    assert area(out.utilization(), "gpus") == pytest.approx(metrics["gpu_time"], abs=1e-3)
    if len(out.segments):
        assert max(out.utilization()["utilization"].to_pylist()) <= 1


@settings(max_examples=250)
@given(cases())
def test_every_run(case: Case) -> None:
    for engine in ENGINES:
        out = case.fly(engine)
        check_accounts(out, case.save_time + case.restore_time)
        check_capacity(out)
        check_layouts(out)
        check_curves(out)
