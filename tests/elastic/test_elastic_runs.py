"""Elastic runs by hand: launches, changes, penalties, capacity, and what is reported of them."""

from __future__ import annotations

from typing import Any

import pytest
from elastic_cases import MODELS, NODES, ToyModel, jobs_of

import windtunnel as wt
from windtunnel.plugins import registrations_forgotten
from windtunnel.sim.disruptions import Checkpointing, Disruptions, NodeFailure
from windtunnel.sim.elastic import measures

pytestmark = pytest.mark.usefixtures("plugins_forgotten")


class Scripted(wt.Policy):
    """Does at each instant what its script says."""

    elastic = True

    def __init__(self, script: dict[float, list[tuple[Any, ...]]]) -> None:
        self.script = script

    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        """Yield what the script has for now: (verb, job id, GPUs, plan, nodes)."""
        active = {job.job_id: job for job in [*queue, *cluster.running]}
        for verb, name, *more in self.script.get(now, []):
            job = active[name]
            if verb == "preempt":
                yield wt.Preempt(job)
            elif verb == "start":
                yield wt.Start(job)
            elif verb == "move":
                yield wt.Move(job, more[0])
            else:
                gpus, plan, *where = more
                option = next(
                    o
                    for o in cluster.options(job)
                    if o.num_gpus == gpus and o.plan is not None and o.plan.name == plan
                )
                yield wt.Resize(job, option, *where)
        later = [at for at in self.script if at > now]
        if later:
            yield wt.Wake(min(later))


def fly(
    jobs: dict[str, Any], script: dict[float, list[tuple[Any, ...]]], **more: Any
) -> wt.Outcome:
    """Fly jobs as scripted."""
    options = {"models": MODELS, "penalty": 10.0, **more}
    return wt.simulate(jobs, NODES, Scripted(script), **options)


ONE = jobs_of((0, "steep", 4, "ga", 100))


def test_a_launch_costs_its_penalty_and_runs_every_step() -> None:
    out = fly(ONE, {0: [("start", "j0")]})
    assert out.table["end_time"].to_pylist() == [10 + 100 * 2.0]
    assert out.metrics()["num_reconfigurations"] == 0


def test_the_penalty_is_260_s_unless_given() -> None:
    out = wt.simulate(ONE, NODES, Scripted({0: [("start", "j0")]}), models=MODELS)
    assert out.table["jct"].to_pylist() == [260 + 200]
    assert out.settings["penalty"] == 260.0


def test_a_penalty_by_model() -> None:
    jobs = jobs_of((0, "steep", 4, "ga", 1), (0, "flat", 1, "ga", 1))
    script = {0: [("start", "j0"), ("start", "j1")]}
    out = fly(jobs, script, penalty={"flat": 3.0})
    assert out.table["jct"].to_pylist() == [262.0, 5.0]


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_without_a_penalty_each_job_pays_what_the_trace_says(engine: str) -> None:
    jobs = jobs_of((0, "steep", 4, "ga", 100), (0, "flat", 1, "ga", 1), (0, "flat", 1, "ga", 1))
    jobs |= {"restore_time": [7.0, None, 0.0]}
    script = {0: [("start", f"j{job}") for job in range(3)], 47: [("resize", "j0", 8, "ga")]}
    # j0: 7 s of launching, 40 s at 2 s a step = 20 of 100 steps; then 7 s, 80 steps at 1.75 s.
    out = fly(jobs, script, penalty=None, engine=engine)
    assert out.table["jct"].to_pylist() == [47 + 7 + 80 * 1.75, 260 + 2, 2]
    assert out.settings["penalty"] is None
    note = "A launch or change costs 2 jobs 0 s to 7 s, as the trace says; the others pay 260 s."
    assert note in out.notes
    flown = fly(jobs, script, penalty=10.0, engine=engine)
    assert flown.table["jct"].to_pylist()[1:] == [12, 12]
    by_model = fly(jobs, script, penalty={"flat": 3.0}, engine=engine)
    assert by_model.table["jct"].to_pylist() == [47 + 7 + 80 * 1.75, 5, 5]


