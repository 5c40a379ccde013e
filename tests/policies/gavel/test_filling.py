"""Who takes free GPUs between two rounds (`fill`), worked by hand and as laws, on both engines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from round_works import Flown, Stay, always, deciders, fly_in_rounds, work_of, works

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.policies.gavel.rounds import Rounds
from windtunnel.policies.gavel.work import ALONE, Decision, Rules, Work

ENGINES = ("compiled", "reference")
ROUND = 360.0


def starts(flown: Flown) -> list[float]:
    """First start of each job, s."""
    return [float(value) for value in flown.outcome.flight.start]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("fill", "start"), [("all", 361.0), ("true", 361.0), ("false", 720.0)])
def test_an_arrival_a_second_after_a_boundary(engine: str, fill: str, start: float) -> None:
    work = work_of([[1.0]] * 2, [2000.0, 50.0], nodes=[[2]], submit=[0.0, 361.0])
    flown = fly_in_rounds(work, always([[1.0]] * 2), Rules(fill=fill), engine=engine)
    assert starts(flown) == [0.0, start]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("fill", "others"), [("all", [10.0, 60.0]), ("true", [10.0, 60.0]), ("false", [360.0, 720.0])]
)
def test_two_arrivals_that_both_fit_one_place(engine: str, fill: str, others: list[float]) -> None:
    """The first of the input goes first; the other has the place once it is free."""
    work = work_of([[1.0]] * 3, [2000.0, 50.0, 50.0], nodes=[[2]], submit=[0.0, 10.0, 10.0])
    flown = fly_in_rounds(work, always([[1.0]] * 3), Rules(fill=fill), engine=engine)
    assert starts(flown) == [0.0, *others]


@pytest.mark.parametrize(("fill", "start"), [("all", 100.0), ("true", 360.0), ("false", 360.0)])
def test_who_got_nothing_at_the_last_round_waits_for_the_next(fill: str, start: float) -> None:
    work = work_of([[1.0]] * 3, [100.0, 500.0, 1000.0], nodes=[[2]])
    flown = fly_in_rounds(work, always([[1.0], [1.0], [0.0]]), Rules(fill=fill))
    assert starts(flown) == [0.0, 0.0, start]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("fill", ["all", "true", "false"])
def test_a_round_whose_jobs_are_done_is_over(engine: str, fill: str) -> None:
    """At 100 s and at 300 s nothing runs any more."""
    work = work_of([[1.0]] * 3, [100.0, 200.0, 500.0], nodes=[[1]], submit=[0.0, 10.0, 20.0])
    shares = always([[1.0], [1.0], [0.0]])
    flown = fly_in_rounds(work, shares, Rules(fill=fill), engine=engine)
    assert starts(flown) == [0.0, 100.0, 300.0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("fill", "stays"),
    [
        # The repair at 200 s lets the arrival of 150 s in, not the job that the failure stopped.
        ("true", [(0, 0.0), (1, 0.0), (2, 200.0), (0, 360.0)]),
        ("false", [(0, 0.0), (1, 0.0), (0, 360.0), (2, 720.0)]),
        ("all", [(0, 0.0), (1, 0.0), (0, 200.0), (2, 700.0)]),
    ],
)
def test_a_failed_nodes_job_waits_for_the_round(
    engine: str, fill: str, stays: list[tuple[int, float]]
) -> None:
    work = work_of([[1.0]] * 3, [500.0, 715.0, 100.0], nodes=[[1, 1]], submit=[0.0, 0.0, 150.0])
    down = {"node_failures": [{"time": 100.0, "until": 200.0, "node": 0}]}
    flown = fly_in_rounds(
        work,
        always([[1.0], [1.0], [0.5]]),
        Rules(fill=fill),
        disruptions=down,
        engine=engine,
    )
    assert [(stay.job, stay.start) for stay in flown.stays()] == stays


def test_an_arrival_that_a_failure_stopped_does_not_fill_again() -> None:
    work = work_of([[1.0]] * 2, [1000.0, 500.0], nodes=[[1, 1]], submit=[0.0, 10.0])
    down = {"node_failures": [{"time": 50.0, "until": 60.0, "node": 1}]}
    flown = fly_in_rounds(work, always([[1.0]] * 2), Rules(fill="true"), disruptions=down)
    assert [stay.start for stay in flown.stays() if stay.job == 1] == [10.0, ROUND]


def test_what_an_arrival_had_is_taken_off_its_deficit() -> None:
    """Two GPUs, one of them held. At 360 s the two arrivals lack half a round each.

    The one that ran since 60 s has had 300 s, so the other goes first; under `all` what was had
    before there was a share does not count, they are equal, and who runs goes on.
    """
    work = work_of([[1.0]] * 3, [1e4] * 3, nodes=[[2]], submit=[0.0, 60.0, 61.0])
    decide = always([[1.0], [0.5], [0.5]])
    flown = fly_in_rounds(work, decide, Rules(fill="true", until=700.0))
    assert flown.outcome.flight.start.tolist() == [0.0, 60.0, ROUND]
    flown.policy.close(700.0)
    assert flown.type_time[:, 0].tolist() == [700.0, 300.0, 340.0]
    # By 700 s: 340 s of a half each, less the 300 s that filled, and less the 340 s since.
    assert flown.policy._deficits._deficit[:, 0].tolist() == [0.0, 170.0 - 300.0, 170.0 - 340.0]
    kept = fly_in_rounds(work, decide, Rules(fill="all", until=700.0))
    assert starts(kept)[:2] == [0.0, 60.0]
    assert math.isnan(starts(kept)[2])


@pytest.mark.parametrize(
    ("blind", "holders", "kind"),
    [
        (False, [[1.0, 0.0]], 1),  # where it is fastest
        (False, [[0.0, 1.0]], 0),  # or else where there is a place
        (True, [], 0),  # speeds are not known: where most GPUs are free
        (True, [[1.0, 0.0], [1.0, 0.0]], 1),
    ],
)
def test_the_type_of_an_arrival(
    blind: bool,  # noqa: FBT001 - a case
    holders: list[list[float]],
    kind: int,
) -> None:
    """Of type a there are three GPUs, one for a job that lasts, of b one, on which it is faster."""
    speeds = [[1.0, 0.0], *holders, [1.0, 2.0]]
    last = len(speeds) - 1
    work = work_of(
        *(speeds, [5000.0] * last + [10.0]),
        nodes=[[1, 1, 1], [1]],
        submit=[0.0] * last + [7.0],
    )
    flown = fly_in_rounds(work, always(speeds), Rules(fill="true", blind=blind))
    (stay,) = [stay for stay in flown.stays() if stay.job == last]
    assert (stay.start, stay.kind) == (7.0, kind)


@pytest.mark.parametrize(("in_turn", "start"), [(False, 20.0), (True, 350.0)])
def test_in_turn_nobody_passes_one_who_waits(in_turn: bool, start: float) -> None:  # noqa: FBT001 - a case
    """The gang of two came first; it gets the GPUs at 300 s, and is done at 350."""
    work = work_of(
        *([[1.0]] * 3, [300.0, 50.0, 50.0]),
        nodes=[[2]],
        gangs=[1, 2, 1],
        submit=[0.0, 10.0, 20.0],
    )
    flown = fly_in_rounds(work, always([[1.0]] * 3), Rules(fill="true", in_turn=in_turn))
    assert starts(flown) == [0.0, 300.0, start]


def test_in_turn_who_came_before_the_round_goes_first() -> None:
    """The gang got nothing at 0 s; no arrival takes a GPU before it, though one is free."""
    work = work_of(
        *([[1.0]] * 3, [700.0, 50.0, 50.0]),
        nodes=[[2]],
        gangs=[1, 2, 1],
        submit=[0.0, 0.0, 20.0],
    )

    def first(now: float, active: np.ndarray, left: np.ndarray) -> Decision:
        del now, left
        members = np.column_stack([active, np.full(len(active), ALONE)])
        return Decision(members, np.eye(len(active), 1))

    flown = fly_in_rounds(work, first, Rules(fill="true", in_turn=True))
    assert starts(flown) == [0.0, 700.0, 750.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_arrivals_fill_at_multiples_of_an_interval(engine: str) -> None:
    work = work_of([[1.0]] * 2, [2000.0, 50.0], nodes=[[2]], submit=[0.0, 61.0])
    flown = fly_in_rounds(
        work, always([[1.0]] * 2), Rules(fill="true"), decide_every=50.0, engine=engine
    )
    assert starts(flown) == [0.0, 100.0]


class Written(Rounds):
    """Writes down when its rounds begin."""

    def _begin_round(self, now: float, cluster: Any) -> Any:
        """Begin a round."""
        self.begun.append(now)
        yield from super()._begin_round(now, cluster)

    begun: list[float]


def flown_with_rounds(
    work: Work, decide: Any, fill: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[Flown, list[float]]:
    """Fly, and return what came of it and when its rounds began, s."""
    Written.begun = []
    monkeypatch.setattr("round_works.Rounds", Written)
    flown = fly_in_rounds(work, decide, Rules(fill=fill))
    return flown, Written.begun


@pytest.fixture(scope="module")
def patched() -> Any:
    """A patch for all examples of a property."""
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@given(data=st.data(), work=works(), fill=st.sampled_from(["true", "false"]))
def test_between_rounds_arrivals_start_and_nobody_is_stopped(
    patched: pytest.MonkeyPatch, data: st.DataObject, work: Work, fill: str
) -> None:
    flown, rounds = flown_with_rounds(work, data.draw(deciders(work)), fill, patched)
    boundaries = set(rounds)
    seen: set[int] = set()
    for stay in flown.stays():
        if stay.start not in boundaries:
            assert fill == "true"
            assert stay.job not in seen
            before = max(begun for begun in rounds if begun <= stay.start)
            assert work.submit[stay.job] > before
        seen.add(stay.job)
        is_over = stay.end == flown.end[stay.job]
        assert is_over or stay.end in boundaries or _was_left_by_another(flown, stay)


def _was_left_by_another(flown: Flown, stay: Stay) -> bool:
    """Return whether a job left as the other on its GPUs was done: it cannot be alone."""
    return flown.work.pair_speeds is not None and stay.end in flown.end.tolist()


@given(work=works(), fill=st.sampled_from(["true", "false"]))
def test_the_books_are_the_stays(work: Work, fill: str) -> None:
    """The time that each job had on each type, filled or not, is what it held."""
    flown = fly_in_rounds(work, always([[0.5] * work.num_types] * work.num_jobs), Rules(fill=fill))
    held = np.zeros((work.num_jobs, work.num_types))
    for stay in flown.stays():
        held[stay.job, stay.kind] += stay.end - stay.start
    flown.policy.close(float(np.nanmax(flown.end)))
    np.testing.assert_allclose(flown.type_time, held, atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("fill", ["true", "false", "all"])
@pytest.mark.parametrize("name", ["gavel:max_min_fairness", "gavel:fifo", "shockwave:market"])
def test_jobs_that_are_alone_never_wait(name: str, fill: str, engine: str) -> None:
    """A round begins when a job comes to an empty cluster, whoever fills."""
    jobs = {"submit_time": [3, 500, 777], "duration": [400, 200, 1000], "num_gpus": [2, 1, 2]}
    run = wt.simulate(jobs, "1x2:v100", f"{name}:fill={fill}", engine=engine)
    assert run.table["start_time"].to_pylist() == [3.0, 500.0, 777.0]


@pytest.mark.parametrize("name", ["gavel:max_min_fairness", "shockwave:max_min_fairness"])
def test_fill_by_name(name: str) -> None:
    jobs = {"submit_time": [0, 10], "duration": [1000, 10], "num_gpus": [1, 1]}
    length = 360.0 if name.startswith("gavel") else 120.0
    expected = {"": length, ":fill=all": 10.0, ":fill=true": 10.0, ":fill=false": length}
    for words, start in expected.items():
        run = wt.simulate(jobs, "1x2:v100", name + words)
        assert run.table["start_time"].to_pylist() == [0.0, start]
        assert run.settings["parameters"].get("fill", "") == words.removeprefix(":fill=")


@pytest.mark.parametrize(
    ("policy", "compat", "message"),
    [
        ("gavel:fifo:fill=maybe", None, "policy gavel:fifo: fill: unknown name 'maybe'"),
        ("shockwave:market:fill=1", None, "policy shockwave:market: fill: unknown name '1'"),
        ("gavel:fifo:mechanism=ideal:fill=false", None, "fill: ideal rounds have none"),
        ("gavel:fifo:mechanism=published:fill=true", None, "fill: published rounds have none"),
        ("gavel:fifo:fill=true", "gavel", "fill: published rounds have none"),
        ("shockwave:market:fill=true", "shockwave", "fill: published rounds have none"),
        ("pollux:tiresias:fill=true", "pollux", "fill: published rounds have none"),
    ],
)
def test_what_is_refused(policy: str, compat: str | None, message: str) -> None:
    jobs = {"submit_time": [0], "duration": [10], "num_gpus": [1]}
    with pytest.raises(SpecError, match=message):
        wt.simulate(jobs, "1x2:v100", policy, compat=compat)
