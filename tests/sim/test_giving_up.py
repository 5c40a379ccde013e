"""When a run ends though jobs wait: not while anything may start them, on neither engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt
from windtunnel.sim.contract import Stop
from windtunnel.sim.disruptions import Disruptions, NodeFailure
from windtunnel.throughput.options import Option
from windtunnel.throughput.plans import Plan

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("plugins_forgotten")

ENGINES = ("compiled", "reference")
#: Node 1 of two is taken away at 9 s.
REMOVED: dict[str, Any] = {"capacity_changes": [{"time": 9.0, "remove": [1]}]}


def both(*given: Any, **options: Any) -> wt.Outcome:
    """Return the run on the compiled engine, whose decisions and starts are the reference's."""
    one, other = (wt.simulate(*given, engine=engine, **options) for engine in ENGINES)
    assert one.flight.scheduling_points == other.flight.scheduling_points
    assert one.table["start_time"].to_pylist() == other.table["start_time"].to_pylist()
    assert one.table["status"].to_pylist() == other.table["status"].to_pylist()
    if one.flight.power is not None and other.flight.power is not None:
        assert one.flight.power.capped_time == other.flight.power.capped_time
    return one


def starts(*given: Any, **options: Any) -> list[float | None]:
    found: list[float | None] = both(*given, **options).table["start_time"].to_pylist()
    return found


def failing(node: int, mtbf: float, mttr: float) -> dict[str, Any]:
    return {"failure_models": [{"mtbf": mtbf, "mttr": mttr, "nodes": [node]}]}


def test_a_time_out_comes_after_a_failure() -> None:
    """The gang of 8 gives up its place after 100 s, and the job behind it starts."""
    jobs = {
        "submit_time": [0, 10, 11],
        "duration": [1, 100, 5],
        "num_gpus": [1, 8, 1],
        "vc": ["a", "a", "a"],
    }
    policy = "quota:queueing_strategy=StrictFIFO:gang_timeout=100"
    for more in ({}, failing(0, 20, 1)):
        disruptions = {**REMOVED, **more}
        found = starts(jobs, "2x4", policy, disruptions=disruptions, seed=1, until=5000)
        assert found == [0, None, 110]


def test_a_policy_asks_for_a_later_instant_beside_failures() -> None:
    @wt.policy("later")
    def later(now: float, queue: Any, cluster: Any) -> Any:
        if now < 3000:
            yield wt.Wake(3000)
        else:
            for job in queue:
                if cluster.fit(job):
                    yield wt.Start(job)

    jobs = {"submit_time": [0], "duration": [5], "num_gpus": [1]}
    assert starts(jobs, "2x4", later, disruptions="mtbf:1h/mttr:1m") == [3000]


@pytest.mark.slow
def test_rounds_come_after_many_failures() -> None:
    @wt.policy("slow-rounds", every=3000.0)
    def slow(now: float, queue: Any, cluster: Any) -> Any:
        del now
        for job in queue:
            if cluster.fit(job):
                yield wt.Start(job)

    jobs = {"submit_time": [1], "duration": [0.01], "num_gpus": [1]}
    assert starts(jobs, "2x4", slow, disruptions=failing(1, 0.2, 0.01)) == [3000]


@pytest.mark.parametrize(("period", "start"), [(160.0, 222.0), (150.0, 350.0)])
def test_decisions_meet_a_cap_that_goes_up_and_down(period: float, start: float) -> None:
    """Decisions fall on multiples of 37 s, or 70 s; at some there is power for the job."""
    low, high = (56.0, 64.0) if period == 160 else (40.0, 60.0)
    beat = 37.0 if period == 160 else 70.0
    times = [
        at
        for turn in range(30)
        for at in (
            (turn * period, 50.0),
            (turn * period + low, 100.0),
            (turn * period + high, 50.0),
        )
    ]
    out = both(
        {"submit_time": [0], "duration": [5], "num_gpus": [1]},
        "pool:1",
        "fifo",
        power={"gpus": {"default": {"idle_w": 0, "active_w": 100}}},
        power_cap={"rows": times},
        decide_every=beat,
    )
    assert out.table["start_time"].to_pylist() == [start]


@pytest.mark.parametrize("policy", ["fair-share", "las:quantum=500", "fifo", "srtf"])
def test_nodes_that_do_not_come_back(policy: str) -> None:
    jobs = {"submit_time": [0, 10], "duration": [1, 100], "num_gpus": [1, 8]}
    for more in ({}, failing(0, 500, 7)):
        out = both(jobs, "2x4", policy, disruptions={**REMOVED, **more})
        assert out.table["start_time"].to_pylist() == [0, None]
        assert out.flight.scheduling_points < 10


