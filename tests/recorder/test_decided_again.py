"""Counterfactual: without all who are in its way a job starts, with any one of them it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from recorded_jobs import a_log

import windtunnel as wt
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.sim import reference, verdicts
from windtunnel.sim.reference.again import Again

POLICIES = ("fifo", "sjf", "priority-preemptive", "srtf")
RULES = ("strict", "skip", "easy", "easy_sjbf")
SITES = ("4x8", "pool:32", "2x8:A,4x4:B")
FEATURES = ("", "spread", "racks", "cores", "shares", "pooled")
JOBS = 40


def a_run(chance: np.random.Generator) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Return jobs, a site and how they are flown, with one feature or none."""
    jobs = a_log(JOBS, int(chance.integers(10**6)), least=1)
    feature = str(chance.choice(FEATURES))
    fields: dict[str, Any] = {
        "policy": str(chance.choice(POLICIES)),
        "queueing": str(chance.choice(RULES)),
    }
    if feature == "spread":
        return jobs, "4x8", {**fields, "placement": "spread"}
    if feature == "racks":
        asked = {"topology": "rack=2", "topology_request": "preferred:rack", "placement": "tree"}
        return jobs, "4x8", {**fields, **asked}
    if feature == "cores":
        jobs["num_cpus"] = jobs["num_gpus"] * chance.integers(1, 7, JOBS)
        return jobs, ClusterSpec((NodeType(count=4, gpus=8, cpus=32),)), fields
    if feature in {"shares", "pooled"}:
        jobs["num_gpus"] = np.where(jobs["num_gpus"] == 1, 0.5, jobs["num_gpus"])
        sharing = "pooled" if feature == "pooled" else "devices"
        return jobs, "4x8", {**fields, "sharing": sharing}
    return jobs, str(chance.choice(SITES)), fields


def sampled(monkeypatch: pytest.MonkeyPatch, count: int, seed: int) -> int:
    """Fly runs in turn, and decide some of their decisions again; return how many."""
    chance, given = np.random.default_rng(seed), dict[str, Any]()
    fly = reference.run

    def spy(problem: Any, policy: Any, placement: Any, **fields: Any) -> Any:
        given.update(problem=problem, policy=policy, placement=placement)
        given["queueing"] = fields["queueing"]
        return fly(problem, policy, placement, **fields)

    monkeypatch.setattr(reference, "run", spy)
    done = 0
    while done < count:
        jobs, site, fields = a_run(chance)
        out = wt.simulate(jobs, site, engine="reference", record=True, **fields)
        found = out.flight.verdicts
        assert found is not None
        rows = [at for at, code in enumerate(found.verdict) if code != verdicts.PREEMPTED]
        for at in chance.permutation(rows)[:4].tolist():
            check(Again(flight=out.flight, time=float(found.time[at]), **given), found, at)
            done += 1
    return done


def check(again: Again, found: verdicts.Verdicts, at: int) -> None:
    """Check one row of a recording."""
    number = {row: job for job, row in enumerate(again.problem.rows.tolist())}
    job = number[int(found.row[at])]
    assert again.starts() == set()  # all that could start had been started
    blockers = again.blockers(job)
    assert blockers
    assert job in again.starts(blockers)
    for one in blockers:
        assert job not in again.starts(blockers - {one})
    if found.verdict[at] == verdicts.WOULD_DELAY:
        assert number[int(found.blocker[at])] in blockers


def test_without_all_blockers_a_job_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sampled(monkeypatch, 50, 1) >= 50


@pytest.mark.slow
def test_a_thousand_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sampled(monkeypatch, 1_000, 2) >= 1_000
