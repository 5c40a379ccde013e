"""Shares asked again and again during a run: the kept program, and the books of equal shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gavel_instances import fixed, instance, instances
from hypothesis import given
from hypothesis import strategies as st

from windtunnel import gavel
from windtunnel.policies.gavel.deciding import Shares
from windtunnel.policies.gavel.in_rounds import GavelPolicy
from windtunnel.policies.gavel.work import Work

COPIES = 4


def shares_in_run(problem: dict[str, Any], policy: str) -> tuple[Shares, Work]:
    """Return a policy ready to be asked about jobs that are all there from time 0."""
    seen = gavel.as_instance(problem)
    count = seen.num_jobs
    gpus = seen.num_gpus.astype(int)
    work = Work(
        names=[str(name) for name in seen.job_ids],
        gpu_types=seen.gpu_types,
        num_gpus=gpus,
        node_sizes=tuple(np.array([n]) for n in gpus),
        node_index=tuple(np.array([n]) for n in range(len(gpus))),
        submit=np.zeros(count),
        steps=np.full(count, 1e6),
        gangs=seen.scale_factors.astype(int),
        speeds=seen.throughputs,
        spread_speeds=seen.throughputs,
        kinds=np.arange(count),
    )
    nobody = np.full(count, -1)
    ready = Shares(
        GavelPolicy(policy),
        work,
        weights=seen.weights,
        deadlines=np.full(count, np.inf),
        entities=(),
        entity_of=nobody,
        prices=np.full(len(gpus), np.nan),
        seed=0,
    )
    return ready, work


@fixed
@given(st.data(), instances(), st.sampled_from(["max_min_fairness", "max_min_fairness_perf"]))
def test_the_kept_program_decides_as_one_built_anew(
    data: st.DataObject, problem: dict[str, Any], policy: str
) -> None:
    """Jobs of each kind come and go, to none and back; the shares are those of `allocate`."""
    kinds = problem["jobs"]
    problem["jobs"] = [
        kind | {"id": f"{kind['id']}/{copy}"} for copy in range(COPIES) for kind in kinds
    ]
    ready, work = shares_in_run(problem, policy)
    assert ready._kept_program is not None
    everyone = gavel.as_instance(problem)
    for _ in range(5):
        here = data.draw(st.sets(st.integers(0, work.num_jobs - 1), min_size=1))
        active = np.array(sorted(here))
        decided = ready(0.0, active, work.steps)
        anew = gavel.allocate(policy, everyone.keep(active), gangs="whole")
        expected = np.array([list(anew.shares[everyone.job_ids[row]].values()) for row in active])
        assert decided.members.tolist() == [[row, -1] for row in active]
        assert decided.shares == pytest.approx(expected, abs=1e-7)


def test_nobody_is_given_nothing() -> None:
    problem = instance({"v100": 1, "k80": 1}, [[4.0, 1.0]])
    ready, work = shares_in_run(problem, "max_min_fairness_perf")
    assert ready(0.0, np.array([0]), work.steps).shares.tolist() == [[0.0, 1.0]]  # v100 is last
    assert ready(360.0, np.empty(0, int), work.steps).shares.shape == (0, 2)
    assert ready(720.0, np.array([0]), work.steps).shares.tolist() == [[0.0, 1.0]]


def test_many_kinds_are_not_kept() -> None:
    problem = instance({"v100": 2.0}, [[1.0 + number] for number in range(250)])
    ready, work = shares_in_run(problem, "max_min_fairness_perf")
    assert ready._kept_program is None
    shares = ready(0.0, np.arange(250), work.steps).shares
    assert shares == pytest.approx(np.full((250, 1), 2 / 250))


def test_steps_before_the_first_decision_count_at_the_equal_share() -> None:
    """A job may take free GPUs within a round, before shares are decided on."""
    problem = instance({"v100": 1, "k80": 1}, [[4.0, 2.0], [4.0, 2.0], [8.0, 2.0]])
    ready, work = shares_in_run(problem, "max_min_fairness_perf")
    left = work.steps - np.array([0.0, 300.0, 500.0])
    ready(100.0, np.array([0, 1]), left)  # the last job came and went
    assert ready.isolated_time.tolist() == [0.0, 300.0 / 3.0, 500.0 / 5.0]
    left -= np.array([600.0, 0.0, 0.0])
    ready.account(left)
    assert ready.isolated_time.tolist() == [200.0, 100.0, 100.0]


def test_steps_that_a_failure_undid_are_taken_off() -> None:
    problem = instance({"v100": 1}, [[4.0], [4.0]])
    ready, work = shares_in_run(problem, "max_min_fairness_perf")
    ready(0.0, np.array([0, 1]), work.steps)
    ready.account(work.steps - np.array([200.0, 0.0]))
    ready.account(work.steps - np.array([50.0, 0.0]))  # a failure undid 150 of them
    assert ready.isolated_time.tolist() == [50.0 / 2.0, 0.0]


def test_undone_steps_are_taken_off_at_the_speed_at_which_they_were_done() -> None:
    """They were done alone, at 4 steps a second, and are undone when there are four jobs, at 1."""
    problem = instance({"v100": 1}, [[4.0]] * 4)
    ready, work = shares_in_run(problem, "max_min_fairness_perf")
    ready(0.0, np.array([0]), work.steps)
    done = np.array([200.0, 0.0, 0.0, 0.0])
    ready(50.0, np.arange(4), work.steps - done)
    assert ready.isolated_time.tolist() == [50.0, 0.0, 0.0, 0.0]
    ready.account(work.steps - 0.75 * done)
    assert ready.isolated_time.tolist() == [37.5, 0.0, 0.0, 0.0]
    ready.account(work.steps)
    assert ready.isolated_time.tolist() == [0.0, 0.0, 0.0, 0.0]
