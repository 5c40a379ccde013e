"""The flight recorder: both engines write the same rows, and the rows say what is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_jobs import a_log

import windtunnel as wt
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.errors import SpecError, TraceError
from windtunnel.report.timeline import timeline
from windtunnel.sim.observe.causes import causes
from windtunnel.sim.observe.decisions import WAITING
from windtunnel.sim.observe.recording_file import read

if TYPE_CHECKING:
    from pathlib import Path

ENGINES = ("compiled", "reference")
RULES = ("strict", "skip", "easy", "easy_sjbf", "conservative")
POLICIES = ("fifo", "sjf", "priority-preemptive", "srtf", "fair-share")
SITES = ("4x8", "pool:32", "2x8:A,4x4:B")
EXTRAS: tuple[dict[str, Any], ...] = (
    {},
    {"decide_every": 7},
    {"events": "submissions_first"},
    {"events": "completions_first"},
    {"disruptions": "mtbf:600s/mttr:60s", "seed": 3},
    {"until": 150.0},
    {"preemption": "quota_walk"},
)


def flown(engine: str, jobs: Any, site: str = "4x8", **fields: Any) -> wt.Outcome:
    """Fly jobs, and record why they wait."""
    return wt.simulate(jobs, site, engine=engine, record=True, **fields)


def runs() -> list[tuple[str, dict[str, Any]]]:
    """Return policies under rules, each with a site and a feature, in turn."""
    found, number = [], 0
    for policy in POLICIES:
        for rule in RULES:
            extra = EXTRAS[number % len(EXTRAS)]
            walks = policy in {"srtf", "priority-preemptive"} and rule in {"strict", "skip"}
            if "preemption" in extra and not walks:
                extra = EXTRAS[0]
            site = SITES[0 if "disruptions" in extra else number % len(SITES)]
            found.append((f"{policy}-{rule}-{number}", {
                "policy": policy, "queueing": rule, "site": site, **extra,
            }))  # fmt: skip
            number += 1
    return found


CASES = [pytest.param(fields, id=name) for name, fields in runs()]


@pytest.mark.sample(8)
@pytest.mark.parametrize("fields", CASES)
def test_engines_write_the_same_rows(fields: dict[str, Any]) -> None:
    for seed in range(4):
        tables = [flown(engine, a_log(60, seed), **fields).decisions for engine in ENGINES]
        assert tables[0].equals(tables[1])


@pytest.mark.parametrize("fields", CASES)
def test_causes_add_up_to_the_wait(fields: dict[str, Any]) -> None:
    out = flown("compiled", a_log(120, 5), **fields)
    check_sums(out)


def check_sums(out: wt.Outcome) -> None:
    """Check that each job's causes add up to its time in the queue, and preemptors are named."""
    table, decisions = out.table, out.decisions
    waited = np.zeros(len(table))
    found = causes(decisions)
    np.add.at(waited, found["row"].to_numpy(), found["seconds"].to_numpy())
    over = np.array(table["status"].to_pylist()) == "finished"
    expected = table["jct"].to_numpy() - table["run_time"].to_numpy()
    assert np.allclose(
        waited[over], expected[over], rtol=0, atol=1e-9 * max(1, expected[over].max(initial=0))
    )
    row, verdict = decisions["row"].to_numpy(), decisions["verdict"].to_pylist()
    assert (np.diff(decisions["time"].to_numpy()) >= 0).all()
    first = {}
    for at, (who, what) in enumerate(zip(row.tolist(), verdict, strict=True)):
        first.setdefault(who, (at, what))
    times = decisions["time"].to_numpy()
    submit = out.submit_time
    assert all(times[at] == submit[who] for who, (at, _) in first.items())
    stopped = decisions.filter(
        pa.compute.equal(decisions["verdict"].cast(pa.string()), "preempted")
    )
    assert stopped["blocker"].null_count == 0
    assert stopped.num_rows == sum(table["num_preemptions"].to_pylist())


def test_recording_changes_nothing() -> None:
    jobs = a_log(120, 2)
    for rule in RULES:
        plain = wt.simulate(jobs, "4x8", policy="fifo", queueing=rule)
        recorded = flown("compiled", jobs, policy="fifo", queueing=rule)
        assert plain.segments.equals(recorded.segments)
        assert plain.table.equals(recorded.table)
        assert plain.settings == recorded.settings


