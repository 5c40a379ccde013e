"""Instances from throughput tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from windtunnel import gavel
from windtunnel.errors import SpecError
from windtunnel.throughput import gavel_speeds, read_throughputs

if TYPE_CHECKING:
    from pathlib import Path

CLUSTER = {"v100": 2, "k80": 2}


def jobs(*kinds: tuple[str, int]) -> dict[str, Any]:
    return {
        "cluster": CLUSTER,
        "jobs": [
            {"id": row, "job_type": model, "scale_factor": gang}
            for row, (model, gang) in enumerate(kinds)
        ],
    }


def test_published_instances_have_the_tables_speeds(cases: list[dict[str, Any]]) -> None:
    checked = 0
    for case in cases:
        if "measured" in case["description"]:
            bare = [
                {k: v for k, v in job.items() if k != "throughputs"}
                for job in case["instance"]["jobs"]
            ]
            made = gavel.instance_of({**case["instance"], "jobs": bare}, gavel_speeds())
            assert np.array_equal(made.throughputs, gavel.as_instance(case["instance"]).throughputs)
            checked += 1
    assert checked >= 10


def test_pairs(data_dir: Path) -> None:
    path = data_dir / "gavel" / "simulation_throughputs.json"
    table = read_throughputs(path)
    one, two = ("LM (batch size 5)", 1), ("ResNet-18 (batch size 16)", 1)
    problem = jobs(one, two, ("ResNet-18 (batch size 16)", 2), one)
    made = gavel.instance_of(problem, table, packed=True)
    assert made.pairs.tolist() == [[0, 1], [0, 3], [1, 3]]
    raw = json.loads(path.read_bytes())["v100"][str(one)][str(two)]
    assert made.pair_throughputs[0, made.gpu_types.index("v100")].tolist() == raw
    plain = gavel.allocate("max_min_fairness_perf", made).objective
    packed = gavel.allocate("max_min_fairness_packed", made).objective
    assert plain is not None
    assert packed is not None
    assert packed >= plain


def test_what_the_table_lacks_is_named() -> None:
    with pytest.raises(SpecError, match="Did you mean 'CycleGAN'"):
        gavel.instance_of(jobs(("CycleGANN", 1)), gavel_speeds())
    with pytest.raises(SpecError, match="'CycleGAN' was not measured on 4 GPUs"):
        gavel.instance_of(jobs(("CycleGAN", 4)), gavel_speeds())
    with pytest.raises(SpecError, match=r"instance\.cluster\.a100"):
        gavel.instance_of({"cluster": {"a100": 1}, "jobs": []}, gavel_speeds())