def test_a_column_of_no_costs_is_refused_by_row() -> None:
    jobs = ONE | {"restore_time": ["soon"]}
    with pytest.raises(wt.SpecError, match=r"restore_time.*row 1; expected seconds >= 0"):
        fly(jobs, {0: [("start", "j0")]}, penalty=None)


def test_a_change_keeps_the_work_done_and_costs_a_penalty() -> None:
    # 10 s of launching, 40 s at 2 s a step = 20 of 100 steps; then 10 s, 80 steps at 1.75 s.
    out = fly(ONE, {0: [("start", "j0")], 50: [("resize", "j0", 8, "ga")]})
    assert out.table["end_time"].to_pylist() == [50 + 10 + 80 * 1.75]
    assert out.segments["num_gpus"].to_pylist() == [4, 8]
    assert out.segments["end"].to_pylist() == [50, 200]
    assert out.metrics()["num_reconfigurations"] == 1
    assert out.metrics()["num_preemptions"] == 0
    assert out.metrics()["gpu_time"] == 50 * 4 + 150 * 8
    assert out.metrics()["useful_gpu_time"] == 40 * 4 + 140 * 8
    assert out.metrics()["penalty_time"] == 20


def test_part_of_a_step_counts() -> None:
    # 3.5 steps in 7 s.
    out = fly(ONE, {0: [("start", "j0")], 17: [("resize", "j0", 2, "ga")]})
    assert out.table["end_time"].to_pylist() == [17 + 10 + 96.5 * 4.0]


def test_nothing_is_done_while_launching_or_without_gpus() -> None:
    script = {
        0: [("start", "j0")],
        4: [("resize", "j0", 1, "ga")],  # still launching: nothing done
        30: [("preempt", "j0")],  # 16 s at 8 s a step: two steps
        90: [("start", "j0")],
    }
    out = fly(ONE, script)
    assert out.table["end_time"].to_pylist() == [90 + 10 + 98 * 2.0]
    assert out.table["num_preemptions"].to_pylist() == [1]
    assert out.metrics()["num_reconfigurations"] == 2
    assert out.metrics()["penalty_time"] == 4 + 10 + 10
    waiting = {row["time"]: row["jobs"] for row in out.queue().to_pylist()}
    assert (waiting[4], waiting[30], waiting[90]) == (0, 1, 0)


def test_a_new_plan_on_the_same_gpus_is_a_change() -> None:
    out = fly(ONE, {0: [("start", "j0")], 50: [("resize", "j0", 4, "zero-dp")]})
    assert out.table["end_time"].to_pylist() == [50 + 10 + 80 * 2.5]
    assert out.flight.stretches is not None
    assert out.flight.stretches.plan.tolist() == ["ga", "zero-dp"]


def test_a_move_costs_a_penalty() -> None:
    out = fly(ONE, {0: [("start", "j0")], 50: [("move", "j0", [(1, 4)])]})
    assert out.table["end_time"].to_pylist() == [50 + 10 + 80 * 2.0]
    assert out.segments["nodes"].to_pylist() == [[0], [1]]


def test_a_run_cut_short_tells_what_was_done() -> None:
    out = fly(ONE, {0: [("start", "j0")]}, until=30.0)
    assert out.table["status"].to_pylist() == ["running"]
    assert out.flight.stretches is not None
    assert out.flight.stretches.iterations_done.tolist() == [10.0]
    assert out.metrics()["useful_gpu_time"] == 80.0


def test_steps_follow_from_the_duration_where_none_are_given() -> None:
    jobs = {k: v for k, v in ONE.items() if k != "steps"} | {"duration": [50.0]}
    out = fly(jobs, {0: [("resize", "j0", 8, "ga")]})
    assert out.table["end_time"].to_pylist() == [10 + 25 * 1.75]


def test_a_job_without_a_model_runs_as_recorded() -> None:
    jobs = jobs_of((0, "unheard", 4, None, 7)) | {"duration": [33.0]}
    out = fly(jobs, {0: [("start", "j0")]})
    assert out.table["end_time"].to_pylist() == [43.0]
    assert any("name no throughput model" in note for note in out.notes)


