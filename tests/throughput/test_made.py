"""Models made from a user's points: held-out placements, memory, several nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from windtunnel.throughput import Plan, training_model
from windtunnel.throughput.made import MeasuredPoints, fit_model, fit_network
from windtunnel.throughput.tables import Measurement

if TYPE_CHECKING:
    from windtunnel.throughput.training import TrainingModel

pytest.importorskip("scipy")
CLUSTER = {"node_gpus": 8, "node_cpus": 96, "num_nodes": 8}


def remade(name: str, left_out: set[tuple[str, str]], **facts: float) -> TrainingModel:
    """A model of a shipped model's points without some, as a user would make it."""
    source = training_model(name)
    known = {
        key: float(getattr(source, key))
        for key in ("global_batch_size", "parameters", "hidden", "layers", "sequence")
    }
    rows = [r for r in source.table.rows if (r.plan.name, r.placement) not in left_out]
    points = MeasuredPoints(
        tuple(rows),
        source.profile,
        tuple(range(len(source.profile))),
        {**known, "gpus_per_card": 2.0, "pcie": 64.0, "nvlink": 119.5, **facts},
    )
    model, _, _ = fit_model(points, name="mine", provenance="a test")
    return model


def test_held_out_3d_placements_are_predicted() -> None:
    held = {("244", "8888"), ("224", "4444"), ("482", "88888888"), ("182", "88"), ("418", "8888")}
    model = remade("llama7", held, gpu_memory_gib=80.0)
    options = {(o.plan.name, o.shape): o for o in model.options(**CLUSTER)}
    for word, placement in held:
        shape = tuple(int(digit) for digit in placement)
        option = options[word, shape]
        truth = training_model("llama7").iteration_time(Plan.parse(word), shape)
        assert not option.measured
        assert option.iteration_time == pytest.approx(truth, rel=0.08)


def test_memory_rules_where_no_limit_is_known() -> None:
    """7 G parameters in mixed precision: 16 bytes each over p t GPUs, 13.4 GB on 8 of them."""
    large, narrow = (remade("llama7", set(), gpu_memory_gib=gib) for gib in (80.0, 8.0))
    unmeasured = Plan.parse("881"), (8,) * 8
    wide = {(o.plan, o.shape) for o in large.options(**CLUSTER) if not o.measured}
    tight = {(o.plan, o.shape) for o in narrow.options(**CLUSTER) if not o.measured}
    assert tight < wide
    assert unmeasured not in wide  # it was measured
    for plan, _ in tight:
        if plan.family == "3d":
            assert plan.pipeline * (plan.tensor or 1) > 8


@pytest.mark.parametrize("name", ["vit", "roberta", "bert", "t5", "gpt2"])
def test_stored_networks_are_found_again(name: str) -> None:
    model = training_model(name)
    rows = [
        row
        for row in model.table.rows
        if row.iteration_time is not None and row.plan.family != "3d" and len(row.shape) > 1
    ]
    assert fit_network(model, rows) == pytest.approx(model.network, rel=0.01)


def test_held_out_nodes_are_interpolated() -> None:
    source = training_model("bert")
    model = remade("bert", {("ga", "44")})
    found = model.iteration_time(Plan.parse("ga"), (4, 4))
    others = [source.iteration_time(Plan.parse("ga"), shape) for shape in ((5, 3), (6, 2))]
    assert found == pytest.approx(sum(others) / 2)


def test_out_of_memory_is_kept() -> None:
    rows = (
        Measurement(Plan.parse("ga"), "1", None),
        Measurement(Plan.parse("ga"), "2", 1.0),
        Measurement(Plan.parse("ga"), "4", 0.6),
    )
    points = MeasuredPoints(rows, (), (), {"global_batch_size": 8.0, "parameters": 1e9})
    model, found, notes = fit_model(points, name="mine", provenance="")
    assert found is None
    assert any("no analytic model" in note for note in notes)
    assert model.curve(4)[0] is None
    assert [o.num_gpus for o in model.options(**CLUSTER)] == [2, 4]


def test_predictions_that_were_far_off_are_refused() -> None:
    """Over nodes vit is 60 % off where it was measured, bert 4 %; t5 on one node 45 %."""
    for name, plan, shape, trusted in (
        ("vit", "ga", (4, 4), False),
        ("vit", "ga", (8,), True),
        ("bert", "ga", (4, 4), True),
        ("t5", "zero-dp", (8,), False),
        ("roberta", "ga", (8,), False),
        ("roberta", "gc", (8,), True),
    ):
        found = training_model(name)._predicted(Plan.parse(plan), shape, None)
        assert isinstance(found, str) != trusted, (name, plan, found)
        assert trusted or "is trusted" in str(found)
