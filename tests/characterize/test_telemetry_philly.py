"""Figures 5 and 6 of Philly's notebook, against its loop over jobs, attempts and minutes."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from windtunnel.characterize.telemetry_philly import philly_utilization
from windtunnel.errors import SpecError
from windtunnel.telemetry import open_telemetry
from windtunnel.traces.open import open_trace

if TYPE_CHECKING:
    from pathlib import Path

CLOCK = "%Y-%m-%d %H:%M:%S"
ZERO = datetime(2017, 10, 9, 7, 0, 0)  # noqa: DTZ001 (a wall clock, as in the log)
STATUS = {"Pass": "completed", "Killed": "cancelled", "Failed": "failed"}


def _log(rng: np.random.Generator) -> list[dict[str, Any]]:
    jobs = []
    for number in range(60):
        size = int(rng.choice([1, 2, 4, 8, 16]))
        at = ZERO + timedelta(seconds=int(rng.integers(7, 3000)))
        submitted, attempts = at.strftime(CLOCK), []
        for _ in range(int(rng.integers(1, 4))):
            at += timedelta(seconds=int(rng.integers(0, 90)))
            start = at.strftime(CLOCK)
            at += timedelta(seconds=int(rng.integers(0, 1500)))
            spread = rng.random() < 0.4
            servers = rng.choice(6, size=min(6, size if spread else -(-size // 8)), replace=False)
            shares = np.array_split(np.arange(size), len(servers))
            detail = [
                {"ip": f"m{s}", "gpus": [f"gpu{g}" for g in range(min(8, len(share)))]}
                for s, share in zip(servers, shares, strict=True)
            ]
            end = None if rng.random() < 0.1 else at.strftime(CLOCK)
            attempts.append({"start_time": start, "end_time": end, "detail": detail})
        jobs.append(
            {
                "status": str(rng.choice(["Pass", "Killed", "Failed"])),
                "vc": "v",
                "jobid": f"job{number}",
                "user": "u",
                "submitted_time": submitted,
                "attempts": attempts,
            }
        )
    return jobs


def _minutes(rng: np.random.Generator) -> dict[tuple[str, str], list[str]]:
    found = {}
    for minute in range(120):
        time = (ZERO + timedelta(minutes=minute)).strftime(CLOCK)
        for machine in range(6):
            if rng.random() < 0.95:
                values = rng.integers(0, 101, 8)
                cells = ["NA" if rng.random() < 0.1 else f"{v}.0" for v in values]
                found[f"m{machine}", time] = cells
    return found


def _by_loop(
    jobs: list[dict[str, Any]], minutes: dict[tuple[str, str], list[str]], *, dedicated: bool
) -> dict[tuple[str, int], list[float]]:
    """The notebook's own way: every minute of every attempt."""
    data: dict[tuple[str, int], list[float]] = {}
    for job in jobs:
        size = sum(len(d["gpus"]) for d in job["attempts"][0]["detail"])
        running = job["attempts"][-1]["end_time"] is None
        status = "running" if running else STATUS[job["status"]]
        if size not in ((8, 16) if dedicated else (1, 4, 8, 16)):
            continue
        for attempt in job["attempts"]:
            if dedicated and len(attempt["detail"]) > size / 8:
                continue
            if attempt["end_time"] is None:
                continue
            now = datetime.strptime(attempt["start_time"], CLOCK).replace(second=0)  # noqa: DTZ007
            end = datetime.strptime(attempt["end_time"], CLOCK)  # noqa: DTZ007
            while now < end:
                for part in attempt["detail"]:
                    cells = minutes.get((part["ip"], now.strftime(CLOCK)))
                    for gpu in part["gpus"] if cells else ():
                        cell = cells[int(gpu[3:])]
                        if cell != "NA":
                            data.setdefault(("all" if dedicated else status, size), []).append(
                                float(cell)
                            )
                now += timedelta(minutes=1)
    return data


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("dedicated", [False, True])
def test_the_figures_are_the_notebooks(tmp_path: Path, seed: int, *, dedicated: bool) -> None:
    rng = np.random.default_rng(seed)
    jobs, minutes = _log(rng), _minutes(rng)
    log, util = tmp_path / "cluster_job_log", tmp_path / "cluster_gpu_util"
    log.write_text(json.dumps(jobs))
    head = "time,machineId," + ",".join(f"gpu{g}_util" for g in range(8)) + "\n"
    util.write_text(
        head + "".join(f"{t} PDT,{m},{','.join(c)},\n" for (m, t), c in minutes.items())
    )
    trace = open_trace(log)
    assert trace.holdings is not None
    assert trace.metadata.epoch is not None
    offset = datetime.fromisoformat(trace.metadata.epoch).second
    telemetry = open_telemetry(util, epoch=trace.metadata.epoch)
    found = philly_utilization(
        telemetry.table(), trace.holdings, trace.jobs,
        dedicated=dedicated, minute_offset=offset, at=[0, 10, 50, 90, 100],
    ).to_pylist()  # fmt: skip
    expected = _by_loop(jobs, minutes, dedicated=dedicated)
    assert len(found) == 5 * len(expected)
    for row in found:
        values = expected[row["status"], row["num_gpus"]]
        assert row["n"] == len(values)
        assert row["value"] == pytest.approx(np.percentile(values, row["percent"]))
        assert row["mean"] == pytest.approx(np.mean(values))


def test_an_offset_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(_log(np.random.default_rng(0))))
    trace = open_trace(path)
    with pytest.raises(SpecError, match="from 0 to 60"):
        philly_utilization(trace.jobs, trace.jobs, trace.jobs, minute_offset=60)
