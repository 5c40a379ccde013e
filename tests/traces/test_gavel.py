"""Gavel's traces and the generator that draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.errors import SpecError, TraceError
from windtunnel.throughput import gavel_speeds
from windtunnel.traces import open_trace

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace

TEN = (
    "ResNet-50 (batch size 64)\tpython3 main.py %s\timagenet\t--num_minibatches\t1\t43948\t1\t5"
    "\t1.200000\t0\n"
    "A3C\tpython3 main.py\trl\t--max-steps\t0\t100\t1\t1\t-1.000000\t12.5\n"
)
SEVEN = "LM (batch size 5)\tpython main.py\t--steps\t1\t100\t7.000000\t64\n"
#: Published trace -> the generator's options.
GENERATED: dict[str, dict[str, Any]] = {
    "continuous_multi_lam2400_n300": {"jobs": 300, "gap": 2400.0},
    "continuous_multi_prio_lam2400_n300": {"jobs": 300, "gap": 2400.0, "priorities": True},
    "continuous_single_lam1200_n300": {"jobs": 300, "gap": 1200.0, "multi_gpu": False},
    "static_multi_n100": {"jobs": 100},
    "static_single_n150": {"jobs": 150, "multi_gpu": False},
}


def test_ten_columns(tmp_path: Path) -> None:
    path = tmp_path / "jobs.trace"
    path.write_text(TEN)
    trace = open_trace(path)
    first, second = trace.jobs.to_pylist()
    speed = gavel_speeds().speed("ResNet-50 (batch size 64)", 1, "v100")
    assert speed is not None
    assert {name: value for name, value in first.items() if value is not None} == {
        "job_id": "0",
        "submit_time": 0.0,
        "duration": 43948 / speed,
        "num_gpus": 1.0,
        "num_tasks": 1,
        "workload": "ResNet-50",
        "template": "ResNet-50 (batch size 64)",
        "priority": 5.0,
        "total_steps": 43948,
        "slo": 1.2,
        "command": "python3 main.py %s",
        "working_directory": "imagenet",
        "steps_argument": "--num_minibatches",
        "needs_data": "yes",
    }
    assert (second["slo"], second["needs_data"], second["submit_time"]) == (None, "no", 12.5)
    assert "MIT" in trace.metadata.licence


def test_seven_columns_and_gangs_without_a_speed(tmp_path: Path) -> None:
    path = tmp_path / "jobs.trace"
    path.write_text(SEVEN)
    trace = open_trace(path, format="gavel")
    job = trace.jobs.to_pylist()[0]
    assert (job["num_gpus"], job["total_steps"], job["submit_time"]) == (64, 100, 7)
    assert job["duration"] is None
    assert any("1 jobs have no duration" in note for note in trace.metadata.notes)


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "speeds.json").write_text('{"v100": {"(\'LM (batch size 5)\', 64)": {"null": 4}}}')
    path = tmp_path / "jobs.trace"
    path.write_text(SEVEN)
    trace = open_trace(path, format="gavel", throughputs=tmp_path / "speeds.json")
    assert trace.jobs["duration"].to_pylist() == [25.0]


@pytest.mark.parametrize(
    ("old", "new", "row", "column"),
    [
        ("\t100\t1\t1\t", "\t-100\t1\t1\t", 2, "total_steps"),
        ("\t100\t1\t1\t", "\t100\t0\t1\t", 2, "scale_factor"),
        ("\t100\t1\t1\t", "\tmany\t1\t1\t", 2, "total_steps"),
        ("A3C\t", "\t", 2, "job_type"),
        ("A3C\t", " \t", 2, "job_type"),
        ("\t100\t1\t1\t", "\t  \t1\t1\t", 2, "total_steps"),
        ("\t100\t1\t1\t", "\t100\t \t1\t", 2, "scale_factor"),
        ("\t0\t100", "\tmaybe\t100", 2, "needs_data"),
        ("\t12.5", "\tsoon", 2, "arrival_time"),
        ("\t1.200000\t0\n", "\t1.200000\n", 1, None),
        ("\t1.200000\t0\n", "\t-2\t0\n", 1, "slo"),
        ("\t1.200000\t0\n", "\t0\t0\n", 1, "slo"),
        ("\t1.200000\t0\n", "\tnan\t0\n", 1, "slo"),
    ],
)
def test_bad_cells_are_named(
    tmp_path: Path, old: str, new: str, row: int, column: str | None
) -> None:
    path = tmp_path / "jobs.trace"
    path.write_text(TEN.replace(old, new))
    with pytest.raises(TraceError) as caught:
        open_trace(path, format="gavel")
    assert (caught.value.row, caught.value.column) == (row, column)


@pytest.mark.parametrize(
    ("name", "jobs", "gangs", "last"),
    [
        ("max_min_fairness", 96, {1: 59, 2: 19, 4: 18}, 46_317),
        ("minimize_makespan", 100, {1: 71, 2: 6, 4: 23}, 0),
    ],
)
def test_physical_traces(
    data_dir: Path, name: str, jobs: int, gangs: dict[int, int], last: int
) -> None:
    table = open_trace(data_dir / "gavel/traces/physical" / f"{name}.trace").jobs
    found = table["num_gpus"].to_pylist()
    assert (table.num_rows, {n: found.count(n) for n in sorted(set(found))}) == (jobs, gangs)
    assert table["submit_time"].to_pylist()[-1] == pytest.approx(last, abs=1)
    assert table["duration"].null_count == 0


def test_seven_column_traces(data_dir: Path) -> None:
    for path in sorted((data_dir / "gavel/traces/msr_seed0").glob("*.trace")):
        trace = open_trace(path)
        assert trace.jobs.num_rows == len(path.read_text().splitlines())
        assert "slo" not in trace.jobs.column_names


def gavel_text(trace: Trace) -> str:
    """A trace in Gavel's ten columns."""
    started = ("template", "command", "working_directory", "steps_argument")
    lines = []
    for job in trace.jobs.to_pylist():
        fields = [job[name] for name in started]
        fields += ["1" if job["needs_data"] == "yes" else "0", str(job["total_steps"])]
        fields += [f"{job['num_gpus']:.0f}", f"{job['priority']:g}"]
        fields += [f"{-1.0 if job['slo'] is None else job['slo']:f}", f"{job['submit_time']:f}"]
        lines.append("\t".join(fields) + "\n")
    return "".join(lines)