def test_cores_constrain() -> None:
    # Two jobs of 8 cores fill a node of 16; the third goes to the other.
    jobs = jobs_of(*[(0, "offload", 1, "zero-offload", 1)] * 4)
    script = {0: [("resize", f"j{i}", 1, "zero-offload") for i in range(4)]}
    out = fly(jobs, script)
    assert out.segments["nodes"].to_pylist() == [[0], [0], [1], [1]]
    with pytest.raises(wt.PolicyError, match="where it does not fit"):
        fly(
            jobs,
            {
                0: [
                    ("resize", "j0", 2, "zero-offload"),
                    ("resize", "j1", 1, "zero-offload", [(0, 1)]),
                ]
            },
        )


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ({0: [("resize", "j0", 8, "ga", [(0, 4), (1, 4)])]}, "where it does not fit"),
        ({0: [("resize", "j0", 8, "ga", [(7, 8)])]}, "where it does not fit"),
        ({0: [("move", "j0", [(1, 4)])]}, "moves a job that does not run"),
        ({0: [("start", "j0"), ("start", "j0")]}, "already runs"),
        ({0: [("preempt", "j0")]}, "does not run"),
    ],
)
def test_impossible_decisions_name_the_job(
    script: dict[float, list[tuple[Any, ...]]], message: str
) -> None:
    with pytest.raises(wt.PolicyError, match=f"'j0': .*{message}"):
        fly(ONE, script)


def test_only_options_of_the_job_are_taken() -> None:
    class Inventive(wt.Policy):
        elastic = True

        def decide(self, now: float, queue: Any, cluster: Any) -> Any:
            other = next(j for j in queue if j.template == "flat")
            yield wt.Resize(queue[0], cluster.options(other)[0])

    jobs = jobs_of((0, "steep", 4, "ga", 1), (0, "flat", 1, "ga", 1))
    with pytest.raises(wt.PolicyError, match="none of its options"):
        wt.simulate(jobs, NODES, Inventive(), models=MODELS)


def test_resizing_needs_an_elastic_policy() -> None:
    def plain(now: float, queue: Any, cluster: Any) -> Any:
        yield wt.Resize(queue[0], None)  # type: ignore[arg-type] # refused before it is looked at

    with pytest.raises(wt.PolicyError, match="elastic=True"):
        wt.simulate(ONE, NODES, plain)
    with pytest.raises(
        wt.SpecError, match="penalty: policy 'fifo' has no use for it: only elastic"
    ):
        wt.simulate(ONE, NODES, "fifo", penalty=1.0)


def test_what_elastic_runs_refuse() -> None:
    for options, message in (
        ({"queueing": "easy"}, "queueing: policy .fixed-plan. takes every decision"),
        ({"save_time": 3.0}, "save_time: policy"),
        ({"penalty": -1.0}, "penalty: found -1.0; expected seconds >= 0"),
        ({"penalty": {"flat": float("nan")}}, "penalty.flat: found nan"),
    ):
        with pytest.raises(wt.SpecError, match=message):
            wt.simulate(ONE, NODES, "fixed-plan", models=MODELS, **options)
    with pytest.raises(wt.SpecError, match="not a pool"):
        wt.simulate(ONE, "pool:16", "fixed-plan", models=MODELS)
    with pytest.raises(wt.SchemaError, match="plan 'gc' on 4 GPUs of 'steep'"):
        wt.simulate(jobs_of((0, "steep", 4, "gc", 1)), NODES, "fixed-plan", models=MODELS)


