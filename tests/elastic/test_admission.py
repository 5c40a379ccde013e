"""Elastic jobs under quotas and power caps: plans are made with what admission leaves to a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from elastic_cases import MODELS, NODES, ToyModel, jobs_of
from hypothesis import given
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.errors import PolicyError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

ENGINES = pytest.mark.parametrize("engine", ["compiled", "reference"])
#: Policies that may give a job another size than it asks for, and the others.
RESIZING = ("morphling", "morphling:priced", "equal-share", "pollux:sia", "pollux:optimus")
FIXED = ("fixed-plan", "synergy", "antman")
#: W idle and in use of each GPU: 160 W idle, and 100 more for each GPU in use.
POWER = {"gpus": {"default": {"idle_w": 10, "active_w": 110}}}


def quotas_of(gpus: float) -> dict[str, Any]:
    """Return quotas of two queues of the cluster, none of which lends."""
    return {"queues": [{"vc": "a", "nominal_quota": gpus}, {"vc": "b", "nominal_quota": 16 - gpus}]}


def fly(jobs: dict[str, Any], policy: str, **options: Any) -> wt.Outcome:
    return wt.simulate(jobs, NODES, policy, models=MODELS, penalty=1.0, **options)


@ENGINES
@pytest.mark.parametrize("policy", RESIZING)
def test_a_job_gets_the_size_that_its_quota_allows(policy: str, engine: str) -> None:
    """Alone on 16 GPUs with a quota of 2 it never holds 3, though it asks for 4."""
    out = fly(
        jobs_of((0, "steep", 4, "ga", 50, 0, "a")), policy, quotas=quotas_of(2), engine=engine
    )
    assert out.table["status"].to_pylist() == ["finished"]
    assert max(out.segments["num_gpus"].to_pylist()) == 2


@ENGINES
@pytest.mark.parametrize("policy", RESIZING)
def test_a_job_gets_the_size_that_there_is_power_for(policy: str, engine: str) -> None:
    """260 W are left besides idle GPUs: enough for two in use, no more."""
    jobs = jobs_of((0, "steep", 4, "ga", 50, 0, "a"))
    out = fly(jobs, policy, power=POWER, power_cap=420, engine=engine)
    assert out.table["status"].to_pylist() == ["finished"]
    assert max(out.segments["num_gpus"].to_pylist()) == 2


@pytest.mark.parametrize("policy", FIXED)
def test_who_keeps_to_what_is_asked_for_is_refused_before_the_run(policy: str) -> None:
    jobs = jobs_of((0, "steep", 4, "ga", 50, 0, "a"))
    with pytest.raises(PolicyError, match="asks for 4 GPUs; the quota of 'a' allows 2 at most"):
        fly(jobs, policy, quotas=quotas_of(2))
    with pytest.raises(SpecError, match="never fit under it: 'j0'"):
        fly(jobs, policy, power=POWER, power_cap=420)


def test_a_job_that_no_option_lets_in_is_refused() -> None:
    """A guaranteed job has only the options that keep its promise."""
    for promised in (0, 1):
        jobs = jobs_of((0, "steep", 4, "ga", 50, promised, "a"))
        with pytest.raises(PolicyError, match=r"the quota of 'a' allows 0\.5 at most"):
            fly(jobs, "morphling", quotas=quotas_of(0.5))
    with pytest.raises(PolicyError, match="asks for 4 GPUs at least"):
        fly(jobs, "morphling", quotas=quotas_of(3))
    with pytest.raises(SpecError, match="never fit under it"):
        fly(jobs, "morphling", power=POWER, power_cap=200)


@ENGINES
@pytest.mark.parametrize("policy", ["equal-share", "pollux:sia", "pollux:optimus"])
def test_promises_keep_nobody_out_where_the_policy_makes_none(policy: str, engine: str) -> None:
    """The job asks for 4 GPUs and is guaranteed; 2 of quota, or power, let it in all the same."""
    jobs = jobs_of((0, "steep", 4, "ga", 50, 1, "a"))
    given: dict[str, Any]
    for given in ({"quotas": quotas_of(2)}, {"power": POWER, "power_cap": 420}):
        out = fly(jobs, policy, engine=engine, **given)
        assert out.table["status"].to_pylist() == ["finished"]
        assert max(out.segments["num_gpus"].to_pylist()) == 2


@ENGINES
def test_what_others_grow_by_is_not_taken_from_a_job(engine: str) -> None:
    """Both are to have 4 of the quota of 4: each keeps its 2."""
    jobs = jobs_of(*[(0, "steep", 2, "ga", 50, 0, "a")] * 2)
    out = fly(jobs, "pollux:pollux", quotas=quotas_of(4), engine=engine)
    stays = out.segments.to_pylist()
    assert [(one["start"], one["num_gpus"]) for one in stays] == [(0, 1), (0, 1), (60, 2), (60, 2)]


@ENGINES
def test_quotas_by_type_lead_to_the_type(engine: str) -> None:
    """Best fit would take the small node, of a type of which the queue has no quota."""
    quotas = {"queues": [{"vc": "a", "nominal_quota": {"T4": 0, "V100": 4}}]}
    jobs = jobs_of((0, "steep", 4, "ga", 50, 0, "a"))
    for policy in (*RESIZING, *FIXED, "least-area-first"):
        out = wt.simulate(
            jobs, "1x4:T4,1x8:V100", policy, models=MODELS, quotas=quotas, engine=engine
        )
        assert set(out.table["nodes"].to_pylist()[0]) == {1}


@ENGINES
@pytest.mark.parametrize("policy", ["fixed-plan", "morphling", "equal-share", "pollux:sia"])
def test_pieces_lie_on_one_type_of_the_quota(policy: str, engine: str) -> None:
    """Best fit would have one piece on the small T4 node, and one on a V100: of no one quota."""
    models = {"pair": ToyModel((("ga", (2, 2), 1, 1.0),))}
    jobs = jobs_of((0, "pair", 4, "ga", 50, 0, "a"))
    quotas = {"queues": [{"vc": "a", "nominal_quota": {"T4": 4, "V100": 4}}]}
    out = wt.simulate(jobs, "1x2:T4,2x4:V100", policy, models=models, quotas=quotas, engine=engine)
    assert out.table["nodes"].to_pylist() == [[1, 2]]


@ENGINES
@pytest.mark.parametrize("policy", ["equal-share", "morphling", "pollux:optimus"])
def test_a_size_may_be_of_two_types_where_power_allows_it(policy: str, engine: str) -> None:
    """680 W are 80 W idle, and 100 for each of 6 GPUs in use, 4 of one type and 2 of the other."""
    models = {"two": ToyModel((("ga", (2,), 1, 4.0), ("ga", (4, 2), 1, 1.0)))}
    jobs = jobs_of((0, "two", 2, "ga", 500, 0, "a"))
    out = wt.simulate(
        jobs, "1x4:T4,1x4:V100", policy, models=models, penalty=1, power=POWER, power_cap=680,
        engine=engine,
    )  # fmt: skip
    assert max(out.segments["num_gpus"].to_pylist()) == 6


class _Startable(wt.Policy):
    """Starts those who fit as they were asked for."""

    elastic = True

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Any]:
        """Start them."""
        for job in queue.startable:
            yield wt.Start(job)


@ENGINES
def test_who_fits_where_the_quota_is_is_startable(engine: str) -> None:
    """Best fit would take the T4 node, of a type of which the queue has no quota."""
    jobs = jobs_of((0, "steep", 2, "ga", 50, 0, "a"), (1, "steep", 4, "ga", 50, 0, "a"))
    quotas = {"queues": [{"vc": "a", "nominal_quota": {"T4": 0, "V100": 4}}]}
    out = wt.simulate(
        jobs, "1x4:T4,1x8:V100", _Startable(), models=MODELS, penalty=1, quotas=quotas,
        engine=engine,
    )  # fmt: skip
    assert out.table["nodes"].to_pylist() == [[1], [1]]
    # The first needs 1 + 50 x 4 s, and leaves too little of the quota for the second meanwhile.
    assert out.table["start_time"].to_pylist() == [0, 201]


@ENGINES
@pytest.mark.parametrize("policy", RESIZING)
def test_a_size_that_one_type_holds_lets_a_job_in(policy: str, engine: str) -> None:
    """It asks for 8 GPUs, which only both nodes have; the quota is of 4 T4s, and too few V100s."""
    models = {
        "wide": ToyModel((("ga", (2,), 1, 4.0), ("ga", (4,), 1, 2.0), ("ga", (4, 4), 1, 1.0)))
    }
    jobs = jobs_of((0, "wide", 8, "ga", 50, 0, "a"))
    quotas = {"queues": [{"vc": "a", "nominal_quota": {"V100": 1, "T4": 4}}]}
    out = wt.simulate(jobs, "1x4:T4,1x4:V100", policy, models=models, quotas=quotas, engine=engine)
    assert {tuple(nodes) for nodes in out.segments["nodes"].to_pylist()} == {(0,)}


@pytest.mark.parametrize("policy", [*FIXED, *RESIZING])
def test_a_job_that_no_type_of_the_quota_holds_is_refused(policy: str) -> None:
    """There is quota for its 4 GPUs, which lie on two nodes; of each type there is one."""
    models = {"pair": ToyModel((("ga", (2, 2), 1, 1.0),))}
    jobs = jobs_of((0, "pair", 4, "ga", 50, 0, "a"))
    quotas = {"queues": [{"vc": "a", "nominal_quota": {"T4": 4, "V100": 4}}]}
    with pytest.raises(PolicyError, match="lies on GPUs of no one type of which 'a' has quota"):
        wt.simulate(jobs, "1x4:T4,1x4:V100", policy, models=models, quotas=quotas)


@ENGINES
def test_the_first_type_of_the_quota_comes_first(engine: str) -> None:
    """Both nodes would do, and best fit would take the smaller one."""
    jobs = jobs_of((0, "steep", 2, "ga", 50, 0, "a"))
    quotas = {"queues": [{"vc": "a", "nominal_quota": {"V100": 2, "T4": 2}}]}
    for policy in (*RESIZING, *FIXED):
        out = wt.simulate(
            jobs, "1x2:T4,1x8:V100", policy, models=MODELS, quotas=quotas, engine=engine
        )
        assert out.table["nodes"].to_pylist() == [[1]], policy


#: W idle and in use of each GPU of two types; there are 80 W idle.
UNLIKE = {"gpus": {"T4": {"idle_w": 10, "active_w": 110}, "V100": {"idle_w": 10, "active_w": 210}}}


@ENGINES
@pytest.mark.parametrize("policy", RESIZING)
def test_a_size_is_one_of_a_type_that_the_job_accepts(policy: str, engine: str) -> None:
    """The quota is of 4 T4s, and there is power for as many: of the V100s it is 1, or 2."""
    jobs = jobs_of((0, "steep", 4, "ga", 50, 0, "a")) | {"gpu_type": ["V100"]}
    quotas = {"queues": [{"vc": "a", "nominal_quota": {"T4": 4, "V100": 1}}]}
    for options, gpus in (({"quotas": quotas}, 1), ({"power": UNLIKE, "power_cap": 480}, 2)):
        out = wt.simulate(
            jobs, "1x4:T4,1x4:V100", policy, models=MODELS, penalty=1, engine=engine, **options
        )
        assert out.table["status"].to_pylist() == ["finished"]
        assert max(out.segments["num_gpus"].to_pylist()) == gpus


@ENGINES
@pytest.mark.parametrize("policy", RESIZING)
def test_a_size_is_one_that_the_cheap_type_has(policy: str, engine: str) -> None:
    """There is power for 16 T4s, of which there are 8, and not for 8 V100s beside them."""
    jobs = jobs_of((0, "steep", 4, "ga", 50, 0, "a"))
    out = wt.simulate(jobs, "1x8:T4,1x8:V100", policy, models=MODELS, penalty=1, engine=engine,
                      power=UNLIKE, power_cap=1760)  # fmt: skip
    assert out.table["status"].to_pylist() == ["finished"]
    assert max(out.segments["num_gpus"].to_pylist()) <= 8


def test_a_job_too_dear_on_the_type_that_it_accepts_is_refused() -> None:
    jobs = jobs_of((0, "steep", 4, "ga", 50, 1, "a")) | {"gpu_type": ["V100"]}
    with pytest.raises(SpecError, match="never fit under it: 'j0'"):
        wt.simulate(jobs, "1x4:T4,1x4:V100", "morphling", models=MODELS, power=UNLIKE,
                    power_cap=700)  # fmt: skip


@ENGINES
@pytest.mark.parametrize("policy", ["pollux:optimus", "pollux:pollux", "pollux:sia"])
def test_who_waits_for_quota_leaves_gpus_to_others(policy: str, engine: str) -> None:
    """Four jobs of a queue that has one GPU come first, and the cluster has no more than four."""
    rows = [(0, "flat", 1, "ga", 50, 0, "a")] * 4 + [(0, "flat", 1, "ga", 50, 0, "b")]
    quotas = {"queues": [{"vc": "a", "nominal_quota": 1}, {"vc": "b", "nominal_quota": 3}]}
    out = wt.simulate(jobs_of(*rows), "1x4", policy, models=MODELS, quotas=quotas, engine=engine)
    assert out.table["start_time"].to_pylist()[4] == 0


class Asks(wt.Policy):
    """Resizes its jobs to 4 GPUs: where the placement would have them, or on some nodes."""

    elastic = True

    def __init__(self, where: Any) -> None:
        self.where = where

    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        del now
        for job in [*cluster.running, *queue]:
            (size,) = (o for o in cluster.options(job) if o.shape == (4,) and o.plan.name == "ga")
            yield wt.Resize(job, size, self.where)


@ENGINES
@pytest.mark.parametrize("where", [None, [(0, 4)]])
def test_refusals_say_whether_quota_or_power_is_short(engine: str, where: Any) -> None:
    jobs = jobs_of((0, "steep", 2, "ga", 50, 0, "a"))
    for options, why in (
        ({"quotas": quotas_of(3)}, "the quota of 'a' does not suffice"),
        ({"power": POWER, "power_cap": 460}, "there is too little power"),
    ):
        given: Any = {"models": MODELS, "engine": engine, **options}
        with pytest.raises(PolicyError, match=f"runs a job where it does not fit: {why}"):
            wt.simulate(jobs, NODES, Asks(where), **given)
    with pytest.raises(PolicyError, match="is given 4 there"):
        wt.simulate(jobs_of(*[(0, "steep", 2, "ga", 50, 0, "a")] * 3), NODES, Asks([(0, 4)]),
                    models=MODELS, quotas=quotas_of(16), engine=engine)  # fmt: skip


@ENGINES
def test_refusals_of_jobs_of_one_size_do_so_too(engine: str) -> None:
    def anyway(now: float, queue: Any, cluster: Any) -> Any:
        del now, cluster
        yield from (wt.Start(job) for job in queue)

    jobs = {"submit_time": [0, 0], "duration": [9, 9], "num_gpus": [2, 2], "vc": ["a", "a"]}
    for options, why in (
        ({"quotas": {"a": 3}}, "the quota of 'a' does not suffice"),
        ({"power": POWER, "power_cap": 420}, "there is too little power"),
        ({"quotas": {"a": 4}}, "0 of 2 GPUs are free"),
    ):
        cluster = "1x2" if "free" in why else "1x16"
        with pytest.raises(PolicyError, match=f"starts a job where it does not fit: {why}"):
            wt.simulate(jobs, cluster, anyway, engine=engine, **options)


class Waits(wt.Policy):
    """Starts jobs in the order of the queue, by a way of its own."""

    elastic = True

    def __init__(self, way: str) -> None:
        self.way = way

    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        del now
        for job in queue:
            if self.way == "start":
                cluster.start(job)
            elif cluster.fit(job) is not None:
                asked = cluster.work(job).requested
                yield wt.Start(job) if self.way == "yield" else wt.Resize(job, asked)


@ENGINES
@pytest.mark.parametrize("way", ["start", "yield", "resize"])
def test_whoever_says_no_place_gets_the_one_that_is_shown(way: str, engine: str) -> None:
    quotas = {"queues": [{"vc": "a", "nominal_quota": {"T4": 0, "V100": 4}}]}
    jobs = jobs_of(*[(0, "steep", 4, "ga", 50, 0, "a")] * 2)
    options: dict[str, Any] = {"models": MODELS, "penalty": 0.0, "quotas": quotas}
    out = wt.simulate(jobs, "1x4:T4,1x8:V100", Waits(way), engine=engine, **options)
    assert out.table["start_time"].to_pylist() == [0.0, 100.0]
    assert [set(nodes) for nodes in out.table["nodes"].to_pylist()] == [{1}, {1}]


@given(data=st.data())
def test_nobody_starves_and_both_engines_agree(data: st.DataObject) -> None:
    """Whoever may run alone is done in the end, within quota and power at every instant."""
    requests = [("steep", 2, "ga"), ("steep", 4, "ga"), ("flat", 1, "ga"), ("offload", 1, None)]
    rows = [
        (
            *(data.draw(st.integers(0, 300)), *data.draw(st.sampled_from(requests))),
            *(data.draw(st.integers(1, 200)), 0, data.draw(st.sampled_from("ab"))),
        )
        for _ in range(data.draw(st.integers(1, 6)))
    ]
    policy = data.draw(st.sampled_from((*RESIZING, "pollux:pollux", "least-area-first")))
    options: dict[str, Any] = {}
    if data.draw(st.booleans(), label="quotas"):
        options["quotas"] = quotas_of(data.draw(st.integers(1, 15)))
    if not options or data.draw(st.booleans(), label="power"):
        options |= {"power": POWER, "power_cap": data.draw(st.integers(270, 1760))}
    runs = [
        fly(jobs_of(*rows), policy, engine=name, **options) for name in ("compiled", "reference")
    ]
    assert runs[0].table.equals(runs[1].table)
    assert runs[0].segments.equals(runs[1].segments)
    assert set(runs[0].table["status"].to_pylist()) == {"finished"}
    stays = runs[0].segments.to_pylist()
    for now in {one["start"] for one in stays}:
        held = [one for one in stays if one["start"] <= now < one["end"]]
        if "quotas" in options:
            for queue in options["quotas"]["queues"]:
                own = [one["num_gpus"] for one in held if rows[one["row"]][6] == queue["vc"]]
                assert sum(own) <= queue["nominal_quota"]
        if "power" in options:
            assert 160 + 100 * sum(one["num_gpus"] for one in held) <= options["power_cap"]


@ENGINES
@pytest.mark.parametrize("policy", [*FIXED, "morphling", "equal-share"])
def test_power_leads_to_the_type_that_draws_less(policy: str, engine: str) -> None:
    """Of a V100 more than one would draw too much; best fit would take their node."""
    power = {
        "gpus": {
            "V100": {"idle_w": 10, "active_w": 410},
            "T4": {"idle_w": 10, "active_w": 60},
        }
    }
    jobs = jobs_of((0, "steep", 4, "ga", 50, 0, "a"))
    options: dict[str, Any] = {"models": MODELS, "power": power, "power_cap": 120 + 400}
    out = wt.simulate(jobs, "1x4:V100,1x8:T4", policy, engine=engine, **options)
    assert out.table["status"].to_pylist() == ["finished"]
    assert out.segments["num_gpus"].to_pylist()[-1] >= 4
    assert set(out.table["nodes"].to_pylist()[0]) == {1}


#: Nodes fall asleep within 10 s, and are ready 5 s after they are called.
SLEEP = "earth,step=10,wake_time=5,buffer=0,keep=0"


@ENGINES
@pytest.mark.parametrize("policy", ["morphling", "equal-share", "least-area-first"])
def test_nodes_are_called_for_the_size_that_the_quota_allows(policy: str, engine: str) -> None:
    """The second job asks for 4 GPUs, of which its quota allows 2, and finds both nodes asleep."""
    jobs = jobs_of((0, "steep", 1, "ga", 1, 0, "a"), (1000, "steep", 4, "ga", 5, 0, "a"))
    given: dict[str, Any] = {"quotas": quotas_of(2), "power": POWER, "node_sleep": SLEEP}
    out = fly(jobs, policy, engine=engine, **given)
    assert out.table["start_time"].to_pylist() == [0, 1005]


@ENGINES
@pytest.mark.parametrize("policy", ["equal-share", "least-area-first"])
def test_nodes_are_called_for_the_option_that_the_policy_waits_for(
    policy: str, engine: str
) -> None:
    """Both run the job on two nodes, and not as asked for on the one that is called first."""
    models = {"pair": ToyModel((("ga", (1,), 1, 4.0), ("ga", (1, 1), 1, 0.2)))}
    jobs = jobs_of((0, "pair", 1, "ga", 5, 0), (1000, "pair", 1, "ga", 5, 0))
    out = wt.simulate(
        jobs, NODES, policy, models=models, penalty=1, power=POWER, node_sleep=SLEEP, engine=engine
    )
    assert out.table["nodes"].to_pylist() == [[0, 1], [0, 1]]
    assert out.table["start_time"].to_pylist() == [0, 1010]


class OnNodes(wt.Policy):
    """Starts each job as asked for, on the node that is its own."""

    elastic = True

    def __init__(self, nodes: list[int]) -> None:
        self.nodes = nodes

    def node_sets_for(self, job: int) -> tuple[frozenset[int] | None, ...]:
        return (frozenset({self.nodes[job]}),)

    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        del now
        for job in queue:
            node = self.nodes[job.number]
            if cluster.free_by_node[node] >= job.num_gpus:
                yield wt.Start(job, [(node, job.num_gpus)])


@ENGINES
def test_nodes_are_called_for_each_of_equal_jobs_that_have_their_own(engine: str) -> None:
    """The second waits for the first one's node; the third, as large, has another that sleeps."""
    rows = [(0, "steep", 4, "ga", 900, 0), *[(1000, "steep", 4, "ga", 5, 0)] * 2]
    out = wt.simulate(jobs_of(*rows), "2x4", OnNodes([0, 0, 1]), models=MODELS, penalty=0,
                      power=POWER, node_sleep=SLEEP, engine=engine)  # fmt: skip
    ends = out.table["end_time"].to_pylist()
    assert ends[0] > 1000
    assert out.table["start_time"].to_pylist() == [0, ends[0], 1005]
