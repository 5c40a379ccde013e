"""Tier-3 policies: what they see, what they may decide, and what is refused by name and time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.sim.contract import FunctionPolicy
from windtunnel.testing import assert_outcomes_equal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

JOBS = {
    "job_id": ["a", "b", "c", "d"],
    "submit_time": [0.0, 1.0, 2.0, 2.0],
    "duration": [6.0, 3.0, 1.0, 2.0],
    "num_gpus": [2.0, 4.0, 1.0, 1.0],
    "user": ["u", "v", "u", "w"],
}


class Example(wt.Policy):
    """The example of the style guide: first come, first served, strict."""

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[wt.Start]:
        for job in sorted(queue, key=lambda j: j.submit_time):
            where = cluster.fit(job.num_gpus)
            if where is None:
                break
            yield wt.Start(job, where)


class ExampleSkip(wt.Policy):
    """The same, going on past what does not fit, and leaving the place to the placement."""

    name = "example-skip"

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[wt.Start]:
        for job in queue:
            if cluster.fit(job) is not None:
                yield wt.Start(job)


@pytest.mark.parametrize("cluster", ["pool:4", "2x2", "1x4"])
@pytest.mark.parametrize(("given", "queueing"), [(Example, "strict"), (ExampleSkip(), "skip")])
def test_the_example_is_fifo(cluster: str, given: Any, queueing: str) -> None:
    out = wt.simulate(JOBS, cluster, given)
    fifo = wt.simulate(JOBS, cluster, "fifo", queueing=queueing)
    assert out.settings["engine"] == "compiled"
    assert out.settings["queueing"] == "policy"
    assert out.table.equals(fifo.table)
    assert out.segments.equals(fifo.segments)


def test_the_example_respects_cores_of_a_pool() -> None:
    jobs = {
        "submit_time": [0.0] * 3,
        "duration": [5.0] * 3,
        "num_gpus": [0.0] * 3,
        "num_cpus": [2.0] * 3,
    }
    cluster = wt.ClusterSpec.pool(1, cpus=2)
    assert wt.simulate(jobs, cluster, "fifo").table["start_time"].to_pylist() == [0, 5, 10]
    try:
        starts = wt.simulate(jobs, cluster, Example).table["start_time"].to_pylist()
    except wt.PolicyError:
        return  # a place that was asked for another demand may be refused, but not overbooked
    assert starts == [0, 5, 10]


def srtf(now: float, queue: Any, cluster: Any) -> Iterator[wt.Start | wt.Preempt]:
    """Shortest remaining time first, written as the walk with a quota."""
    ranked = sorted(
        [*cluster.running, *queue], key=lambda j: (j.remaining, j.submit_time, j.job_id)
    )
    quota, chosen = cluster.num_gpus, []
    for job in ranked:
        if job.num_gpus <= quota:
            quota -= job.num_gpus
            chosen.append(job)
    for job in cluster.running:
        if job not in chosen:
            yield wt.Preempt(job)
    for job in chosen:
        if not job.running and cluster.fit(job) is not None:
            yield wt.Start(job)


@pytest.mark.parametrize("cluster", ["pool:4", "2x2"])
def test_a_walk_written_by_hand_is_srtf(cluster: str) -> None:
    rng = np.random.default_rng(5)
    jobs = {
        "job_id": [f"{row:03d}" for row in range(60)],
        "submit_time": np.sort(rng.integers(0, 60, 60)).astype(float),
        "duration": rng.integers(1, 9, 60).astype(float),
        "num_gpus": rng.choice([1.0, 2.0, 4.0], 60),
    }
    out = wt.simulate(jobs, cluster, srtf)
    built_in = wt.simulate(jobs, cluster, "srtf", preemption="quota_walk")
    assert out.metrics()["num_preemptions"] > 5
    assert out.table.equals(built_in.table)
    assert out.segments.equals(built_in.segments)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_what_a_policy_sees(engine: str) -> None:
    seen: list[Any] = []

    def spy(now: float, queue: Any, cluster: Any) -> Iterator[wt.Start]:
        seen.append(
            (
                now,
                [job.job_id for job in queue],
                len(queue),
                queue.num_gpus.tolist(),
                queue.user.tolist(),
                [(j.job_id, j.running, j.remaining, j.run_time) for j in cluster.running],
                (cluster.num_gpus, cluster.free_gpus),
            )
        )
        if now == 2:
            assert queue[1].job_id == "c"
            assert repr(queue[1]) == "JobView('c', num_gpus=1)"
            assert [job.job_id for job in queue[1:]] == ["c", "d"]
            assert (queue[0].running, queue[0].remaining, queue[0].run_time) == (False, 3.0, 0.0)
        for job in queue:  # a snapshot: starting jobs on the way is safe
            if cluster.fit(job):
                yield wt.Start(job)

    wt.simulate(JOBS, "pool:4", spy, engine=engine)
    assert seen[:3] == [
        (0.0, ["a"], 1, [2.0], ["u"], [], (4.0, 4.0)),
        (1.0, ["b"], 1, [4.0], ["v"], [("a", True, 5.0, 1.0)], (4.0, 2.0)),
        (
            2.0,
            ["b", "c", "d"],
            3,
            [4.0, 1.0, 1.0],
            ["v", "u", "w"],
            [("a", True, 4.0, 2.0)],
            (4.0, 2.0),
        ),
    ]
    assert [entry[0] for entry in seen] == [0, 1, 2, 3, 4, 6, 9]


def test_a_preempted_job_waits_in_its_place_and_keeps_its_work() -> None:
    def alternate(now: float, queue: Any, cluster: Any) -> Iterator[wt.Start | wt.Preempt]:
        if now == 1:
            (running,) = cluster.running
            yield wt.Preempt(running)
            assert not running.running
            assert [job.job_id for job in queue] == ["a", "b"]
            assert (running.remaining, running.run_time) == (5.0, 1.0)
            yield wt.Start(queue[1])
        elif cluster.free_gpus:
            yield from (wt.Start(job) for job in queue)

    jobs = {name: values[:2] for name, values in JOBS.items()} | {"num_gpus": [1, 1]}
    out = wt.simulate(jobs, "pool:1", alternate, save_time=1, restore_time=0.5)
    assert out.table["start_time"].to_pylist() == [0, 1]
    assert out.table["end_time"].to_pylist() == [4 + 1.5 + 5, 4]
    assert out.table["num_preemptions"].to_pylist() == [1, 0]


def test_a_policy_may_choose_the_nodes() -> None:
    def last_nodes(now: float, queue: Any, cluster: Any) -> Iterator[wt.Start]:
        for job in queue:
            if job.job_id == "a" and now == 0:
                yield wt.Start(job, [(1, 1), (0, 1)])
            elif cluster.fit(job):
                yield wt.Start(job)

    out = wt.simulate(JOBS, "2x2", last_nodes)
    assert out.table["nodes"][0].as_py() == [1, 0]
    assert out.segments["node_gpus"][0].as_py() == [1, 1]


KEPT: dict[str, Any] = {}


def starts_twice(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    for job in queue:
        yield wt.Start(job)
        yield wt.Start(job)


def starts_what_does_not_fit(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    yield from (wt.Start(job) for job in queue)


def starts_on_busy_nodes(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    yield from (wt.Start(job, [(0, 2)]) for job in queue if job.num_gpus == 2 or now == 2)


def starts_on_too_few(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    yield from (wt.Start(job, [(0, 1)]) for job in queue)


def starts_on_no_node(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    yield from (wt.Start(job, []) for job in queue)


def starts_beyond_the_nodes(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    yield from (wt.Start(job, [(2, 2)]) for job in queue)


def starts_below_the_nodes(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    yield from (wt.Start(job, [(-1, 2)]) for job in queue)


def preempts_a_waiting_job(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    yield from (wt.Preempt(job) for job in queue)


def starts_a_finished_job(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    for job in queue:
        KEPT.setdefault("first", job)
        if cluster.fit(job):
            yield wt.Start(job)
    if now == 6:
        yield wt.Start(KEPT.pop("first"))


def starts_a_number(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    yield wt.Start(7)  # type: ignore[arg-type]


def yields_nonsense(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    yield "start a"


def undoes_work(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
    yield from (wt.Start(job) for job in queue.startable)
    if now == 2:
        yield wt.Preempt(cluster.running[0], loses=True)


NO_FIT = "starts a job where it does not fit: "
HALF = "; 2 of 4 GPUs are free (by node: 2 on 1)"
ALL = "; 4 of 4 GPUs are free (by node: 2 on 0, 2 on 1)"


@pytest.mark.parametrize(
    ("decide", "time", "job", "message"),
    [
        (starts_twice, 0, "a", "starts a job that already runs"),
        (starts_what_does_not_fit, 1, "b", NO_FIT + "2 of 4 GPUs are free (by node: 2 on 1)"),
        (
            starts_on_busy_nodes,
            2,
            "b",
            f"{NO_FIT}it asks for 4 GPUs, and is given 2 on node 0{HALF}",
        ),
        (starts_on_too_few, 0, "a", f"{NO_FIT}it asks for 2 GPUs, and is given 1 on node 0{ALL}"),
        (starts_on_no_node, 0, "a", f"{NO_FIT}it asks for 2 GPUs, and is given 0 on no node{ALL}"),
        (starts_beyond_the_nodes, 0, "a", f"{NO_FIT}there is no node 2; the nodes are 0 to 1{ALL}"),
        (starts_below_the_nodes, 0, "a", f"{NO_FIT}there is no node -1; the nodes are 0 to 1{ALL}"),
        (preempts_a_waiting_job, 0, "a", "preempts a job that does not run"),
        (undoes_work, 2, "a", "lets a job lose work; only a policy with loses=True may"),
        (starts_a_finished_job, 6, "a", "names a job that is neither waiting nor running"),
        (starts_a_number, 0, None, "names a job that is neither waiting nor running"),
        (
            yields_nonsense,
            0,
            None,
            "yielded 'start a'; expected Start, Preempt, Move, Rerate, Resize or Wake",
        ),
    ],
)
@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_impossible_decisions_name_the_time_and_the_job(
    decide: Callable[..., Any], time: float, job: str | None, message: str, engine: str
) -> None:
    with pytest.raises(wt.PolicyError, match=re.escape(message)) as error:
        wt.simulate(JOBS, "2x2", decide, engine=engine)
    assert (error.value.policy, error.value.time) == (decide.__name__, time)
    assert error.value.job == job
    who = "" if job is None else f", job {job!r}"
    expected = f"policy {decide.__name__!r} at t={time} s{who}: {message}"
    assert str(error.value) == expected


def test_a_task_is_not_split_over_nodes_by_a_policys_choice() -> None:
    def split(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        yield from (wt.Start(job, [(0, 1), (1, 1)]) for job in queue)

    jobs = {"submit_time": [0], "duration": [1], "num_gpus": [2], "num_tasks": [2]}
    assert wt.simulate(jobs, "2x2", split).table["nodes"].to_pylist() == [[0, 1]]
    with pytest.raises(wt.PolicyError, match="does not fit"):
        wt.simulate({**jobs, "num_tasks": [1]}, "2x2", split)


def test_a_policy_cannot_choose_another_gpu_type() -> None:
    def anywhere(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        yield from (wt.Start(job, cluster.fit(job.num_gpus)) for job in queue)

    jobs = {"submit_time": [0], "duration": [1], "num_gpus": [1], "gpu_type": ["B"]}
    with pytest.raises(wt.PolicyError, match="does not fit"):
        wt.simulate(jobs, "1x1:A,1x1:B", anywhere)
    assert wt.simulate(jobs, "1x1:A,1x1:B", ExampleSkip).table["nodes"].to_pylist() == [[1]]


def test_rounds_of_a_policy_that_decides() -> None:
    asked = []

    def decide(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        asked.append(now)
        for job in queue:
            if cluster.fit(job):
                yield wt.Start(job)

    policy = FunctionPolicy(decide, every=2.5)
    jobs = {"submit_time": [1.0, 30.0], "duration": [4.0, 1.0], "num_gpus": [1.0, 1.0]}
    out = wt.simulate(jobs, "pool:1", policy)
    # Submitted at 1, started at the round at 2.5, done at 6.5; no rounds while nothing is active.
    assert out.table["start_time"].to_pylist() == [2.5, 30.0]
    assert asked == [2.5, 5.0, 30.0]
    assert out.metrics()["scheduling_points"] == 3


class Filling(wt.Policy):
    """Starts nobody at rounds, and odd jobs between them; writes down what it is shown."""

    every = 10.0
    fills = True

    def __init__(self) -> None:
        self.seen: list[tuple[str, float, list[str], list[str]]] = []

    def _write(self, what: str, now: float, queue: Any, cluster: Any) -> None:
        names = ([job.job_id for job in jobs] for jobs in (queue.arrived, cluster.finished))
        self.seen.append((what, now, *names))  # type: ignore[arg-type] # two of them

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[wt.Start]:
        """Start everybody from 20 s on."""
        self._write("round", now, queue, cluster)
        if now >= 20:
            yield from (wt.Start(job) for job in queue)

    def fill(self, now: float, queue: Any, cluster: Any) -> Iterator[wt.Start]:
        """Start odd jobs."""
        self._write("fill", now, queue, cluster)
        yield from (wt.Start(job) for job in queue if job.number % 2)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_between_rounds_a_policy_may_fill(engine: str) -> None:
    """What has happened between two rounds is shown at fills, and again at the next round."""
    jobs = {
        "job_id": ["a", "b", "c", "d"],
        "submit_time": [0.0, 1.0, 12.0, 13.0],
        "duration": [5.0, 3.0, 5.0, 1.0],
        "num_gpus": [1.0] * 4,
    }
    policy = Filling()
    run = wt.simulate(jobs, "1x4", policy, engine=engine)
    assert run.table["start_time"].to_pylist() == [20.0, 1.0, 20.0, 13.0]
    assert policy.seen == [
        ("round", 0.0, ["a"], []),
        ("fill", 1.0, ["b"], []),
        ("fill", 4.0, ["b"], ["b"]),
        ("round", 10.0, ["b"], ["b"]),
        ("fill", 12.0, ["c"], []),
        ("fill", 13.0, ["c", "d"], []),
        ("fill", 14.0, ["c", "d"], ["d"]),
        ("round", 20.0, ["c", "d"], ["d"]),
        ("fill", 25.0, [], ["a", "c"]),
    ]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("events", ["submissions_first", "completions_first"])
def test_at_the_instant_of_a_round_events_in_turn_are_filled_first(
    events: str, engine: str
) -> None:
    """An arrival at 10 s has a decision of its own, before that of the round."""
    jobs = {"submit_time": [0.0, 10.0], "duration": [5.0, 5.0], "num_gpus": [1.0, 1.0]}
    policy = Filling()
    wt.simulate(jobs, "1x4", policy, engine=engine, events=events)
    assert [(what, now) for what, now, *_ in policy.seen if now == 10.0] == [
        ("fill", 10.0),
        ("round", 10.0),
    ]


def test_only_a_policy_that_decides_in_rounds_fills_between_them() -> None:
    policy = Filling()
    policy.every = None
    with pytest.raises(wt.PolicyError, match=r"fills=True; expected decide\(...\) with every="):
        wt.simulate(JOBS, "2x2", policy)


def test_waiting_for_ever_in_rounds_is_an_error() -> None:
    def lazy(now: float, queue: Any, cluster: Any) -> list[Any]:
        return []

    with pytest.raises(wt.PolicyError, match="starts none of 4 waiting jobs on an idle cluster"):
        wt.simulate(JOBS, "2x2", FunctionPolicy(lazy, every=1.0))


def test_jobs_that_a_policy_never_starts_are_accounted_for() -> None:
    def only_a(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        yield from (wt.Start(job) for job in queue if job.job_id == "a")

    out = wt.simulate(JOBS, "2x2", only_a)
    assert out.table["status"].to_pylist() == ["finished", "waiting", "waiting", "waiting"]
    assert out.metrics()["num_waiting"] == 3


def test_deciding_nothing_is_an_error_of_the_policy_not_of_python() -> None:
    def forgot_to_yield(now: float, queue: Any, cluster: Any) -> None:
        return None

    with pytest.raises(wt.PolicyError, match="forgot_to_yield"):
        wt.simulate(JOBS, "2x2", forgot_to_yield)


def test_the_same_policy_object_flies_twice() -> None:
    policy = Example()
    assert_outcomes_equal(wt.simulate(JOBS, "2x2", policy), wt.simulate(JOBS, "2x2", policy))


def _asks(what: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A policy that does one thing at 2 s, when jobs b, c and d wait."""

    def decide(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        if now < 2:
            yield from (wt.Start(job) for job in queue if cluster.fit(job))
        else:
            found = what(queue, cluster)
            yield from found if isinstance(found, list) else ()

    return decide


WRONG: list[tuple[str, Callable[[Any, Any], Any], str | None, str]] = [
    ("a word", lambda q, c: c.fit("x"), None, "asks where 'x' would go; expected a job, or a num"),
    ("nothing", lambda q, c: c.fit(None), None, "asks where None would go; expected a job, or a"),
    ("no number", lambda q, c: c.fit(float("nan")), None, "asks where nan would go"),
    ("too few", lambda q, c: c.fit(-1), None, "asks where -1 would go"),
    ("a part", lambda q, c: c.fit(0.5), None, "asks where 0.5 GPUs would go; expected whole GPUs"),
    ("no types", lambda q, c: c.fit(1, 7), None, "asks for GPU types 7; expected their names"),
    ("no jobs", lambda q, c: c.fit(1, None, 7), None, "asks what would fit without 7; expected"),
    ("an alarm", lambda q, c: [wt.Wake("x")], None, "asks to decide at 'x'; expected a later time"),  # type: ignore[arg-type]
    ("no place", lambda q, c: [wt.Start(q[1], 7)], "c", "found 7; expected pairs of a node"),  # type: ignore[arg-type]
    ("words", lambda q, c: [wt.Start(q[1], "ab")], "c", "found 'ab'; expected pairs of a node"),  # type: ignore[arg-type]
    ("large", lambda q, c: [wt.Start(q[1], [(0, 2**70)])], "c", "it asks for 1 GPUs, and is given"),
    ("far", lambda q, c: [wt.Start(q[1], [(2**70, 1)])], "c", "there is no node 118059162071741"),
    ("half", lambda q, c: [wt.Start(q[1], [(0, 0.5)])], "c", "found [(0, 0.5)]; expected pairs"),
]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("what", "job", "message"), [entry[1:] for entry in WRONG], ids=[entry[0] for entry in WRONG]
)
def test_wrong_types_are_named_with_instant_and_job(
    what: Callable[[Any, Any], Any], job: str | None, message: str, engine: str
) -> None:
    with pytest.raises(wt.PolicyError, match=re.escape(message)) as error:
        wt.simulate(JOBS, "2x2", _asks(what), engine=engine)
    assert (error.value.time, error.value.job) == (2.0, job)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("cluster", ["2x2", "pool:4"])