def test_measures_by_class() -> None:
    jobs = jobs_of((0, "steep", 4, "ga", 10, 1), (5, "flat", 1, "ga", 10, 0))
    out = fly(jobs, {0: [("start", "j0")], 5: [("start", "j1")]})
    classes = {row["class"]: row for row in measures.by_class(out).to_pylist()}
    assert classes["guaranteed"]["avg_jct"] == 30
    assert classes["best-effort"]["avg_jct"] == 30
    assert classes["all"]["last_end"] == 35
    assert classes["guaranteed"]["gpu_time"] == 120
    assert classes["guaranteed"]["useful_gpu_time"] == 80
    found = out.metrics()
    assert (found["promises_kept_running"], found["promises_kept_active"]) == (1.0, 0.0)
    with pytest.raises(ValueError, match="not elastic"):
        measures.by_class(wt.simulate(jobs, NODES, "fifo"))


def test_a_decorated_function_may_resize() -> None:
    with registrations_forgotten():

        @wt.policy("all-on-two", elastic=True)
        def all_on_two(now: float, queue: Any, cluster: Any) -> Any:
            for job in queue:
                option = next(o for o in cluster.options(job) if o.num_gpus == 2)
                yield wt.Resize(job, option)

        out = wt.simulate(ONE, NODES, "all-on-two", models=MODELS, penalty=10.0)
    assert out.table["end_time"].to_pylist() == [10 + 100 * 4.0]


def test_what_the_cluster_answers() -> None:
    seen: list[Any] = []

    class Curious(wt.Policy):
        elastic = True

        def decide(self, now: float, queue: Any, cluster: Any) -> Any:
            for job in queue:
                yield wt.Start(job, cluster.fit(job))
            if now == 50:
                first, second = cluster.running
                seen.append(cluster.option(first).num_gpus)
                seen.append(cluster.iterations_left(first))
                seen.append(cluster.time_left(first))
                seen.append(cluster.time_left(first, cluster.options(first)[0]))
                seen.append(cluster.fit(16))
                seen.append(cluster.fit(16, without=[first, second]))
                seen.append(cluster.fit(second, without=[first]))
                seen.append(cluster.free_by_node)
                with pytest.raises(wt.SpecError, match="gpu_types"):
                    cluster.fit(first, gpu_types=["A100"])
            elif now < 50:
                yield wt.Wake(50)

    jobs = jobs_of((0, "steep", 4, "ga", 100), (0, "steep", 8, "ga", 100))
    wt.simulate(jobs, NODES, Curious(), models=MODELS, penalty=10.0)
    # 40 s at 2 s a step = 20 of 100 steps done.
    assert seen[:4] == [4, 80.0, 160.0, 10 + 80 * 8.0]
    assert seen[4] is None
    assert seen[5] == [(0, 8), (1, 8)]
    assert seen[6] == [(0, 8)]
    assert seen[7] == [4, 0]


def test_an_elastic_policy_may_hear_of_starts() -> None:
    calls: list[tuple[str, float]] = []

    class Watching(wt.Policy):
        elastic = True

        def decide(self, now: float, queue: Any, cluster: Any) -> Any:
            return [wt.Start(job) for job in queue if cluster.fit(job)]

        def started(self, job: wt.JobView, now: float) -> None:
            calls.append(("started", now))

        def stopped(self, job: wt.JobView, now: float) -> None:
            calls.append(("stopped", now))

    out = wt.simulate(ONE, NODES, Watching(), models=MODELS)
    ends = [("stopped", end) for end in out.table["end_time"].to_pylist()]
    assert calls == [("started", 0.0), *ends]


def test_observers_count_what_was_held() -> None:
    jobs = jobs_of((0, "offload", 1, "zero-offload", 100), (0, "steep", 4, "ga", 100))
    script: dict[float, list[tuple[Any, ...]]] = {
        0: [("start", "j0"), ("resize", "j1", 8, "ga")],
    }
    out = fly(jobs, script, until=100.0)
    held = out.allocation("workload").to_pylist()
    assert max(row["gpus"] for row in held) == 9
    shares = out.shares("template").to_pylist()
    assert {row["template"]: row["gpus_at_horizon"] for row in shares} == {"offload": 1, "steep": 8}
    assert out.metrics()["gpu_time"] == 100 * 9


