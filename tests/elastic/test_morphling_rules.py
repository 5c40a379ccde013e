"""Morphling's rules one by one, each on a cluster small enough to follow by hand."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from elastic_cases import MODELS, ToyModel, jobs_of
from hypothesis import given
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.cluster.spec import ClusterSpec
from windtunnel.policies.morphling.ladder import Ladder, undominated
from windtunnel.policies.morphling.rivals import sized
from windtunnel.policies.morphling.scheduler import Priced
from windtunnel.sim.elastic.work import Work
from windtunnel.throughput.sharing import envelope

#: One node of 8 GPUs; cores bind nobody.
NODE = ClusterSpec.uniform(nodes=1, gpus_per_node=8)
#: Nobody holds back, nobody is picky, GPU time costs (almost) nothing while nobody waits.
EAGER = {"yielding": 0.0, "patience": 1e9, "base": 0.0}


def fly(jobs: dict[str, Any], policy: Any, **more: Any) -> wt.Outcome:
    """Fly jobs on the node with a penalty of 10 s."""
    options = {"models": MODELS, "penalty": 10.0, **more}
    return wt.simulate(jobs, NODE, policy, **options)


def stays(out: wt.Outcome, job: int) -> list[tuple[float, float]]:
    """Return (start, GPUs) of each stay of a job."""
    rows = out.segments.to_pylist()
    return [(row["start"], row["num_gpus"]) for row in rows if row["row"] == job]


def work_of(model: ToyModel, gpus: int, *, guaranteed: bool) -> Work:
    """Return a job of a model that asks for so many GPUs under plain data parallelism."""
    options = model.options(node_gpus=8, node_cpus=96, num_nodes=2)
    asked = next(o for o in options if o.num_gpus == gpus and o.plan.name == "ga")
    return Work(100, asked, options, guaranteed=guaranteed)


def test_the_floor_keeps_the_promise() -> None:
    steep = MODELS["steep"]
    promised = Ladder.of(work_of(steep, 4, guaranteed=True), "both")
    assert promised.floor.num_gpus == 4
    assert {o.num_gpus for o in promised.options} == {4, 8, 16}
    best_effort = Ladder.of(work_of(steep, 4, guaranteed=False), "both")
    assert best_effort.floor.num_gpus == 1
    fixed = Ladder.of(work_of(steep, 4, guaranteed=False), "neither")
    assert [o.num_gpus for o in fixed.options] == [4]
    plans = Ladder.of(work_of(steep, 4, guaranteed=False), "plans")
    assert {o.num_gpus for o in plans.options} == {4}
    resources = Ladder.of(work_of(steep, 4, guaranteed=False), "resources")
    assert {o.plan.name for o in resources.options if o.plan is not None} == {"ga"}


def test_slopes_are_per_gpu_or_per_core() -> None:
    ladder = Ladder.of(work_of(MODELS["steep"], 4, guaranteed=False), "both")
    by_size = {o.num_gpus: o for o in ladder.options}
    assert ladder.slope(None, by_size[1]) == pytest.approx(2 / 8)
    assert ladder.slope(by_size[1], by_size[4]) == pytest.approx((1 - 2 / 8) / 3)
    cores = MODELS["offload"].options(node_gpus=8, node_cpus=96, num_nodes=1)
    offload = Ladder.of(Work(1, cores[0], cores), "both")
    few, many = sorted((o for o in offload.options if o.num_gpus == 1), key=lambda o: o.num_cpus)[
        :2
    ]
    gained = offload.speed(many) - offload.speed(few)
    assert offload.slope(few, many) == pytest.approx(gained / (many.num_cpus - few.num_cpus))


def test_dominated_options_are_left_out() -> None:
    steep = MODELS["steep"].options(node_gpus=8, node_cpus=96, num_nodes=2)
    kept = undominated(steep)
    # On 4 GPUs zero-dp is slower than ga with as many cores.
    assert [o.plan.name for o in kept if o.num_gpus == 4] == ["ga"]
    cores = MODELS["offload"].options(node_gpus=8, node_cpus=96, num_nodes=1)
    assert len([o for o in undominated(cores) if o.num_gpus == 1]) == 3


@given(
    st.lists(
        st.tuples(st.integers(1, 64), st.integers(1, 100)), min_size=1, unique_by=lambda p: p[0]
    )
)
def test_the_envelope_is_concave_and_above_every_point(drawn: list[tuple[int, int]]) -> None:
    points = [(float(x), float(y)) for x, y in sorted(drawn)]
    hull = [points[index] for index in envelope(points)]
    assert hull[0] == points[0]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(hull)]
    assert all(slope > 0 for slope in slopes)
    assert all(a > b - 1e-12 for a, b in itertools.pairwise(slopes))
    for x, y in points:
        below = [p for p in hull if p[0] <= x]
        above = [p for p in hull if p[0] >= x]
        if not above:
            assert y <= hull[-1][1]
        else:
            (x0, y0), (x1, y1) = below[-1], above[0]
            height = y0 if x1 == x0 else y0 + (y1 - y0) * (x - x0) / (x1 - x0)
            assert y <= height + 1e-9


def test_a_lonely_job_gets_the_fastest_size() -> None:
    out = fly(jobs_of((0, "steep", 1, "ga", 100)), Priced(**EAGER))
    assert stays(out, 0) == [(0, 8)]
    assert out.table["end_time"].to_pylist() == [10 + 175]


def test_a_short_job_is_launched_small_where_gpu_time_has_a_price() -> None:
    # One step: 18 s on one GPU, 11.75 s on eight; at base / GPUs = 1/2 a GPU-second the first is
    # cheaper: 18 x 1.5 = 27 against 11.75 x 5 = 58.75, and 2 GPUs: 14 x 2 = 28.
    out = fly(jobs_of((0, "steep", 8, "ga", 1)), Priced(base=4.0))
    assert stays(out, 0) == [(0, 1)]


def test_left_over_gpus_go_where_changing_pays() -> None:
    # The second job holds 4 GPUs until 10 + 4 x 2 = 18 s; then the first grows from 4 to 8: its 98
    # steps left take 10 + 98 x 1.75 = 181.5 s instead of 196 s, which pays if the margin is 10 s.
    jobs = jobs_of((0, "steep", 4, "ga", 102), (0, "steep", 4, "ga", 4))
    rigid_second = MODELS | {"small": ToyModel((("ga", (4,), 1, 2.0),))}
    jobs["template"][1] = "small"
    for margin, sizes in ((10.0, [4, 8]), (15.0, [4])):
        out = fly(
            jobs,
            Priced(margin=margin, yielding=0.0, patience=1e9, base=0.0),
            models=rigid_second,
        )
        assert [gpus for _, gpus in stays(out, 0)] == sizes


def test_a_guaranteed_job_takes_what_best_effort_jobs_hold() -> None:
    jobs = jobs_of((0, "steep", 8, "ga", 1000, 0), (50, "steep", 8, "ga", 10, 1))
    out = fly(jobs, Priced(**EAGER))
    assert stays(out, 1) == [(50, 8)]
    assert out.table["end_time"].to_pylist()[1] == 50 + 10 + 17.5
    # Nothing is left beside 8 GPUs: the other waits, and goes on where it stopped.
    (first, again) = stays(out, 0)
    assert first == (0, 8)
    assert again[0] == 77.5
    assert out.table["num_preemptions"].to_pylist() == [1, 0]


def test_victims_are_shrunk_no_further_than_needed() -> None:
    # 4 GPUs for the promise: the best-effort job keeps 4 of its 8.
    jobs = jobs_of((0, "steep", 8, "ga", 1000, 0), (50, "steep", 4, "ga", 10, 1))
    out = fly(jobs, Priced(**EAGER))
    assert stays(out, 1)[0] == (50, 4)
    assert stays(out, 0)[1] == (50, 4)


def test_the_flattest_gives_way_first() -> None:
    models = MODELS | {"steeper": ToyModel((("ga", (1,), 1, 8.0), ("ga", (4,), 1, 1.0)))}
    jobs = jobs_of(
        (0, "flat", 4, "ga", 1000, 0), (1, "steeper", 4, "ga", 1000, 0), (50, "flat", 2, "ga", 5, 1)
    )
    policy = Priced(yielding=0.0, patience=1e9, base=0.0, margin=1e6)
    out = fly(jobs, policy, models=models)
    assert [gpus for _, gpus in stays(out, 0)][:2] == [4, 2]
    assert stays(out, 1) == [(1, 4)]


def test_guaranteed_victims_keep_their_promise() -> None:
    # The first holds 8 GPUs and is promised 4; the second needs 4 and gets the others.
    jobs = jobs_of(
        (0, "steep", 4, "ga", 1000, 1), (50, "steep", 4, "ga", 10, 1), (60, "steep", 8, "ga", 1, 1)
    )
    out = fly(jobs, Priced(**EAGER))
    assert [gpus for _, gpus in stays(out, 0)][:2] == [8, 4]
    assert stays(out, 1)[0] == (50, 4)
    # No third promise fits until the second job is done, nor after: the first keeps its 4.
    assert stays(out, 2)[0][0] > stays(out, 0)[1][0] + 100


def test_best_effort_jobs_give_way_to_each_other_only_where_it_pays() -> None:
    # 0 holds 8 GPUs for 1,760 s more. Shrunk to 4 it loses 260 s; the second would wait 1,700 s.
    jobs = jobs_of((0, "steep", 8, "ga", 1000, 0), (50, "small", 4, "ga", 10, 0))
    models = MODELS | {"small": ToyModel((("ga", (4,), 1, 2.0),))}
    out = fly(jobs, Priced(**EAGER), models=models)
    assert stays(out, 1)[0] == (50, 4)
    soon = jobs_of((0, "steep", 8, "ga", 60, 0), (50, "small", 4, "ga", 10, 0))
    out = fly(soon, Priced(**EAGER), models=models)
    assert stays(out, 0) == [(0, 8)]
    assert stays(out, 1)[0][0] == 10 + 60 * 1.75


def test_large_jobs_hold_back_for_many_small_ones_but_not_for_ever() -> None:
    # All 8 GPUs are taken until 60 s. Then a large job comes first in line; three small ones wait.
    models = MODELS | {
        "wall": ToyModel((("ga", (8,), 1, 1.0),)),
        "large": ToyModel((("ga", (4,), 1, 2.0), ("ga", (8,), 1, 1.0))),
        "small": ToyModel((("ga", (4,), 1, 1.0),)),
    }
    rows = [(0, "wall", 8, "ga", 50), (1, "large", 8, "ga", 100)]
    rows += [(2, "small", 4, "ga", 20)] * 3
    eager = fly(jobs_of(*rows), Priced(yielding=0.0, patience=1.0, base=0.0), models=models)
    patient = fly(jobs_of(*rows), Priced(yielding=1.0, patience=1.0, base=0.0), models=models)
    assert stays(eager, 1)[0][0] == 60
    # 3 others x 4 GPUs x 210 s / 8 GPUs = 315 s > 59 s waited: two small ones go first.
    assert [stays(patient, job)[0][0] for job in (2, 3)] == [60, 60]
    assert stays(patient, 1)[0][0] > 60
    assert set(patient.table["status"].to_pylist()) == {"finished"}


def test_quotas_admit_up_to_their_floors() -> None:
    jobs = jobs_of(
        *[(0, "steep", 4, "ga", 10, 1, "team")] * 2, (0, "flat", 1, "ga", 10, 1, "other")
    )
    out = fly(jobs, Priced(quotas={"team": 4}, **EAGER))
    starts = out.table["start_time"].to_pylist()
    assert starts[0] == starts[2] == 0
    assert starts[1] == out.table["end_time"].to_pylist()[0]
    sentence = "The quotas name vc 'temas' (did you mean 'team'?); the trace has 'other', 'team'."
    assert sentence not in out.notes
    assert sentence in fly(jobs, Priced(quotas={"temas": 4}, **EAGER)).notes


#: As fast on any of its sizes.
EVEN = {"even": ToyModel(tuple(("ga", (gpus,), 1, 1.0) for gpus in (2, 4, 6)))}


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_antman_spares_the_first_launched(engine: str) -> None:
    """Best-effort jobs hold 4, 2 and 2 of 8 GPUs; a guaranteed one asks for 6 of them at 3.

    The first job and one of the others have to go: the one launched last.
    """
    best_effort = [(0, "even", 4, "ga", 50), (1, "even", 2, "ga", 50), (2, "even", 2, "ga", 50)]
    jobs = jobs_of(*best_effort, (3, "even", 6, "ga", 10, 1))
    out = fly(jobs, "antman", models=EVEN, penalty=0.0, engine=engine)
    assert [[start for start, _ in stays(out, job)] for job in range(4)] == [
        [0, 13],
        [1],
        [2, 13],
        [3],
    ]


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_equal_shares_change_once_the_interval_is_over(engine: str) -> None:
    """j0 may grow at 0.7 + 0.1, though 0.8 - 0.7 is less than 0.1 in floats: j1 is long over."""
    jobs = jobs_of((0.7, "even", 4, "ga", 1), (0.7, "even", 4, "ga", 0.01))
    policy = "equal-share:interval=0.1:slack=1.5"
    out = fly(jobs, policy, models=EVEN, penalty=0.0, engine=engine)
    assert stays(out, 0) == [(0.7, 4.0), (0.7 + 0.1, 6.0)]


@pytest.mark.parametrize(
    ("parameters", "path"),
    [
        ({"margin": -1.0}, "morphling:priced.margin"),
        ({"patience": 0.5}, "morphling:priced.patience"),
        ({"yielding": float("nan")}, "morphling:priced.yielding"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, float], path: str) -> None:
    with pytest.raises(wt.SpecError, match=path):
        Priced(**parameters)  # type: ignore[arg-type] # refused
    for name in ("pollux:sia:power=2", "equal-share:slack=0.5", "equal-share:interval=-1"):
        with pytest.raises(wt.SpecError):
            wt.simulate(jobs_of((0, "flat", 1, "ga", 1)), NODE, name, models=MODELS)


def test_the_share_of_the_simple_scheduler() -> None:
    """Fig. 8's simple scheduler on four GPUs, for one and for two jobs."""
    from windtunnel.throughput.morphling_models import training_models

    options = {
        name: training_models()[name].options(node_gpus=8, node_cpus=96, num_nodes=1)
        for name in ("roberta", "t5_3B")
    }
    best = sized(options["roberta"], 2)[0]
    assert (best.plan.name, best.iteration_time) == ("zero-dp", 0.697693418)
    best = sized([o for o in options["t5_3B"] if o.measured], 2)[0]
    assert (best.plan.name, best.iteration_time) == ("zero-offload", 3.2757)
    assert next(o.num_gpus for o in sized(options["t5_3B"], 0)) == 1


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_jobs_of_equal_area_go_by_submission(engine: str) -> None:
    """Both take 4 GPUs x 10 s at least, the first in its second option, the other in its first."""
    models = {
        "two": ToyModel((("ga", (1,), 1, 8.0), ("ga", (4,), 1, 1.0))),
        "one": ToyModel((("ga", (4,), 1, 1.0),)),
    }
    jobs = jobs_of((0, "two", 1, "ga", 10), (0, "one", 4, "ga", 10))
    out = wt.simulate(jobs, "1x4", "least-area-first", models=models, penalty=0, engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 10]
