"""What holds in every elastic run: capacity, work, promises, quotas; the rival as a limit."""

from __future__ import annotations

import math
from typing import Any

import pytest
from elastic_cases import MODELS, NODES, ToyModel, jobs_of
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.policies.catalogue import resolve_policy
from windtunnel.policies.morphling.scheduler import Priced
from windtunnel.sim.elastic import measures

POLICIES = (
    "fixed-plan",
    "equal-share:interval=20",
    "synergy",
    "antman",
    "shortest-first",
    "least-area-first",
    "pollux:tiresias:interval=20",
    "pollux:optimus:interval=20",
    "pollux:pollux:interval=20",
    "pollux:sia:interval=20",
    "pollux:optimus:interval=20:fill=true",
    "pollux:sia:interval=20:fill=true",
    "morphling",
    "morphling:priced",
    "morphling:priced:margin=0:patience=5:yielding=0",
    "morphling:ageing=40",
    "morphling:plans",
    "morphling:resources",
    "morphling:neither",
)
#: (model, GPUs, plan) that users may ask for.
REQUESTS = (
    ("steep", 1, "ga"),
    ("steep", 4, "zero-dp"),
    ("steep", 4, "ga"),
    ("steep", 8, "ga"),
    ("steep", 16, "ga"),
    ("flat", 1, "ga"),
    ("flat", 4, "ga"),
    ("offload", 1, "zero-offload"),
    ("offload", 2, "zero-offload"),
    ("unheard", 5, None),
)


@st.composite
def workloads(draw: st.DrawFn, *, promised: bool = True) -> dict[str, list[Any]]:
    """Draw up to 14 jobs, close together and with ties."""
    count = draw(st.integers(1, 14))
    rows = []
    for _ in range(count):
        model, gpus, plan = draw(st.sampled_from(REQUESTS))
        guaranteed = int(promised and draw(st.booleans()))
        vc = draw(st.sampled_from(["a", "b"]))
        arrival, steps = draw(st.integers(0, 60)), draw(st.integers(0, 60))
        rows.append((arrival, model, gpus, plan, steps, guaranteed, vc))
    jobs = jobs_of(*rows)
    jobs["duration"] = [float(draw(st.integers(0, 50))) for _ in rows]
    return jobs


def check_capacity(out: wt.Outcome) -> None:
    """Check GPUs and cores of every node at every start of a stay, counted anew."""
    assert out.flight.stretches is not None
    flight, kinds = out.flight, out.flight.stretches
    rows = out.segments.to_pylist()
    for start in {row["start"] for row in rows}:
        gpus = [0.0] * NODES.num_nodes
        cores = [0.0] * NODES.num_nodes
        for at, row in enumerate(rows):
            if row["start"] <= start < row["end"]:
                for node, held in zip(row["nodes"], row["node_gpus"], strict=True):
                    gpus[node] += held
                    cores[node] += held * kinds.cpus[at] / kinds.gpus[at]
        assert max(gpus) <= 8
        assert max(cores) <= 16
    assert len(flight.segment_job) == len(rows)


def check_work(out: wt.Outcome, penalty: float) -> None:
    """Check that every job did its iterations, no more, in its stays less the launches."""
    assert out.flight.stretches is not None
    kinds = out.flight.stretches
    done = [0.0] * len(out.jobs)
    for at, row in enumerate(out.segments.to_pylist()):
        worked = max(0.0, row["end"] - row["start"] - penalty)
        done[row["row"]] += worked / kinds.iteration_time[at]
        assert kinds.penalty_time[at] == pytest.approx(min(penalty, row["end"] - row["start"]))
    assert done == pytest.approx(kinds.iterations.tolist(), abs=1e-6)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=20)
@given(jobs=workloads(), penalty=st.sampled_from([0.0, 7.0, 30.0]))
def test_capacity_work_and_promises(name: str, jobs: dict[str, Any], penalty: float) -> None:
    out = wt.simulate(jobs, NODES, name, models=MODELS, penalty=penalty)
    assert set(out.table["status"].to_pylist()) == {"finished"}
    check_capacity(out)
    check_work(out, penalty)
    assert out.flight.stretches is not None
    if name.startswith(("morphling", "fixed-plan", "antman", "synergy")):
        kinds = out.flight.stretches
        for row, time in zip(out.flight.segment_job, kinds.iteration_time, strict=True):
            if kinds.guaranteed[row]:
                assert 1 / time >= kinds.promise[row] * (1 - 1e-9)
    if name.startswith("morphling"):
        assert measures.reconfigurations(out).max() <= 10
    if name in {"fixed-plan", "synergy"}:
        assert out.metrics()["num_reconfigurations"] == 0
    again = wt.simulate(jobs, NODES, name, models=MODELS, penalty=penalty)
    assert again.table.equals(out.table)


