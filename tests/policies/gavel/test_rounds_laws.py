"""What holds for every piece of work and all shares, on every mechanism."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from round_works import (
    always,
    deciders,
    fly_in_rounds,
    stays_of,
    use_over_time,
    work_of,
    works,
)

from windtunnel.policies.gavel.ideal import fly_ideal
from windtunnel.policies.gavel.published import fly_as_published
from windtunnel.policies.gavel.work import Rules

if TYPE_CHECKING:
    from round_works import Flown

    from windtunnel.policies.gavel.record import RoundLog
    from windtunnel.policies.gavel.work import Allocator, Work

MECHANISMS = {"published": fly_as_published, "deficit": fly_in_rounds}
mechanisms = st.sampled_from(sorted(MECHANISMS))


def without_pairs(work: Work) -> Work:
    return dataclasses.replace(work, pair_speeds=None)


def flown(name: str, work: Work, decide: Allocator, *, overhead: float = 0.0) -> RoundLog | Flown:
    if name == "published":
        return fly_as_published(work, decide, Rules(shuffle=5, packed=True))
    return fly_in_rounds(work, decide, Rules(), restore_time=overhead)


@given(st.data(), works(), mechanisms)
def test_every_job_finishes_and_none_before_it_can(
    data: st.DataObject, work: Work, name: str
) -> None:
    log = flown(name, work, data.draw(deciders(work)))
    assert not np.isnan(log.end).any()
    fastest = work.speeds.max(axis=1)
    slack = 1e-6 * work.steps
    assert (log.end - work.submit >= (work.steps - slack) / fastest).all()
    assert not np.isnan([stay.end for stay in stays_of(log)]).any()


@given(st.data(), works(), mechanisms)
def test_no_more_gpus_are_used_than_there_are(data: st.DataObject, work: Work, name: str) -> None:
    work = without_pairs(work)
    log = flown(name, work, data.draw(deciders(work)), overhead=data.draw(st.sampled_from([0, 30])))
    for (kind, node), gpus in use_over_time(stays_of(log)).items():
        at = work.node_index[kind].tolist().index(node)
        assert gpus <= work.node_sizes[kind][at]


@given(st.data(), works())
def test_shared_gpus_count_once(data: st.DataObject, work: Work) -> None:
    log = flown("deficit", work, data.draw(deciders(work)))
    span = np.nanmax(log.end) - work.submit.min()
    assert log.gpu_time.sum() <= work.num_gpus.sum() * span * (1 + 1e-9)


@given(st.data(), works(), st.sampled_from([0.0, 30.0]))
def test_progress_is_made_on_gpus_alone(data: st.DataObject, work: Work, overhead: float) -> None:
    work = dataclasses.replace(without_pairs(work), spread_speeds=work.speeds)
    log = flown("deficit", work, data.draw(deciders(work)), overhead=overhead)
    stays = np.bincount([stay.job for stay in stays_of(log)], minlength=work.num_jobs)
    done = (log.type_time * work.speeds).sum(axis=1)
    lost = overhead * (stays - 1) * work.speeds.max(axis=1)
    assert (done >= work.steps * (1 - 1e-9)).all()
    assert (done <= work.steps * (1 + 1e-9) + lost).all()


@pytest.mark.slow
@given(st.data(), works(), mechanisms)
def test_same_work_same_shares_same_run(data: st.DataObject, work: Work, name: str) -> None:
    decide = data.draw(deciders(work))
    one, other = flown(name, work, decide), flown(name, work, decide)
    assert stays_of(one) == stays_of(other)
    assert np.array_equal(one.gpu_time, other.gpu_time)


@given(st.data(), works())
def test_a_job_is_at_one_place_at_a_time(data: st.DataObject, work: Work) -> None:
    log = flown("deficit", work, data.draw(deciders(work)))
    for job in range(work.num_jobs):
        mine = [stay for stay in stays_of(log) if stay.job == job]
        for one, other in pairwise(mine):
            assert one.end <= other.start
        assert all(sum(stay.gpus) == work.gangs[job] for stay in mine)


@pytest.mark.parametrize("rounds", [10, 100, 1000])
def test_time_shares_become_true(rounds: int) -> None:
    shares = np.array([[0.5, 0.5], [0.3, 0.2], [0.2, 0.3]])
    until = 360.0 * rounds
    work = work_of([[1.0, 1.0]] * 3, [1e12] * 3, nodes=[[1], [1]])
    log = fly_in_rounds(work, always(shares.tolist()), Rules(until=until))
    assert np.abs(log.type_time - shares * until).max() <= 3 * 360.0  # whatever the length


@pytest.mark.parametrize("rounds", [10, 100, 1000])
def test_a_small_share_is_served_though_shares_change_every_round(rounds: int) -> None:
    until = 360.0 * rounds
    arrivals = np.arange(1, rounds) * 360.0
    count = len(arrivals) + 3
    submit = [0.0, 0.0, 0.0, *arrivals.tolist()]
    speeds = [[1.0, 0.0]] * 3 + [[0.0, 1.0]] * (count - 3)  # someone comes and goes each round
    steps = [1e12] * 3 + [100.0] * (count - 3)
    work = work_of(speeds, steps, nodes=[[1], [1]], submit=submit)
    shares = [[0.6, 0.0], [0.3, 0.0], [0.1, 0.0]] + [[0.0, 1.0]] * (count - 3)
    log = fly_in_rounds(work, always(shares), Rules(until=until))
    assert log.solves == rounds + 1  # the horizon's instant is part of the run
    assert np.abs(log.type_time[:3, 0] - np.array([0.6, 0.3, 0.1]) * until).max() <= 2 * 360.0


@given(works())
def test_ideal_is_no_slower_than_its_speeds_allow(work: Work) -> None:
    work = without_pairs(work)
    count = work.num_jobs
    split = work.num_gpus[None, :] / (count * work.gangs[:, None])
    split = split / np.maximum(1.0, split.sum(axis=1, keepdims=True))
    log = fly_ideal(work, always(split.tolist()), Rules())
    speed = (work.speeds * split).sum(axis=1)
    assert log.end - work.submit == pytest.approx(work.steps / speed)
