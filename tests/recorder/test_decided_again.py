"""Counterfactual: without all who are in its way a job starts, with any one of them it does not.

The whole state of a decision is copied, some of what holds GPUs is taken out, and the rule decides
once more. Runs with every rule, and with what else keeps jobs: quotas, failures, power, slow nodes.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from recorded_jobs import a_log

import windtunnel as wt
from windtunnel.cluster.free import NOBODY
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.policies.quota import Quota
from windtunnel.sim import verdicts
from windtunnel.sim.reference import Conservative, recorder

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable

POLICIES = ("fifo", "sjf", "priority-preemptive", "srtf", "fair-share", "multifactor")
RULES = ("strict", "skip", "easy", "easy_sjbf", "conservative")
SITES = ("4x8", "pool:32", "2x8:A,4x4:B")
FEATURES = (
    "", "spread", "racks", "cores", "shares", "pooled", "quotas", "failures", "repaired by one",
    "power", "far racks", "interval", "one by one", "resuming costs",
)  # fmt: skip
JOBS = 40
QUOTAS = {
    "queues": [
        {"vc": "a", "nominal_quota": 12, "cohort": "all", "borrowing_limit": 8},
        {"vc": "b", "nominal_quota": 12, "cohort": "all"},
        {"vc": "c", "nominal_quota": 8, "cohort": "all"},
    ]
}
#: 4 nodes of 8 GPUs that draw 8.8 kW when all are in use.
POWER = {"gpus": {"default": {"idle_w": 25, "active_w": 250}}, "host_w": 200}
#: What stands for the power cap among what is in a job's way.
CAP = "cap"


def a_run(chance: np.random.Generator) -> tuple[str, dict[str, Any], Any, dict[str, Any]]:
    """Return a feature, jobs, a site and how they are flown."""
    jobs = a_log(JOBS, int(chance.integers(10**6)), least=1)
    feature = str(chance.choice(FEATURES))
    fields: dict[str, Any] = {
        "policy": str(chance.choice(POLICIES)),
        "queueing": str(chance.choice(RULES)),
    }
    site: Any = "4x8"
    if feature == "cores":
        jobs["num_cpus"] = jobs["num_gpus"] * chance.integers(1, 7, JOBS)
        site = ClusterSpec((NodeType(count=4, gpus=8, cpus=32),))
    elif feature in {"shares", "pooled"}:
        jobs["num_gpus"] = np.where(jobs["num_gpus"] == 1, 0.5, jobs["num_gpus"])
        fields["sharing"] = "pooled" if feature == "pooled" else "devices"
    elif feature == "quotas":
        jobs["vc"] = jobs["user"]
        fields = {"policy": Quota(QUOTAS)}
    elif feature == "power":
        watts = float(chance.choice([6_000, 7_000, 8_000]))
        fields |= {"power": POWER, "power_cap": {"rows": [[0.0, watts]], "limits": "none"}}
    elif feature:
        fields |= MORE[feature]
    else:
        site = str(chance.choice(SITES))
    return feature, jobs, site, fields


#: What features add to how jobs are flown.
MORE: dict[str, dict[str, Any]] = {
    "spread": {"placement": "spread"},
    "racks": {"topology": "rack=2", "topology_request": "preferred:rack", "placement": "tree"},
    "failures": {"disruptions": "mtbf:300s/mttr:60s", "seed": 3},
    "repaired by one": {"disruptions": {
        "failure_models": [{"mtbf": 200, "mttr": 30}], "repair_crews": 1,
        "checkpoint": {"interval": 7, "restart_cost": 3},
    }},
    "far racks": {"slowdown": {"rack": 0.7}, "topology": "rack=2"},
    "interval": {"decide_every": 7},
    "one by one": {"events": "submissions_first"},
    "resuming costs": {"restore_time": 5},
}  # fmt: skip


@dataclass(frozen=True)
class Instant:
    """A run after a decision, which may be copied and decided again.

    Attributes:
        state: its tables.
        scheduler: what decides.
    """

    state: Any
    scheduler: Any

    @property
    def in_the_way(self) -> list[Hashable]:
        """All that may be: jobs by their number, nodes that are down, the power cap."""
        is_pool = self.state.problem.is_pool
        nodes = [] if is_pool else [("node", node) for node in self.state.free.withheld]
        caps = [CAP] if self.state.watts is not None else []
        return [*self.state.waiting, *self.state.running, *nodes, *caps]

    def starts(self, without: Collection[Hashable] = ()) -> set[int]:
        """Return who is started, had some never been in the way; jobs by their number."""
        state, scheduler = self._copy()
        for one in without:
            if one == CAP:
                lift_cap(state, scheduler)
            elif isinstance(one, tuple):
                state.free.withheld[one[1]] = (NOBODY,)
                state.free.restore(one[1])
            else:
                take_out(state, scheduler, one)
        if without:
            state.forget_refusals()
        before = set(state.running)
        scheduler.decide()
        return set(state.running) - before

    def _copy(self) -> tuple[Any, Any]:
        """Return an independent copy of both; what never changes is shared."""
        state = self.state
        sources = getattr(self.scheduler, "power", None)
        rows = getattr(sources, "_rows", None)  # what the cap will be is asked of the plan
        fixed = {id(one): one for one in (
            state.problem, state.problem.jobs, state.plan, state.watts, state.placement, rows,
            state.recorder,
        )}  # fmt: skip

        class Writer(pickle.Pickler):
            def persistent_id(self, one: Any) -> int | None:
                return id(one) if id(one) in fixed else None

        class Reader(pickle.Unpickler):
            def persistent_load(self, one: int) -> Any:
                return fixed[one]

        file = io.BytesIO()
        Writer(file, protocol=5).dump((state, self.scheduler))
        file.seek(0)
        state, scheduler = Reader(file).load()
        state.recorder = None
        return state, scheduler

    def needed(self, job: int, named: int) -> set[Hashable]:
        """Return the fewest without whom a job starts; if possible with who is named."""
        found = {one for one in self.in_the_way if one != job}
        assert job in self.starts(found)
        waiting = set(self.state.waiting)
        singles: list[list[Hashable]] = []
        for group in (found - waiting, (found & waiting) - {named}):  # who runs stays if possible
            order = sorted(group, key=str)
            self._drop([order[at : at + 6] for at in range(0, len(order), 6)], job, found)
            singles += [[one] for one in order]
            while self._drop(singles, job, found):
                pass
        while self._drop([[named], *singles], job, found):
            pass
        return found

    def _drop(self, parts: list[list[Hashable]], job: int, found: set[Hashable]) -> bool:
        """Take parts out of a set without which a job starts nonetheless; return if there are."""
        before = len(found)
        for part in parts:
            if found & set(part) and job in self.starts(found - set(part)):
                found -= set(part)
        return len(found) < before


def lift_cap(state: Any, scheduler: Any) -> None:
    """Let there be as much power as anybody wants."""
    state.budget = 10**30
    power = getattr(scheduler, "power", None)
    if power is not None:
        power.caps_after, power.budget_at = lambda *_: [], lambda _: 10**30


def take_out(state: Any, scheduler: Any, job: int) -> None:
    """Let a job be over."""
    if job in state.running:
        state.leave(job)
    else:
        del state.waiting[job]
        lines = getattr(state.policy, "_lines", None)
        if lines is not None:  # quotas: nobody ever leaves their queues but to run
            account = state.policy._queue_of[job]
            del lines[account].jobs[job]
            for places in lines[account]._classes.values():
                places[:] = sorted(place for place in places if place[-1] != job)
            return
    state.finished.add(job)
    scheduler.gone(job)


def check(instant: Instant, row: tuple[Any, ...]) -> None:
    """Check one row of a recording against what would have been."""
    _, _, job, verdict, blocker, _ = row
    assert instant.starts() == set()  # all that could start had been started
    others = {one for one in instant.state.waiting if one != job}
    needed = instant.needed(job, blocker)
    assert needed
    assert job in instant.starts(needed)
    for one in needed:
        assert job not in instant.starts(needed - {one})
    names_one = not isinstance(instant.scheduler, Conservative)  # but the soonest promised
    if names_one and blocker >= 0 and job in instant.starts(others):
        assert blocker in needed
    if instant.state.policy.preemptive:
        return  # a job that has no room now may have some by preemption, were others not ahead
    if verdict in {verdicts.NO_ROOM, verdicts.FIRST, verdicts.POWER}:
        assert job not in instant.starts(others)
    if verdict == verdicts.POWER:
        assert job in instant.starts({*others, CAP})
    elif CAP in instant.in_the_way and verdict in {verdicts.NO_ROOM, verdicts.FIRST}:
        assert job not in instant.starts({*others, CAP})


def sampled(monkeypatch: pytest.MonkeyPatch, count: int, seed: int) -> int:
    """Fly runs in turn, and decide some of their decisions again; return how many."""
    chance = np.random.default_rng(seed)
    done = 0
    decided = recorder.Recorder.decided

    def spy(self: Any, point: int) -> None:
        nonlocal done
        first = len(self.rows)
        decided(self, point)
        fresh = [row for row in self.rows[first:] if row[2] in self.state.waiting]
        if fresh and chance.random() < share:
            row = fresh[int(chance.integers(len(fresh)))]
            check(Instant(self.state, self.scheduler), row)
            done += 1

    monkeypatch.setattr(recorder.Recorder, "decided", spy)
    share = 0.1
    while done < count:
        feature, jobs, site, fields = a_run(chance)
        try:
            wt.simulate(jobs, site, engine="reference", record=True, **fields)
        except AssertionError as error:
            raise AssertionError(f"{feature}: {fields}") from error
    return done


def test_without_all_blockers_a_job_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sampled(monkeypatch, 30, 1) >= 30


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
def test_a_thousand_decisions(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    assert sampled(monkeypatch, 50, seed) >= 50