def test_a_strict_queue_by_hand() -> None:
    jobs = {
        "job_id": ["long", "wide", "small", "last"],
        "submit_time": [0.0, 1.0, 2.0, 3.0],
        "duration": [10.0, 5.0, 5.0, 5.0],
        "num_gpus": [2.0, 4.0, 1.0, 4.0],
    }
    rows = flown("compiled", jobs, "pool:4", policy="fifo", queueing="strict").decisions
    found = [
        (r["time"], r["job_id"], r["verdict"], r["limit"], r["blocker"], r["free_gpus"])
        for r in rows.to_pylist()
    ]
    assert found == [
        (0.0, "long", "started", None, None, 2.0),
        (1.0, "wide", "no_room", "gpus", None, 2.0),
        (2.0, "small", "behind", None, "wide", 2.0),
        (3.0, "last", "behind", None, "wide", 2.0),
        (10.0, "long", "finished", None, None, 0.0),
        (10.0, "small", "no_room", "gpus", None, 0.0),
        (10.0, "wide", "started", None, None, 0.0),
        (15.0, "wide", "finished", None, None, 3.0),
        (15.0, "last", "no_room", "gpus", None, 3.0),
        (15.0, "small", "started", None, None, 3.0),
        (20.0, "small", "finished", None, None, 0.0),
        (20.0, "last", "started", None, None, 0.0),
        (25.0, "last", "finished", None, None, 4.0),
    ]


@pytest.mark.parametrize(
    ("word", "more", "site", "fields"),
    [
        ("fragmentation", {}, "2x2", {"placement": "spread"}),
        ("gpu_type", {"gpu_type": ["A", None, "A"]}, "1x2:A,1x4:B", {}),
        (
            "fragmentation",
            {"gpu_type": ["B", "B", "A"]},
            "1x1:A,2x2:B",
            {"placement": "spread", "bind_types": "B"},
        ),
        ("cores", {"num_cpus": [7, 0, 2]}, NodeType(count=1, gpus=8, cpus=8), {}),
        (
            "memory",
            {"num_cpus": [1, 1, 1], "mem_gib": [30, 0, 8]},
            NodeType(count=1, gpus=8, cpus=8, mem_gib=32),
            {},
        ),
        (
            "memory",
            {"num_gpus": [0, 1, 2], "num_cpus": [1, 1, 1], "mem_gib": [30, 0, 8]},
            NodeType(count=1, gpus=8, cpus=8, mem_gib=32),
            {},
        ),
        (
            "topology",
            {"num_gpus": [4, 4, 4], "num_tasks": [4, 4, 4]},
            "6x2",
            {"topology": "rack=3", "topology_request": "required:rack", "placement": "tree"},
        ),
    ],
)
def test_a_limit_has_its_own_word(
    word: str, more: dict[str, Any], site: Any, fields: dict[str, Any]
) -> None:
    jobs = {"submit_time": [0, 0, 1], "duration": [10, 10, 5], "num_gpus": [1, 1, 2], **more}
    site = ClusterSpec((site,)) if isinstance(site, NodeType) else site
    rows = wt.simulate(jobs, site, "fifo", record=True, **fields).decisions.to_pylist()
    assert ("no_room", word) in [(r["verdict"], r["limit"]) for r in rows if r["row"] == 2]


def test_backfilling_names_whose_promise_it_keeps() -> None:
    jobs = {
        "job_id": ["runs", "head", "long", "short"],
        "submit_time": [0.0, 1.0, 2.0, 3.0],
        "duration": [10.0, 5.0, 50.0, 7.0],
        "estimate": [10.0, 5.0, 50.0, 7.0],
        "num_gpus": [3.0, 4.0, 1.0, 1.0],
    }
    rows = flown("compiled", jobs, "pool:4", policy="fifo", queueing="easy").decisions.to_pylist()
    (first,) = [row for row in rows if row["job_id"] == "head" and row["verdict"] == "no_room"]
    assert (first["time"], first["promise"], first["blocker"]) == (1.0, 10.0, None)
    of_long = [(r["time"], r["verdict"], r["blocker"], r["promise"]) for r in rows
               if r["job_id"] == "long"]  # fmt: skip
    assert of_long[0] == (2.0, "would_delay", "head", 10.0)
    assert of_long[1] == (3.0, "no_room", None, None)  # the short one takes what is free