def test_jobs_that_cannot_run_here_are_rejected_if_asked_so() -> None:
    jobs = jobs_of((0, "steep", 4, "gc", 1), (0, "flat", 1, "ga", 10), (1, "steep", 16, "ga", 1))
    out = wt.simulate(jobs, "1x8", "fixed-plan", models=MODELS, penalty=10.0, oversize="reject")
    assert out.table["status"].to_pylist() == ["rejected", "finished", "rejected"]
    assert out.table["end_time"].to_pylist()[1] == 10 + 10 * 2.0
    reasons = out.table["reason"].to_pylist()
    assert "plan 'gc' on 4 GPUs" in reasons[0]
    assert "16 GPUs" in reasons[2]
    assert out.metrics()["num_rejected"] == 2


def test_work_counts_on_the_gpus_asked_for() -> None:
    """10 steps on one GPU, 8 s each, then 90 on the 4 asked for, 2 s each: none is lost."""
    script = {0.0: [("resize", "j0", 1, "ga")], 80.0: [("resize", "j0", 4, "ga")]}
    spoilt = {"node_failures": [{"node": 1, "time": 5, "until": 6}]}
    out = fly(ONE, script, penalty=0.0, disruptions=spoilt)
    found = out.metrics()
    assert out.table["end_time"].to_pylist() == [260]
    assert out.table["slowdown_time"].to_pylist() == [60]
    assert found["gpu_time"] == 80 * 1 + 180 * 4 == 800
    assert (found["goodput"], found["badput_slowdown"]) == (1, 0)
    assert (found["lost_to_slowdown"], found["avg_rate"]) == (0, 1)
    assert found["ettr"] == 200 / 260
    (row,) = out.shares("vc").to_pylist()
    assert row["dominant_share"] == pytest.approx(800 / (16 * 260))


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_an_option_needs_the_nodes_of_its_shape(engine: str) -> None:
    """What asked for one GPU runs on two nodes of 8, as its option says: 20 steps of 1 s."""
    cluster = wt.ClusterSpec((wt.NodeType(2, 8, "A", 16.0, nodes_per_rack=1),))
    for model in ({"spread": 0.5}, {"rack": 0.5}):
        out = wt.simulate(
            jobs_of((0, "steep", 1, "ga", 20)), cluster, "equal-share", models=MODELS, penalty=0,
            slowdown=model, engine=engine,
        )  # fmt: skip
        assert out.segments["num_gpus"].to_pylist() == [16]
        assert out.table["end_time"].to_pylist() == [20]


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_neighbours_feel_the_cores_of_an_option(engine: str) -> None:
    """It asked for no cores and runs on all 16, until 20 s; beside it 20 s of work take 30 s."""
    jobs = jobs_of((0, "offload", 1, "zero-offload", 10), (0, None, 1, None, None))
    jobs["duration"] = [1.0, 20.0]
    out = wt.simulate(
        jobs, wt.ClusterSpec.uniform(nodes=1, gpus_per_node=4, cpus_per_node=16), "equal-share",
        models=MODELS, penalty=0, slowdown={"cpu": 0.5}, engine=engine,
    )  # fmt: skip
    assert out.flight.stretches is not None
    assert out.flight.stretches.cpus.tolist() == [16, 0]
    assert out.table["end_time"].to_pylist() == [20, 30]


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_equal_shares_grow_on_what_others_give_back(engine: str) -> None:
    """Eight jobs have a GPU each until 1; j8 comes at 2, and two jobs that do not change at 3.

    Each may have 2 of the 8 GPUs then; j0 has one and finds none free, j8 has 4 and gives two back
    at 12. j0 takes one of them at once, not when somebody may change next.
    """
    fixed = [(0, None, 1, None, None)] * 7
    late = [(3, None, 2, None, None), (3, None, 1, None, None)]
    jobs = jobs_of((0, "steep", 1, "ga", 100), *fixed, (2, "steep", 1, "ga", 100), *late)
    jobs["duration"] = [1.0] * 9 + [30.0] * 2
    out = wt.simulate(
        jobs, wt.ClusterSpec.uniform(nodes=1, gpus_per_node=8, cpus_per_node=16),
        "equal-share:interval=10", models=MODELS, penalty=0, until=30, engine=engine,
    )  # fmt: skip
    stays = out.segments.select(["row", "start", "num_gpus"]).to_pylist()
    found = [(stay["start"], stay["num_gpus"]) for stay in stays if stay["row"] == 0]
    assert found == [(0, 1), (12, 2)]