def test_more_gpus_than_there_are_fit_nowhere(cluster: str, engine: str) -> None:
    found = []

    def asks(queue: Any, view: Any) -> list[Any]:
        found.extend([view.fit(5), view.fit(10**30), view.fit(np.int64(2)), view.fit(1.0)])
        return [wt.Start(job) for job in queue if view.fit(job)]

    wt.simulate(JOBS, cluster, _asks(asks), engine=engine, until=3.0)
    assert found[:2] == [None, None]
    assert found[2] is not None
    assert found[3] is not None


#: A half, two whole GPUs of two tasks, a quarter.
SHARES: dict[str, Any] = {
    "submit_time": [0, 1, 2],
    "duration": [10, 10, 10],
    "num_gpus": [0.5, 2, 0.25],
    "num_tasks": [1, 2, 1],
}


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("sharing", "devices"),
    [
        # The quarter goes beside the half, on the device with least left, as best fit has it.
        (None, [[[0]], [[1, 2]], [[0]]]),
        ("pooled", None),
    ],
)
def test_a_number_of_gpus_on_devices_is_the_placements_to_choose(
    sharing: str | None, devices: Any, engine: str
) -> None:
    """Written as a float; a whole number is a set of devices there, as ``cluster.fit`` has it."""

    def on_the_last(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        yield from (wt.Start(job, [(1, job.num_gpus)]) for job in queue)

    out = wt.simulate(SHARES, "2x4", on_the_last, sharing=sharing, engine=engine)
    assert out.table["nodes"].to_pylist() == [[1], [1], [1]]
    assert out.table["start_time"].to_pylist() == [0, 1, 2]
    if devices is not None:
        assert out.segments["devices"].to_pylist() == devices


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_gang_may_be_split_by_numbers_of_gpus(engine: str) -> None:
    """Also where there are no devices: a float is as good as a whole number there."""

    def split(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        for job in queue:
            yield wt.Start(job, [(1, 1.0), (0, 1.0)] if job.num_gpus == 2 else [(0, job.num_gpus)])

    for sharing in (None, "devices"):
        jobs = SHARES if sharing else {**SHARES, "num_gpus": [1, 2, 1]}
        out = wt.simulate(jobs, "2x4", split, sharing=sharing, engine=engine)
        assert out.table["nodes"].to_pylist() == [[0], [1, 0], [0]]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("gpus", [0.25, 0.75, 3.0, -0.5, float("nan")])
def test_a_number_of_gpus_that_is_not_the_jobs_is_refused(gpus: float, engine: str) -> None:
    def wrong(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        yield from (wt.Start(job, [(0, gpus)]) for job in queue)

    with pytest.raises(wt.PolicyError, match=r"at t=0 s, job '0': starts a job where it does not"):
        wt.simulate(SHARES, "2x4", wrong, engine=engine)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(("user", "may"), [("a", True), ("b", False)])
def test_beside_another_only_where_a_job_may_start(user: str, may: bool, engine: str) -> None:  # noqa: FBT001 - a case
    """Node 0 is reserved while its first job runs on; who does not belong may not join it."""
    jobs = {"submit_time": [0, 4], "duration": [10, 5], "num_gpus": [1, 1], "user": ["c", user]}
    held = {"nodes": [0], "start": 2, "end": 30, "users": ["a"]}
    seen = []

    def beside(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        for job in queue:
            other = cluster.running[0] if cluster.running else None
            seen.append(other is not None and cluster.may_share(job, other))
            yield wt.Start(job, beside=other)

    def fly() -> wt.Outcome:
        return wt.simulate(jobs, "1x2", beside, engine=engine, disruptions={"reservations": [held]})

    if may:
        assert fly().table["start_time"].to_pylist() == [0, 4]
    else:
        with pytest.raises(wt.PolicyError, match="beside one on a node where it may not start now"):
            fly()
    assert seen == [False, may]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_place_that_was_asked_for_may_be_changed(engine: str) -> None:
    """What ``fit`` and ``where`` return is the policy's own: it counts as it is when it decides."""

    def elsewhere(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        for job in cluster.running:
            cluster.where(job).clear()
        for job in queue:
            where = cluster.fit(job)
            assert len(where) == 1
            where[0] = (1, 1)
            assert cluster.fit(job) == [(0 if now == 0 else 1, 1)]
            yield wt.Start(job, where)
            where.clear()

    jobs = {"submit_time": [0, 1], "duration": [10, 10], "num_gpus": [1, 1]}
    out = wt.simulate(jobs, "2x2", elsewhere, engine=engine)
    assert out.table["nodes"].to_pylist() == [[1], [1]]
    assert out.table["end_time"].to_pylist() == [10, 11]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_policy_that_returns_nothing_is_told_what_to_return(engine: str) -> None:
    jobs = {"submit_time": [0], "duration": [1], "num_gpus": [1]}
    with pytest.raises(wt.PolicyError, match=r"decide returned None.*or to return \(\)"):
        wt.simulate(jobs, "pool:1", lambda now, queue, cluster: None, engine=engine)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_none_is_no_decisions_where_nobody_waits_or_jobs_are_started_at_once(engine: str) -> None:
    """One that starts jobs at once may let them wait: at 5 the third. At 10 and 15 nobody waits."""

    def at_once(now: float, queue: Any, cluster: Any) -> None:
        for job in queue:
            if now % 10 == 0:
                cluster.start(job)

    def listed(now: float, queue: Any, cluster: Any) -> list[wt.Start] | None:
        return [wt.Start(job) for job in queue] or None

    jobs = {"submit_time": [0, 0, 5], "duration": [10, 10, 5], "num_gpus": [1, 1, 1]}
    for policy, third in ((at_once, 10), (listed, 5)):
        out = wt.simulate(jobs, "3x1", policy, engine=engine)
        assert out.table["start_time"].to_pylist() == [0, 0, third]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("name", ["num_gpus", "remaining", "running", "user", "mark"])
def test_a_policy_cannot_change_jobs(engine: str, name: str) -> None:
    def key(job: wt.JobView, now: float) -> float:
        setattr(job, name, 1)
        return 0.0

    def decide(now: float, queue: Any, cluster: Any) -> Iterator[wt.Start]:
        for job in queue:
            setattr(job, name, 1)
            yield wt.Start(job)

    jobs = {"submit_time": [0], "duration": [1], "num_gpus": [2]}
    expected = rf"jobs cannot be changed: found job.{name} = 1; keep .* dict of your own"
    for policy in (key, decide):
        with pytest.raises(AttributeError, match=expected):
            wt.simulate(jobs, "pool:2", policy, engine=engine)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_rounding_of_an_end_that_never_comes_is_no_work(engine: str) -> None:
    """At 0.75 it would end at 34 1/3 s, which has no last digit; 5.25 of 7 s are done at 32 s."""

    def decide(now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        yield from (wt.Rerate(job, 0.25) for job in cluster.running if now == 32)
        for job in queue:
            yield wt.Start(job, rate=0.75)
            yield wt.Wake(32.0)

    job = {"submit_time": [25.0], "duration": [7.0], "num_gpus": [1]}
    assert wt.simulate(job, "pool:1", decide, engine=engine).table["end_time"].to_pylist() == [39]