def test_nobody_is_capped_after_the_end() -> None:
    """What is left after node A is gone draws more than the cap: failures of B help nobody."""
    cluster = wt.ClusterSpec((wt.NodeType(1, 1, "A"), wt.NodeType(1, 1, "B")))
    out = both(
        {"submit_time": [0, 10], "duration": [1, 5], "num_gpus": [1, 1]},
        cluster,
        "fifo",
        power={"gpus": {"A": {"idle_w": 0, "active_w": 100}, "B": {"idle_w": 0, "active_w": 300}}},
        power_cap=250,
        disruptions={
            "capacity_changes": [{"time": 5.0, "remove": [0]}],
            **failing(1, 50, 7),
        },
        seed=3,
    )
    assert out.table["start_time"].to_pylist() == [0, None]


class Toy:
    """A throughput model: 8 s an iteration on a GPU, and so much faster on more."""

    def options(self, *, node_gpus: int, node_cpus: int, num_nodes: int) -> tuple[Option, ...]:
        """Return the options on such nodes."""
        del node_gpus, node_cpus, num_nodes
        shapes = ((1,), (4,), (4, 4))
        return tuple(
            Option(Plan.parse("ga"), shape, 0, 8.0 / sum(shape), measured=True) for shape in shapes
        )


def test_an_elastic_job_starts_in_another_option_than_asked_for() -> None:
    """It asks for 8 GPUs, and 4 are left."""

    class First(wt.Policy):
        """Starts jobs in the first of their options that fits."""

        name = "first"
        elastic = True
        every = 25.0

        def decide(self, now: float, queue: Any, cluster: Any) -> Any:
            del now
            for job in queue:
                for option in cluster.options(job):
                    where = cluster.place(job, option)
                    if where is not None:
                        yield wt.Resize(job, option, where)
                        break

    jobs = {
        "submit_time": [0.0, 10.0],
        "duration": [1.0, 100.0],
        "num_gpus": [1, 8],
        "template": ["toy", "toy"],
        "plan": ["ga", "ga"],
        "steps": [1, 20],
    }
    for more in ({}, failing(0, 5000, 7)):
        disruptions = {**REMOVED, **more}
        out = both(
            *(jobs, "2x4", First()),
            models={"toy": Toy()},
            penalty=0.0,
            until=2000,
            disruptions=disruptions,
        )
        assert out.table["start_time"].to_pylist() == [0, 25]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_policy_that_starts_nothing_is_named(engine: Any) -> None:
    class Idle(wt.Policy):
        name = "idle"

        def decide(self, now: float, queue: Any, cluster: Any) -> Any:
            return [wt.Start(job) for job in queue if job.num_gpus > 1]

    jobs = {"submit_time": [0, 1, 2], "duration": [5, 5, 5], "num_gpus": [1, 2, 1]}
    out = wt.simulate(jobs, "1x4", Idle(), engine=engine)
    assert out.table["status"].to_pylist() == ["waiting", "finished", "waiting"]
    note = "2 jobs wait for ever though all GPUs are free: policy 'idle' starts none of them."
    assert note in out.notes
    assert not any("for ever" in n for n in wt.simulate(jobs, "1x4", Idle(), until=9).notes)
    disrupted = wt.simulate(jobs, "1x4", Idle(), engine=engine, disruptions="mtbf:30d/mttr:4h")
    note = "2 jobs wait for ever though no job runs: policy 'idle' starts none of them."
    assert note in disrupted.notes


@pytest.mark.parametrize("engine", ENGINES)
def test_nobody_waits_for_ever_in_a_run_that_its_policy_ended(engine: Any) -> None:
    def decide(now: float, queue: Any, cluster: Any) -> Any:
        for job in queue:
            if cluster.fit(job) is not None:
                yield wt.Start(job)
        if now >= 1:
            yield Stop()

    jobs = {"submit_time": [0, 1, 2], "duration": [5, 5, 5], "num_gpus": [1, 1, 1]}
    out = wt.simulate(jobs, "1x1", decide, engine=engine)
    assert out.table["status"].to_pylist() == ["running", "waiting", "not_submitted"]
    assert not out.notes


class _InRounds(wt.Policy):
    """Starts whoever fits, every 10 s."""

    every = 10.0

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        """Start them."""
        for job in queue:
            if cluster.fit(job) is not None:
                yield wt.Start(job)


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("events", ["batch", "completions_first", "submissions_first"])
def test_the_last_end_is_an_event_beside_an_outage(events: str, engine: str) -> None:
    """The job ends at 10, a round, as a node fails: the policy is asked at 0 and then."""
    jobs = {"submit_time": [0], "duration": [10], "num_gpus": [1]}
    down = Disruptions(node_failures=(NodeFailure(node=1, time=10, until=12),))
    out = wt.simulate(jobs, "2x4", _InRounds(), events=events, disruptions=down, engine=engine)
    assert out.metrics()["scheduling_points"] == 2
