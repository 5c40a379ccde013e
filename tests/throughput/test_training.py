"""Training models: measured times, what lies between, options, curves; the published look-up."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.errors import SpecError, ThroughputError
from windtunnel.throughput import Plan, artifact_iteration_time, training_model, training_models
from windtunnel.throughput.options import parse_placement
from windtunnel.throughput.published import published_best
from windtunnel.throughput.tables import MeasuredTable, Measurement
from windtunnel.throughput.training import TrainingModel

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("vit", "roberta", "bert", "t5", "gpt2", "llama7", "llama30", "t5_3B", "llama7b_bsz16")
CLUSTER = {"node_gpus": 8, "node_cpus": 96, "num_nodes": 8}


def model_of(times: dict[tuple[str, str], float], batch: int = 24) -> TrainingModel:
    rows = tuple(Measurement(Plan.parse(p), s, t or None) for (p, s), t in times.items())
    return TrainingModel("mine", "a model", batch, MeasuredTable(rows))


@pytest.mark.parametrize("name", NAMES)
def test_shipped_times_are_the_published_ones(data_dir: Path, name: str) -> None:
    model = training_models()[name]
    with (data_dir / f"morphling/throughput/{name}.placements.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(model.table.rows)
    for row in rows:
        plan, shape = Plan.parse(row["exec_plan"]), parse_placement(row["placement"])
        threads = int(row["cpu_threads"]) if "cpu_threads" in row else None
        if float(row["iter_time"]) == 0:
            with pytest.raises(ThroughputError, match="ran out of memory"):
                model.iteration_time(plan, shape)
        else:
            assert model.iteration_time(plan, shape, threads) == float(row["iter_time"])
            assert model.is_measured(plan, shape)


def test_unknown_models_are_refused() -> None:
    assert tuple(training_models()) == NAMES
    with pytest.raises(SpecError, match="Did you mean 'roberta'"):
        training_model("robert")


@pytest.mark.parametrize(
    ("name", "plan", "shape", "message"),
    [
        ("bert", "ga", (16,), "measured on 1 to 8 GPUs only"),
        ("llama7b_bsz16", "182", (4, 4, 4, 4), "out of memory"),
        ("llama7", "zero-dp", (8,), "not measured anywhere"),
        ("llama7", "ga", (8,), "does not fit into a GPU's memory"),
        ("gpt2", "zero-dp", (3,), "3 replicas cannot share 16"),
        ("llama7", "244", (8, 8), "needs 32 GPUs, not 16"),
    ],
)
def test_nothing_is_extrapolated(
    name: str, plan: str, shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ThroughputError, match=message) as error:
        training_model(name).iteration_time(Plan.parse(plan), shape)
    assert f"model '{name}', plan '{plan}', placement '" in str(error.value)


def test_interpolation_stays_within_the_plan() -> None:
    """By hand: 6 GPUs on 2 nodes between 1 and 3 nodes; 5 GPUs on 1 node between 4 and 6."""
    model = model_of({
        ("ga", "6"): 1.0, ("ga", "222"): 2.0, ("ga", "114"): 4.0, ("ga", "4"): 2.0,
        ("gc", "33"): 99.0, ("gc", "5"): 99.0,
    }, batch=60)  # fmt: skip
    ga = Plan.parse("ga")
    assert model.iteration_time(ga, (4, 1, 1)) == 4.0
    assert model.iteration_time(ga, (3, 2, 1)) == 3.0  # the mean of its size
    assert model.iteration_time(ga, (3, 3)) == 2.0
    assert model.iteration_time(ga, (5,)) == 1.5
    with pytest.raises(ThroughputError):
        model.iteration_time(ga, (3,))
    with pytest.raises(ThroughputError):
        model.iteration_time(Plan.parse("gc"), (4,))


def test_cpus_carry_a_measured_time_over() -> None:
    """LLaMA-2-7B, one GPU: 66 s with 2 threads, 46 s with 4 measured; 8 by k_os_offload = 4."""
    model, plan = training_model("llama7b_bsz16"), Plan.parse("zero-offload+gc")
    assert model.iteration_time(plan, (1,)) == 66
    assert model.iteration_time(plan, (1,), 2) == 66
    assert model.iteration_time(plan, (1,), 4) == 46
    theta = 6738423808 / 2**20
    assert model.iteration_time(plan, (1,), 8) == pytest.approx(46 - 4 * theta / 8 / 1000)
    assert model.iteration_time(plan, (1,), 3) == pytest.approx(66 - 4 * theta / 6 / 1000)
    assert model.iteration_time(Plan.parse("221"), (4,), 7) == 5.107


@pytest.mark.parametrize("name", NAMES)
def test_options_are_feasible_and_ordered(name: str) -> None:
    model = training_models()[name]
    options = model.options(**CLUSTER)
    assert list(options) == sorted(options, key=lambda option: option.order())
    assert len({(o.plan, o.shape, o.num_cpus) for o in options}) == len(options)
    ran = {(r.plan, r.shape) for r in model.table.rows if r.iteration_time is not None}
    assert {(o.plan, o.shape) for o in options if o.measured} == ran
    for option in options:
        assert 0 < option.iteration_time < math.inf
        assert option.num_gpus == sum(option.shape) <= 64
        assert option.num_cpus == option.cpus_per_gpu * option.num_gpus
        assert max(option.shape) * option.cpus_per_gpu <= 96
        time = model.iteration_time(option.plan, option.shape, option.cpus_per_gpu)
        assert time == option.iteration_time


def test_options_respect_the_cluster() -> None:
    small = training_model("llama7").options(node_gpus=4, node_cpus=8, num_nodes=4)
    assert {o.plan.name for o in small} == {
        "zero-offload", "242", "224", "144", "414", "422", "441",
    }  # fmt: skip
    assert all(max(o.shape) <= 4 and o.num_nodes <= 4 for o in small)
    assert max(o.cpus_per_gpu * max(o.shape) for o in small) == 8


@given(st.sampled_from(NAMES), st.integers(1, 70))
def test_more_gpus_never_lower_the_envelope(name: str, most: int) -> None:
    curve = training_models()[name].curve(most)
    assert len(curve) == most
    times = [math.inf if option is None else option.iteration_time for option in curve]
    assert times == sorted(times, reverse=True)
    assert all(o is None or o.num_gpus <= gpus for gpus, o in enumerate(curve, start=1))


@pytest.mark.parametrize(
    ("name", "placement", "plan", "seconds"),
    [
        ("llama30", "888888", "344", (2.23298 + 2.62598 + 2.74156) / 3),
        ("llama7", "88", "182", 1.30566),
        ("llama7", "8888", "244", 1.15038),
        ("llama7", "88888888", "248", 1.06560),
        ("bert", "53", "gc", 0.21808947368421053),  # as ga, rotated to 35
        ("bert", "8", "zero-offload", 0.28473157894736842),
        ("gpt2", "5", "151", 1.036673684),
    ],
)
def test_published_lookup(name: str, placement: str, plan: str, seconds: float) -> None:
    found = artifact_iteration_time(training_model(name), placement, Plan.parse(plan))
    assert found == pytest.approx(seconds, abs=1e-5)


def test_published_lookup_outside_its_hull() -> None:
    bert = training_model("bert")
    assert math.isnan(artifact_iteration_time(bert, "88", Plan.parse("ga")))
    inside = artifact_iteration_time(bert, "1111111", Plan.parse("ga"))
    assert 0.2 < inside < 0.5


@pytest.mark.parametrize(
    ("name", "speeds"),
    [
        ("vit", (557.1485, 903.1877, 1155.4404, 1227.4216)),
        ("roberta", (47.2134, 89.5309, 160.3545, 261.8824)),
        ("t5", (15.9010, 28.1118, 45.6333, 66.2927)),
        ("bert", (48.0383, 81.0872, 129.4518, 196.6691)),
        ("gpt2", (4.2600, 8.4009, 16.3446, 31.0020)),
        ("t5_3B", (0.0958, 0.1870, 0.3573)),
    ],
)
def test_published_sensitivity_curve(name: str, speeds: tuple[float, ...]) -> None:
    model = training_model(name)
    for gpus, speed in zip((1, 2, 4, 8), speeds, strict=False):
        best = published_best(model, gpus)
        assert best is not None
        assert best[0] == pytest.approx(speed, abs=5.1e-5)
        assert best[1].name == ("zero-offload" if name == "t5_3B" else "zero-dp")
    assert published_best(model, 3) == published_best(model, 2)
    assert published_best(model, 7) == published_best(model, 4)


def test_many_gpus_have_options_in_equal_pieces() -> None:
    wide = model_of({("ga", "8"): 8.0, ("ga", "8" * 16): 1.0}, batch=128)
    shapes = {o.shape for o in wide.options(node_gpus=8, node_cpus=96, num_nodes=64)}
    assert (8,) * 16 in shapes
    assert (4,) * 32 not in shapes  # beyond the measured nodes nothing is known
    assert len(shapes) < 300


@given(
    st.dictionaries(
        st.tuples(st.integers(1, 4), st.integers(1, 4)), st.floats(0.1, 10), min_size=1, max_size=9
    ),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_interpolation_lies_between_its_neighbours(
    sizes: dict[tuple[int, int], float], nodes: int, each: int
) -> None:
    """Whatever was measured: a time within the measured ones, or an error; never beyond them."""
    rows = {("ga", str(gpus) * count): time for (count, gpus), time in sizes.items()}
    model = model_of(rows, batch=144 * 5 * 7)
    shape = (each,) * nodes
    found = model.lookup(Plan.parse("ga"), shape, None)
    totals = {(count, count * gpus) for count, gpus in sizes}
    if isinstance(found, str):
        assert (nodes, nodes * each) not in totals
    else:
        assert min(sizes.values()) - 1e-9 <= found[0] <= max(sizes.values()) + 1e-9
        assert found[1] == ((nodes, each) in sizes)