@pytest.mark.parametrize("name", sorted(GENERATED))
def test_generator_gives_the_published_traces(data_dir: Path, name: str) -> None:
    path = data_dir / "gavel/traces/generated" / f"{name}_seed0.trace"
    made = open_trace("synthetic:gavel", seed=0, **GENERATED[name])
    assert gavel_text(made) == path.read_text()
    read = open_trace(path)
    assert made.jobs.equals(read.jobs.select(made.jobs.column_names))
    assert gavel_text(read) == path.read_text()


def test_generated_statistics() -> None:
    """Shares of GPUs and durations of 20,000 jobs within 4 standard errors of the published."""
    jobs = open_trace("synthetic:gavel", jobs=20_000, gap=100.0, priorities=True, slos=True).jobs
    gangs = jobs["num_gpus"].to_numpy()
    for gang, share in {1: 0.7, 2: 0.1, 4: 0.15, 8: 0.05}.items():
        assert (gangs == gang).mean() == pytest.approx(share, abs=4 * (share / 20_000) ** 0.5)
    minutes = jobs["duration"].to_numpy() / 60
    assert (minutes >= 1000 - 1).mean() == pytest.approx(0.2, abs=0.012)
    assert minutes.max() <= 10_000
    assert (jobs["priority"].to_numpy() == 5).mean() == pytest.approx(0.2, abs=0.012)
    assert jobs["submit_time"].to_numpy()[-1] == pytest.approx(2e6, rel=0.03)
    slos = jobs["slo"].to_pylist()
    assert [slos.count(x) / 20_000 for x in (1.2, 2, 10)] == pytest.approx([1 / 3] * 3, abs=0.014)


@pytest.mark.parametrize(
    "option", [{"jobs": 0}, {"gap": -1.0}, {"seed": -1}, {"jobs": 1.5}, {"lambda_": 3}]
)
def test_wrong_options(option: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        open_trace("synthetic:gavel", **option)