#: Every model with the one option that its users ask for.
RIGID = {
    "steep": ToyModel((("ga", (4,), 1, 2.0),)),
    "flat": ToyModel((("ga", (1,), 1, 2.0),)),
    "offload": ToyModel((("zero-offload", (2,), 8, 2.0),)),
}


@settings(max_examples=30)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(0, 60),
            st.sampled_from(
                [("steep", 4, "ga"), ("flat", 1, "ga"), ("offload", 2, "zero-offload")]
            ),
            st.integers(0, 60),
        ),
        min_size=1,
        max_size=15,
    ),
    penalty=st.sampled_from([0.0, 9.0]),
)
def test_without_a_choice_morphling_is_its_rival(rows: Any, penalty: float) -> None:
    jobs = jobs_of(*((at, *request, steps) for at, request, steps in rows))
    runs = [
        wt.simulate(jobs, NODES, name, models=RIGID, penalty=penalty)
        for name in ("fixed-plan", "morphling", "antman", "synergy")
    ]
    for other in runs[1:]:
        assert other.table.equals(runs[0].table)


@settings(max_examples=30)
@given(jobs=workloads(promised=False))
def test_without_penalty_the_rival_is_fifo_with_skip(jobs: dict[str, Any]) -> None:
    keep = [i for i, model in enumerate(jobs["template"]) if model == "unheard"]
    jobs = {name: [column[i] for i in keep] for name, column in jobs.items()}
    if not keep:
        return
    elastic = wt.simulate(jobs, NODES, "fixed-plan", models=MODELS, penalty=0.0)
    plain = wt.simulate(jobs, NODES, "fifo", queueing="skip", resources="gpus")
    assert elastic.table["end_time"].equals(plain.table["end_time"])
    assert elastic.table["nodes"].equals(plain.table["nodes"])


@settings(max_examples=30)
@given(jobs=workloads())
def test_quotas_hold_at_every_instant(jobs: dict[str, Any]) -> None:
    policy = Priced(quotas={"a": 5, "b": 16}, margin=0.0)
    out = wt.simulate(jobs, NODES, policy, models=MODELS, penalty=5.0, until=1e6)
    floors = {
        ("steep", 1, "ga"): 1,
        ("steep", 4, "zero-dp"): 4,
        ("steep", 4, "ga"): 4,
        ("steep", 8, "ga"): 8,
        ("steep", 16, "ga"): 16,
        ("flat", 1, "ga"): 1,
        ("flat", 4, "ga"): 4,
        ("offload", 1, "zero-offload"): 1,
        ("offload", 2, "zero-offload"): 2,
    }
    rows = out.segments.to_pylist()
    for start in {row["start"] for row in rows}:
        used = {"a": 0, "b": 0}
        for row in rows:
            job = row["row"]
            if not row["start"] <= start < (row["end"] or math.inf):
                continue
            if jobs["is_sla"][job] and jobs["template"][job] != "unheard":
                asked = jobs["template"][job], jobs["num_gpus"][job], jobs["plan"][job]
                used[jobs["vc"][job]] += floors[asked]
        assert used["a"] <= 5
        assert used["b"] <= 16


@pytest.mark.slow
@settings(max_examples=30)
@given(
    steps=st.integers(20, 60),
    gap=st.integers(1, 9),
    size=st.sampled_from([("flat", 1), ("steep", 8)]),
)
def test_no_best_effort_job_starves(steps: int, gap: int, size: tuple[str, int]) -> None:
    """A stream of guaranteed jobs that fills the cluster for as long as it lasts."""
    stream = [(gap * i, "steep", 8, "ga", steps, 1) for i in range(60)]
    late = (5, size[0], size[1], "ga", 10, 0)
    jobs = jobs_of(*stream[:3], late, *stream[3:])
    out = wt.simulate(jobs, NODES, "morphling:priced:ageing=100", models=MODELS, penalty=5.0)
    row = out.table.slice(3, 1).to_pylist()[0]
    # Aged at 105 s; then what runs ends within a stay of a guaranteed job.
    assert row["start_time"] <= 105 + 5 + steps * 1.75 + 1e-6


def test_every_name_is_a_policy() -> None:
    for name in POLICIES:
        assert resolve_policy(name).elastic
