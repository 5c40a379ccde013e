"""GPU types are compared without regard to case, in whatever says one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel import schema
from windtunnel.characterize.cost import Prices, bill
from windtunnel.cluster.spec import ClusterSpec, NodeType
from windtunnel.energy import PowerModel, account
from windtunnel.study.changes import with_nodes
from windtunnel.study.recording import recorded_outcome
from windtunnel.study.wait_causes import wait_causes
from windtunnel.study.whatif import WhatIf

if TYPE_CHECKING:
    from pathlib import Path

ASKED = ["a100", "A100", "h100|a100", None, "V100-SXM2"]
JOBS: dict[str, Any] = {
    "submit_time": [0, 0, 1, 2, 3],
    "start_time": [0, 0, 4, 8, 9],
    "end_time": [4, 8, 9, 9, 12],
    "duration": [4, 8, 5, 1, 3],
    "num_gpus": [2, 2, 2, 1, 1],
    "status": ["completed"] * 5,
}
CLUSTER = ClusterSpec(
    (NodeType(1, 4, "A100"), NodeType(1, 4, "V100")), aliases={"v100-sxm2": "V100"}
)


def jobs_spelt(*types: str | None) -> Any:
    return schema.as_jobs({**JOBS, "gpu_type": list(types)})


MIXED = jobs_spelt(*ASKED)
PLAIN = jobs_spelt("A100", "A100", "h100|A100", None, "V100")


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize("options", [{}, {"bind_types": ("a100",)}, {"placement": "fgd"}])
def test_flights_are_the_same(engine: str, options: dict[str, Any]) -> None:
    runs = [wt.simulate(jobs, CLUSTER, "sjf", engine=engine, **options) for jobs in (MIXED, PLAIN)]
    runs = [replace(run, notes=()) for run in runs]  # the one uses the alias, the other does not
    wt.testing.assert_outcomes_equal(*runs)
    assert runs[0].jobs["gpu_type"].to_pylist() == PLAIN["gpu_type"].to_pylist()


def test_what_a_log_says_is_the_same() -> None:
    causes = [wait_causes(jobs, CLUSTER) for jobs in (MIXED, PLAIN)]
    assert np.array_equal(causes[0].causes, causes[1].causes)
    prices = Prices({"a100": 2.0, "V100": 1.0})
    assert bill(MIXED, CLUSTER, prices).total == bill(PLAIN, CLUSTER, prices).total
    watts = {"idle_w": 50, "active_w": 400}
    runs = [wt.simulate(jobs, CLUSTER, "sjf") for jobs in (MIXED, PLAIN)]
    models = [{"A100": watts, "v100": watts}, {"a100": watts, "V100": watts}]
    books = [
        account(run, PowerModel.from_mapping({"gpus": gpus}))
        for run, gpus in zip(runs, models, strict=True)
    ]
    assert books[0].summary() == books[1].summary()


def test_failures_and_a_file_say_types_as_they_like(tmp_path: Path) -> None:
    runs = [
        wt.simulate(
            MIXED,
            CLUSTER,
            disruptions={"failure_models": [{"gpu_type": kind, "mtbf": "5", "mttr": "1"}]},
            seed=1,
        )
        for kind in ("A100", "a100")
    ]
    assert runs[0].flight.start.tolist() == runs[1].flight.start.tolist()
    assert runs[0].metrics() == runs[1].metrics()
    file = tmp_path / "cluster.toml"
    file.write_text(
        'aliases = {v100-sxm2 = "V100"}\n[[node_types]]\ncount=1\ngpus=4\ngpu_type="V100"'
    )
    assert ClusterSpec.from_toml(file).aliases == {"v100-sxm2": "V100"}


def test_prices_say_types_by_their_aliases() -> None:
    own, other = Prices({"A100": 2.0, "V100": 1.0}), Prices({"A100": 2.0, "V100-SXM2": 1.0})
    bills = [bill(MIXED, CLUSTER, prices) for prices in (own, other)]
    assert bills[0].total == bills[1].total == 12 * (4 * 2 + 4 * 1) / 3600
    assert bills[0].by_type().equals(bills[1].by_type())
    before, after = (wt.simulate(PLAIN, cluster) for cluster in (CLUSTER, with_nodes(CLUSTER, 1)))
    costs = [
        [
            row
            for row in WhatIf(before, after, (), "weeks", prices).table()
            if "cost" in row["measure"]
        ]
        for prices in (own, other)
    ]
    assert len(costs[0]) == 2
    assert costs[0] == costs[1]


@pytest.mark.parametrize("cap", [{}, {"power_cap": 1100}])
def test_models_of_power_say_types_by_their_aliases(cap: dict[str, Any]) -> None:
    limits = {"limit_w": [300, 100], "power_w": [290, 95], "speed": [1, 0.5]}
    books = []
    for name in ("V100", "v100-SXM2"):
        model = {
            "gpus": {
                "A100": {"idle_w": 60, "active_w": 380},
                name: {"idle_w": 40, "active_w": 250},
            },
            "limits": [{"gpu_type": name, **limits}],
        }
        run = wt.simulate(PLAIN, CLUSTER, "sjf", **({"power": model} | cap if cap else {}))
        books.append(account(run, PowerModel.from_mapping(model)))
    assert books[0].summary() == books[1].summary()
    assert books[0].by_type().equals(books[1].by_type())


def test_a_type_has_one_entry() -> None:
    with pytest.raises(wt.SpecError, match=r"v100-SXM2: a second entry of the GPU type 'V100'"):
        bill(PLAIN, CLUSTER, Prices({"V100": 1.0, "v100-SXM2": 2.0}, default=1.0))
    watts = {"idle_w": 1, "active_w": 2}
    model = PowerModel.from_mapping({"gpus": {"default": watts, "V100": watts, "v100": watts}})
    with pytest.raises(wt.SpecError, match=r"power.gpus.v100: a second entry"):
        account(recorded_outcome(PLAIN, CLUSTER), model)


def test_an_alias_is_of_a_type_of_the_cluster(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(
        'aliases = {v100-sxm2 = "V10"}\n[[node_types]]\ncount=1\ngpus=4\ngpu_type="V100"'
    )
    message = r"cluster.toml: \$.aliases.v100-sxm2: unknown name 'V10'. Did you mean 'V100'"
    with pytest.raises(wt.SpecError, match=message):
        ClusterSpec.from_toml(file)
    with pytest.raises(wt.SpecError, match=r"aliases.a100: unknown name 'A100'. Known: none"):
        ClusterSpec((NodeType(1, 4),), aliases={"a100": "A100"})


def test_what_nothing_uses_is_refused() -> None:
    with pytest.raises(
        wt.SpecError, match=r"prices.gpus.A10: unknown name 'A10'. Did you mean 'A1"
    ):
        bill(PLAIN, CLUSTER, Prices({"A10": 2.0}, default=1.0))
    model = PowerModel.from_mapping(
        {"gpus": {"default": {"idle_w": 1, "active_w": 2}, "H10": {"idle_w": 1, "active_w": 2}}}
    )
    with pytest.raises(wt.SpecError, match=r"power.gpus.H10: unknown name 'H10'"):
        account(recorded_outcome(PLAIN, CLUSTER), model)
    limits = {"gpu_type": "H10", "limit_w": [300], "power_w": [290], "speed": [1]}
    model = PowerModel.from_mapping(
        {"gpus": {"default": {"idle_w": 1, "active_w": 2}}, "limits": [limits]}
    )
    with pytest.raises(wt.SpecError, match=r"power.limits.H10: unknown name 'H10'"):
        account(recorded_outcome(PLAIN, CLUSTER), model)
    with pytest.raises(wt.SpecError, match="bind_types: unknown name 'T4'"):
        wt.simulate(PLAIN, CLUSTER, bind_types="T4")


def test_an_alias_that_no_job_uses_is_noted() -> None:
    """Whichever way the jobs write their types; the nearest of theirs is named."""
    asked = jobs_spelt("A100", "V100-SXM3", None, "a100|V100-SXM3", "A100")
    note = (
        "The cluster's aliases name GPU type 'v100-sxm2' (did you mean 'V100-SXM3'?); the trace "
        "has 'A100', 'V100-SXM3', 'a100'."
    )
    assert note in wt.simulate(asked, CLUSTER, oversize="reject").notes
    assert not any("aliases" in note for note in wt.simulate(MIXED, CLUSTER).notes)


@pytest.mark.parametrize(
    ("types", "cluster", "why"),
    [
        (("A100",), "1x4", "the cluster has none to name"),
        ((None,), "1x4:A100", "no job names a GPU type"),
        (("A100",), "1x4:A100", None),
    ],
)
def test_types_that_bind_nobody_are_noted(
    types: tuple[str | None, ...], cluster: str, why: str | None
) -> None:
    out = wt.simulate(jobs_spelt(*types * 5), cluster, bind_types="A100")
    found = [note for note in out.notes if "bind_types" in note]
    assert found == ([f"bind_types (--bind-types) made no difference: {why}."] if why else [])


def test_what_a_cluster_counts_may_be_of_numpy_and_must_be_numbers() -> None:
    cluster = wt.ClusterSpec.uniform(np.int64(2), np.int64(8), mem_gib_per_node=np.float64(64))
    assert cluster.describe() == wt.ClusterSpec.uniform(2, 8, mem_gib_per_node=64.0).describe()
    assert json.loads(json.dumps(cluster.to_mapping()))["node_types"][0]["gpus"] == 8
    with pytest.raises(wt.SpecError, match="cpus: found True"):
        wt.ClusterSpec.uniform(2, 8, cpus_per_node=True)
    with pytest.raises(wt.SpecError, match=r"aliases.x: found None; expected a GPU type's name"):
        wt.ClusterSpec(cluster.node_types, aliases={"x": None})  # type: ignore[dict-item]
    with pytest.raises(wt.SpecError, match="self"):
        wt.Scheduler(self=1)  # type: ignore[call-arg]
