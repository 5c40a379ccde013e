"""Telemetry beside a trace, against readings added up by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from described_traces import HELD_MINUTES, bare, held

from windtunnel.errors import TraceError, WindtunnelError
from windtunnel.report.measured_use import measured_use
from windtunnel.report.summary_rows import jobs_table, metrics_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from windtunnel.report.sections import Table

#: The readings: all, those of job a, those of job b.
ALL = [10.0, 20.0, 30.0, 40.0, 80.0, 0.0, 100.0, 7.0, 5.0]
OF_A, OF_B = [10.0, 20.0, 30.0, 40.0], [80.0, 100.0]


@pytest.fixture
def minutes(tmp_path: Path) -> Path:
    path = tmp_path / "cluster_gpu_util"
    path.write_text(HELD_MINUTES)
    return path


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files, which must be empty in the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert not list(folder.glob("**/*.parquet"))


def test_metrics_are_counted_over_all_samples(minutes: Path) -> None:
    use = measured_use(held(), minutes)
    (metric,) = use.metrics
    assert (use.rows_read, use.samples, sum(use.dropped.values())) == (10, 9, 1)
    assert metric["metric"] == "gpu_util"
    assert metric["n"] == 9
    assert metric["mean"] == pytest.approx(np.mean(ALL), rel=1e-12)
    assert metric["zero_share"] == pytest.approx(1 / 9)
    for percent in (10, 25, 50, 75, 90, 99):
        assert metric[f"p{percent}"] == pytest.approx(np.percentile(ALL, percent), rel=1e-12)
    values = [row["value"] for row in use.curves]
    assert values == pytest.approx(np.percentile(ALL, np.arange(201) / 2), rel=1e-12)


def test_samples_are_of_the_jobs_that_held_the_gpus(minutes: Path) -> None:
    use = measured_use(held(), minutes)
    assert use.why_no_jobs == ""
    jobs = use.jobs["gpu_util"].jobs
    means = [np.mean(OF_A), np.mean(OF_B)]
    assert (jobs["n"], jobs["unknown"], jobs["without"], jobs["left_out"]) == (2, 0, 0, 3)
    assert jobs["mean"] == pytest.approx(np.mean(means))
    assert jobs["p90"] == pytest.approx(np.percentile(means, 90))
    users = {row["user"]: row for row in use.jobs["gpu_util"].by["user"]}
    assert set(users) == {"ann", "bob", "(not held)"}
    assert users["ann"]["p50"] == pytest.approx(np.median(OF_A))
    assert users["bob"]["mean"] == pytest.approx(np.mean(OF_B))
    assert set(use.jobs["gpu_util"].by) == {"num_gpus", "user"}  # the jobs tell no more


def test_rows_show_every_sample_once(minutes: Path) -> None:
    use = measured_use(held(), minutes)
    assert _rows(metrics_table(use))[0][:4] == ("gpu_util", "9", "11 %", "32.4")
    table = jobs_table(use.jobs["gpu_util"], 1)
    assert table.lines[0].group == "Jobs, by the mean of each (3 samples of no job)"
    rows = _rows(table)
    assert all(len(row) == 1 + len(table.columns) for row in rows)
    assert ("ann", "4", "25.0", "25.0", "37.0", "40.0") in rows
    assert ("1 others", "2", "", "", "", "") in rows
    whole = _rows(jobs_table(use.jobs["gpu_util"], None))[1:]
    assert sum(int(row[1]) for row in whole) == 2 * (len(OF_A) + len(OF_B))


def _rows(table: Table) -> list[tuple[str, ...]]:
    return [(line.label, *(cell.text for cell in line.cells)) for line in table.lines]


def test_a_trace_without_holdings_says_why_jobs_are_not_known(minutes: Path) -> None:
    use = measured_use(bare(), minutes)
    assert use.jobs == {}
    assert "which job held which GPU" in use.why_no_jobs
    assert use.samples == 9


def test_samples_of_another_time_are_of_no_job(minutes: Path) -> None:
    trace = held()
    later = minutes.read_text().replace("2017-10-03", "2017-12-03").replace("PDT", "PST")
    minutes.write_text(later)
    use = measured_use(trace, minutes)
    assert use.jobs == {}
    assert "no sample is of a job" in use.why_no_jobs


def test_jobs_that_samples_name_are_joined_by_name(tmp_path: Path) -> None:
    scrape = tmp_path / "scrape.prom"
    label = 'gpu="{}",Hostname="m1",hpc_job="{}"'
    lines = [
        f"DCGM_FI_DEV_GPU_UTIL{{{label.format(gpu, job)}}} {value}"
        for gpu, job, value in ((0, "a", 90), (1, "a", 70), (2, "elsewhere", 5))
    ]
    lines += ['DCGM_FI_DEV_POWER_USAGE{gpu="0",Hostname="m1",hpc_job="a"} 300']
    scrape.write_text("\n".join(lines) + "\n")
    use = measured_use(held(), scrape)
    assert list(use.jobs) == ["DCGM_FI_DEV_GPU_UTIL"]  # jobs are asked about use, not about power
    jobs = use.jobs["DCGM_FI_DEV_GPU_UTIL"].jobs
    assert (jobs["n"], jobs["unknown"], jobs["without"]) == (2, 1, 1)
    assert jobs["max"] == 80.0
    heading = jobs_table(use.jobs["DCGM_FI_DEV_GPU_UTIL"], None).lines[0].group
    assert heading == "Jobs, by the mean of each (1 not in the trace, 1 job more without a sample)"


def test_a_full_disk_for_temporary_files_is_reported(
    minutes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("windtunnel.telemetry.Telemetry.write_parquet", full)
    with pytest.raises(TraceError, match=r"room for its samples.*No space left"):
        measured_use(held(), minutes)


def test_telemetry_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WindtunnelError, match="exists"):
        measured_use(bare(), tmp_path / "nowhere.csv")
    broken = tmp_path / "broken.csv"
    broken.write_text(HELD_MINUTES + "2017-10-03 12:05:00 PDT,m1,what,5,\n")
    with pytest.raises(WindtunnelError, match="what"):
        measured_use(bare(), broken)
