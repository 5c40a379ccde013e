"""Recordings of spot nodes as failures of nodes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.sim.disruptions import Checkpointing, Disruptions
from windtunnel.sim.disruptions.availability import spot_failures

if TYPE_CHECKING:
    from pathlib import Path


def recorded(folder: Path, data: object, gap: object = 100) -> str:
    path = folder / "spot.json"
    path.write_text(json.dumps({"metadata": {"gap_seconds": gap}, "data": data}))
    return str(path)


def test_the_last_node_goes_first(tmp_path: Path) -> None:
    away = [(f.node, f.time, f.until) for f in spot_failures(recorded(tmp_path, [2, 1, 0, 2, 1]))]
    assert away == [(1, 100.0, 300.0), (0, 200.0, 300.0), (1, 400.0, None)]


def test_a_job_waits_for_its_node(tmp_path: Path) -> None:
    jobs = {"submit_time": [0, 0], "duration": [150, 150], "num_gpus": [4, 4]}
    down = Disruptions(
        node_failures=spot_failures(recorded(tmp_path, [1, 0, 1])),
        checkpoint=Checkpointing(interval=30),
    )
    for engine in ("compiled", "reference"):
        out = wt.simulate(jobs, "2x4", disruptions=down, engine=engine)
        # On node 0 90 s are kept at 100; node 1, beyond the recording, is free at 150: 60 are left.
        assert out.table["end_time"].to_pylist() == [210.0, 150.0]
    assert wt.simulate(jobs, "2x4", disruptions=recorded(tmp_path, [1])).flight is not None


@pytest.mark.parametrize(
    ("data", "gap", "message"),
    [
        ([], 100, "data: expected at least one number"),
        ([0, 0], 100, "data: expected at least one number"),
        ([1, -1], 100, "data: expected at least one number"),
        ([1], 0, "metadata.gap_seconds: found 0"),
        ([1], 1e308, "gap_seconds: found 1e\\+308; expected all ticks within"),
        ([0, 100_000] * 20, 100, "data: nodes go 2,000,000 times"),
        (["x"], 100, "cannot be read.*expected"),
        ([10**7], 100, "from 0 to 100,000"),
    ],
)
def test_bad_files(tmp_path: Path, data: object, gap: object, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        wt.simulate(
            {"submit_time": [0], "duration": [1], "num_gpus": [1]},
            "1x1",
            disruptions=recorded(tmp_path, data, gap),
        )


def test_a_recording_of_more_nodes_than_the_cluster_has(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="node"):
        wt.simulate(
            {"submit_time": [0], "duration": [1], "num_gpus": [1]},
            "1x1",
            disruptions=recorded(tmp_path, [3, 1]),
        )