class LargestAsked(wt.Policy):
    """Launches a job in its largest option, and notes how long that was said to take."""

    elastic = True

    def __init__(self) -> None:
        self.told: list[tuple[float, float]] = []

    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        for job in queue:
            largest = cluster.options(job)[-1]
            if cluster.place(job, largest) is not None:
                self.told.append((now, cluster.time_left(job, largest)))
                yield wt.Resize(job, largest)
                assert cluster.time_left(job) == pytest.approx(self.told[-1][1])
        return ()


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_the_time_of_a_launch_counts_resuming_and_checkpoints(engine: str) -> None:
    """20 s of work on 2 GPUs, 10 s on 4; a checkpoint of 1 s after each 6 s of it.

    From 0: 2 to launch, 10, and 3 checkpoints. Failed at 7, the first is complete, 14 s are left.
    From 8: 5 to restart and 2 to launch, 7, and 2 checkpoints.
    """
    models = {"even": ToyModel((("ga", (2,), 1, 1.0), ("ga", (4,), 1, 0.5)))}
    down = Disruptions(
        node_failures=(NodeFailure(node=0, time=7, until=8),),
        checkpoint=Checkpointing(interval=6, cost=1, restart_cost=5),
    )
    policy = LargestAsked()
    out = wt.simulate(
        jobs_of((0, "even", 2, "ga", 20)), "1x4", policy, models=models, penalty=2.0,
        disruptions=down, engine=engine,
    )  # fmt: skip
    assert policy.told == [(0, 15), (8, 16)]
    assert out.table["end_time"].to_pylist() == [24]


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_optimus_gives_the_first_of_equal_jobs_the_next_gpus(engine: str) -> None:
    """13 iterations of 1.3 s are 16.900000000000002 s of work, over 1.3 more than 13."""
    models = {
        "pair": ToyModel((("ga", (2,), 1, 1.0), ("zero-dp", (2,), 1, 1.3), ("ga", (4,), 1, 0.5)))
    }
    jobs = jobs_of((0, "pair", 2, "ga", 13), (0, "pair", 2, "zero-dp", 13))
    out = wt.simulate(jobs, "1x6", "pollux:optimus", models=models, penalty=0.0, engine=engine)
    assert out.segments["num_gpus"].to_pylist()[:2] == [4, 2]


class AsksAtFour(wt.Policy):
    """Launches jobs in their smallest option, and notes how long each is expected to go on at 4."""

    elastic = True

    def __init__(self) -> None:
        self.told: list[float] = []

    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        for job in queue:
            yield wt.Resize(job, cluster.options(job)[0])
        if now == 0:
            yield wt.Wake(4.0)
        if now == 4:
            self.told = [cluster.time_left(job) for job in cluster.running]


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_what_is_expected_of_a_slowed_job_goes_by_its_rate(engine: str) -> None:
    """Two jobs of 20 s hold half the cores each: at 0.75 they have done 3 s at 4.

    Of the first 40 s were expected, so that 37 are left, of the second 20.
    """
    models = {"one": ToyModel((("ga", (2,), 1, 2.0),))}
    jobs = jobs_of(*[(0, "one", 2, "ga", 10)] * 2) | {"duration": [20.0] * 2}
    policy = AsksAtFour()
    wt.simulate(
        jobs | {"estimate": [40.0, 20.0]},
        wt.ClusterSpec.uniform(nodes=1, gpus_per_node=4, cpus_per_node=4),
        policy, models=models, penalty=0.0, slowdown={"cpu": 0.5}, estimates="recorded",
        engine=engine,
    )  # fmt: skip
    assert policy.told == pytest.approx([37 / 0.75, 17 / 0.75])