def test_preemption_names_its_causer() -> None:
    jobs = {
        "job_id": ["low", "high"],
        "submit_time": [0.0, 1.0],
        "duration": [10.0, 5.0],
        "num_gpus": [4.0, 2.0],
        "priority": [0.0, 5.0],
    }
    for engine in ENGINES:
        rows = flown(engine, jobs, "1x4", policy="priority-preemptive").decisions.to_pylist()
        (stop,) = [row for row in rows if row["verdict"] == "preempted"]
        assert (stop["time"], stop["job_id"], stop["blocker"]) == (1.0, "low", "high")


def test_a_run_that_was_not_recorded_says_so() -> None:
    out = wt.simulate(a_log(3, 0), "4x8")
    with pytest.raises(SpecError, match="record=True"):
        _ = out.decisions


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    jobs = {"submit_time": [0, 1], "duration": [10, 5], "num_gpus": [2, 4], "job_id": ["a", "b"]}
    path = str(tmp_path / "a:b.parquet")
    wt.simulate(jobs, "pool:4", record=path)
    facts, rows = read(path, "b")
    assert (facts["policy"], rows["verdict"].to_pylist()) == (
        "fifo",
        ["no_room", "started", "finished"],
    )
    table = pq.ParquetFile(path).read()
    nothing = pa.array([None] * len(table), pa.float64())
    changed = {
        "columns": table.drop_columns(["verdict"]),
        "metadata": table.replace_schema_metadata({b"windtunnel.recording": b"{"}),
        "another": table.replace_schema_metadata({b"windtunnel.recording": b"[]"}),
        "ids": _put(table, "job_id", pa.array(range(len(table)))),
        "words": _put(table, "verdict", pa.array(["<b>"] * len(table))),
        "times": _put(table, "time", nothing),
        "order": _put(table, "time", pa.array(range(len(table), 0, -1), pa.float64())),
        "free": _put(table, "free_gpus", nothing),
    }
    for name, other in changed.items():
        pq.write_table(other, tmp_path / name)
        with pytest.raises(TraceError, match="expected a recording"):
            read(str(tmp_path / name), "b")
    with pytest.raises(TraceError, match="a file that can be read"):
        read("s3://bucket/run.parquet", "b")


def _put(table: pa.Table, name: str, cells: pa.Array) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, cells)


def test_every_word_is_known() -> None:
    from windtunnel.report.why_report import cause_of

    assert all(cause_of(word, None) for word in WAITING if word != "no_room")


def test_arrows_lead_from_who_is_stopped_to_the_causer() -> None:
    jobs = {
        "job_id": ["low", "high", "next"],
        "submit_time": [0.0, 1.0, 2.0],
        "duration": [10.0, 5.0, 3.0],
        "num_gpus": [4.0, 2.0, 4.0],
        "priority": [0.0, 5.0, 0.0],
    }
    out = flown("compiled", jobs, "1x4", policy="priority-preemptive", queueing="strict")
    events = timeline(out).to_dict()["traceEvents"]
    flows = [(e["ph"], e["name"], e["ts"]) for e in events if e["ph"] in "sf"]
    assert flows == [
        ("s", "stopped for", 999_999),
        ("f", "stopped for", 1_000_000),
        ("s", "waited behind", 6_000_000),
        ("f", "waited behind", 15_000_000),
    ]
    slices = [e for e in events if e["ph"] == "X"]
    for flow in (e for e in events if e["ph"] in "sf"):  # each on one slice, not between two
        own = [s for s in slices if (s["pid"], s["tid"]) == (flow["pid"], flow["tid"])]
        assert sum(s["ts"] <= flow["ts"] < s["ts"] + s["dur"] for s in own) == 1


def test_what_was_free_is_what_was_not_in_use() -> None:
    for fields in ({}, {"disruptions": "mtbf:600s/mttr:60s"}):
        jobs = a_log(120, 3)
        out = flown("compiled", jobs, policy="priority-preemptive", queueing="easy", **fields)
        rows, used = out.decisions, out.utilization()
        at = np.searchsorted(used["time"].to_numpy(), rows["time"].to_numpy(), side="right") - 1
        expected = np.where(at < 0, 0.0, used["gpus"].to_numpy()[np.maximum(at, 0)])
        ups = out.flight.interruptions
        all_up = 32.0
        if ups is not None:
            place = np.searchsorted(ups.up_time, rows["time"].to_numpy(), side="right") - 1
            all_up = ups.up_gpus[place]
        assert np.array_equal(rows["free_gpus"].to_numpy(), all_up - expected)
