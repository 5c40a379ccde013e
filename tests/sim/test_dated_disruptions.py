"""Disruptions with dates: put on the clock of the log that they are flown with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.cli.root import windtunnel
from windtunnel.errors import SpecError
from windtunnel.sim.disruptions.dated import DatedDisruptions, disruptions_of

if TYPE_CHECKING:
    from pathlib import Path

LOG = """JobID|Submit|Start|End|Elapsed|State|AllocTRES|NNodes
1|2025-07-01T10:00:00|2025-07-01T10:00:00|2025-07-01T10:10:00|00:10:00|COMPLETED|gres/gpu=8|1
2|2025-07-01T10:20:00|2025-07-01T10:20:00|2025-07-01T10:30:00|00:10:00|COMPLETED|gres/gpu=8|1
"""


@pytest.mark.parametrize("start", ["2025-07-01T10:15:00", '"2025-07-01 10:15"'])
def test_an_outage_by_the_sites_clock(tmp_path: Path, start: str) -> None:
    # Summer time in Berlin is two hours ahead, of the log as of the outage: the second job, of
    # 10:20, waits for the outage's end at 11:00, 3,600 s after the first came.
    (tmp_path / "log.txt").write_text(LOG)
    plan = f"[[maintenance]]\nstart = {start}\nend = 2025-07-01T11:00:00\nnodes = [0]\n"
    (tmp_path / "down.toml").write_text(plan)
    out = tmp_path / "out.parquet"
    asked = ["simulate", f"{tmp_path}/log.txt:zone=Europe/Berlin", "--cluster", "1x8"]
    asked += ["--disruptions", f"{tmp_path}/down.toml", "--out", str(out), "--json"]
    found = CliRunner().invoke(windtunnel, asked)
    assert found.exit_code == 0, found.output
    starts = pq.read_table(out)["start_time"].to_pylist()
    assert starts == [0.0, 3600.0]


def test_what_was_over_before_the_log_is_left_out() -> None:
    raw = {
        "maintenance": [
            {"start": "2025-01-01", "end": "2025-01-02", "nodes": [0]},
            {"start": "2025-01-01", "end": "2025-01-04", "nodes": [1]},
        ],
        "node_failures": [{"time": "2025-01-05", "node": 2}],
    }
    zero = 1_735_862_400.0  # 2025-01-03
    dated = disruptions_of(raw)
    assert isinstance(dated, DatedDisruptions)
    plain = dated.at(lambda seconds: seconds - zero)
    assert [(part.start, part.end) for part in plain.maintenance] == [(0.0, 86_400.0)]
    assert [(part.time, part.until) for part in plain.node_failures] == [(172_800.0, None)]


def test_dates_and_seconds_do_not_mix() -> None:
    raw = {"maintenance": [{"start": "2025-01-01", "end": 7200, "nodes": [0]}]}
    with pytest.raises(SpecError, match=r"maintenance\[0\]\.end: found 7200; expected a date"):
        disruptions_of(raw)
    raw = {"node_failures": [{"time": "2025-01-01T00:00:00Z", "node": 0}]}
    with pytest.raises(SpecError, match="without an offset"):
        disruptions_of(raw)


def test_a_trace_without_dates_refuses_them() -> None:
    down = {"node_failures": [{"time": "2025-01-01", "node": 0}]}
    jobs = {"submit_time": [0], "duration": [1], "num_gpus": [1]}
    with pytest.raises(SpecError, match="they have dates"):
        wt.simulate(jobs, cluster="1x8", disruptions=down)
