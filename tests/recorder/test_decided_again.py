"""Counterfactual: without all who are in its way a job starts, with any one of them it does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from recorded_jobs import a_log

import windtunnel as wt
from windtunnel.sim import reference, verdicts
from windtunnel.sim.reference.again import Again

RUNS = [
    {"policy": policy, "queueing": rule, "site": site}
    for policy in ("fifo", "sjf", "priority-preemptive", "srtf")
    for rule in ("strict", "skip", "easy", "easy_sjbf")
    for site in ("4x8", "pool:32", "2x8:A,4x4:B")
]


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
        fields = dict(RUNS[int(chance.integers(len(RUNS)))])
        jobs = a_log(40, int(chance.integers(10**6)), least=1)
        out = wt.simulate(jobs, fields.pop("site"), engine="reference", record=True, **fields)
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
