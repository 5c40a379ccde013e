"""The row of `windtunnel.characterize.summary` as tables for people: whole, and in short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.columns import cells_of, rows_table
from windtunnel.report.format import (
    MINUS,
    count,
    duration,
    exact_seconds,
    gpu_time,
    number,
    percent,
    plural,
    size_text,
)
from windtunnel.report.measured_use import SHOWN
from windtunnel.report.names import clean
from windtunnel.report.sections import Cell, Line, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.characterize.summary import ClusterSummary
    from windtunnel.report.columns import Columns
    from windtunnel.report.measured_use import JobUse, MeasuredUse


#: Cells that differ by less than this between two ways of counting count as the same.
SAME = 5e-4
_STATES = {"complete": "completed", "cancel": "cancelled", "fail": "failed"}
#: Column -> what to call it; the rest of the row follows the pattern of the names.
_GPU: dict[str, str] = {
    "gpu_job_num": "GPU jobs",
    "avg_run_time_gpu": "run time, mean",
    "med_run_time_gpu": "run time, median",
    "max_run_time_gpu": "run time, longest",
    "avg_que_time_gpu": "wait, mean",
    "med_que_time_gpu": "wait, median",
    "avg_gpu_num": "GPUs of a job, mean",
    "med_gpu_num": "GPUs of a job, median",
    "max_gpu": "GPUs of a job, most",
    **{f"{key}_rate_gpu": f"{word}, of the jobs" for key, word in _STATES.items()},
    **{f"{key}_gpu_time": f"{word}, GPU time" for key, word in _STATES.items()},
    **{f"{key}_rate_gpu_time": f"{word}, of the GPU time" for key, word in _STATES.items()},
}
_CPU: dict[str, str] = {
    "cpu_job_num": "CPU jobs",
    "avg_run_time_cpu": "run time, mean",
    "med_run_time_cpu": "run time, median",
    "avg_que_time_cpu": "wait, mean",
    "med_que_time_cpu": "wait, median",
    **{f"{key}_rate_cpu": f"{word}, of the jobs" for key, word in _STATES.items()},
}
#: Column -> (what to call it, of which jobs), in the order that people read them.
LABELS: dict[str, tuple[str, str]] = {
    "job_num": ("jobs", "All jobs"),
    **{column: (label, "GPU jobs") for column, label in _GPU.items()},
    **{column: (label, "CPU jobs") for column, label in _CPU.items()},
}
_WHOLE = ("job_num", "gpu_job_num", "cpu_job_num")


def cell_text(column: str, value: float | None) -> str:
    """Return a cell of the row for people.

    >>> cell_text("avg_run_time_gpu", 7530.0), cell_text("fail_rate_gpu", 0.061)
    ('2 h 06 m', '6.1 %')
    """
    return _formatter(column)(value)


def _formatter(column: str) -> Callable[[float | None], str]:
    if column in _WHOLE or column == "max_gpu":
        return count
    if "_rate_" in column:
        return percent
    if column.endswith("_gpu_time"):
        return gpu_time
    return number if column.endswith("_gpu_num") else duration


def exact_text(column: str, value: float | None) -> str:
    """Return a cell of the row to the last digit, in its base unit."""
    if value is None:
        return "unknown"
    if _formatter(column) is duration:
        return exact_seconds(value)
    return f"{value:,.15g} GPU s" if column.endswith("_gpu_time") else f"{value:,.15g}"


def summary_lines(summary: ClusterSummary) -> Table:
    """Return the row as a table, a line a column: its name in the file, value, n and left out.

    Cells that cannot be had are listed by `not_had`.
    """
    lines = []
    for column, (label, group) in LABELS.items():
        value = summary.row[column]
        counted = column in summary.n
        lines.append(
            Line(
                label,
                [
                    Cell(column),
                    Cell(cell_text(column, value), exact_text(column, value)),
                    Cell(count(summary.n[column]) if counted and value is not None else ""),
                    Cell(count(summary.left_out[column]) if counted else ""),
                ],
                group=group,
            )
        )
    return Table("", ["column", "value", "n", "left out"], lines, texts=1)


def summary_in_short(summary: ClusterSummary) -> list[Table]:
    """Return the row as two small tables: how long and how large jobs are, and how they end.

    The CPU jobs have lines only where there are some; a table without any value is left out.
    """
    kinds = [("gpu", "GPU jobs"), *([("cpu", "CPU jobs")] if summary.row["cpu_job_num"] else [])]
    sizes: list[Line] = []
    ends: list[Line] = []
    for kind, name in kinds:
        lead = f"{name}: " if len(kinds) > 1 else ""
        largest = "max_run_time_gpu" if kind == "gpu" else None
        times = (f"avg_run_time_{kind}", f"med_run_time_{kind}", largest)
        sizes.append(_short(summary, f"{lead}run time", times))
        waits = (f"avg_que_time_{kind}", f"med_que_time_{kind}", None)
        sizes.append(_short(summary, f"{lead}wait", waits))
        if kind == "gpu":
            sizes.append(_short(summary, f"{lead}GPUs", ("avg_gpu_num", "med_gpu_num", "max_gpu")))
        ends.append(_short(summary, f"{lead}of the jobs", _each(f"{{}}_rate_{kind}")))
        if kind == "gpu":
            ends.append(_short(summary, f"{lead}of the GPU time", _each("{}_rate_gpu_time")))
            ends.append(_short(summary, f"{lead}GPU hours", _each("{}_gpu_time")))
    tables = [
        Table("", ["mean", "median", "largest", "n", "left out"], sizes),
        Table("", [*_STATES.values(), "n", "left out"], ends),
    ]
    filled = [
        Table(table.corner, table.columns, [line for line in table.lines if line.title])
        for table in tables
    ]
    return [table for table in filled if table.lines]


def _each(pattern: str) -> tuple[str, ...]:
    return tuple(pattern.format(key) for key in _STATES)


def _short(summary: ClusterSummary, label: str, columns: tuple[str | None, ...]) -> Line:
    """Return a line of three values; its title says from how many jobs, empty = no value."""
    values = [None if column is None else summary.row[column] for column in columns]
    first = next(column for column in columns if column is not None)
    known = any(value is not None for value in values)
    cells = [
        Cell("" if column is None else cell_text(column, value).removesuffix(" GPU h"))
        for column, value in zip(columns, values, strict=True)
    ]
    n, left_out = count(summary.n[first]), count(summary.left_out[first])
    return Line(label, [*cells, Cell(n), Cell(left_out)], title=n if known else "")


def not_had(summary: ClusterSummary) -> list[tuple[str, str, str]]:
    """Return (reason, group, label) of every cell that cannot be had."""
    return [
        (why, "cluster summary", _full_label(column))
        for column, why in summary.why.items()
        if column in LABELS
    ]


def _full_label(column: str) -> str:
    label, group = LABELS[column]
    return label if column in _WHOLE else f"{label} ({group})"


def differences(one: ClusterSummary, other: ClusterSummary) -> dict[str, tuple[Any, Any]]:
    """Return column -> the two values, where they differ by more than `SAME`, relatively."""
    found = {}
    for column in LABELS:
        a, b = one.row[column], other.row[column]
        if a != b and (a is None or b is None or abs(a - b) > SAME * max(abs(a), abs(b))):
            found[column] = (a, b)
    return found


#: From here on a measurement is written as a power of ten.
_LARGE = 1e6
_TITLES = {
    "num_gpus": "Samples by GPUs of the job",
    "user": "Samples by user",
    "workload": "Samples by workload",
    "status": "Samples by status",
}
#: What `windtunnel.characterize.telemetry_jobs` calls those of no job.
_NONE, _UNHELD = "(none)", "(not held)"


def measurement(value: float | None) -> str:
    r"""Return a measurement in few characters, whatever its unit.

    >>> measurement(97.5), measurement(4335301032.0), measurement(None)
    ('97.5', '4.34e9', '\u2013')
    """
    if value is None or abs(value) < _LARGE:
        return number(value)
    digits, power = f"{value:.2e}".split("e")
    return f"{digits}e{int(power)}".replace("-", MINUS)


_METRICS: Columns = (
    ("n", "n", count),
    ("at 0", "zero_share", percent),
    ("mean", "mean", measurement),
    *((f"P{point:g}", f"p{point:g}", measurement) for point in SHOWN),
)
_JOBS: Columns = (
    ("n", "n", count),
    ("mean", "mean", measurement),
    ("P50", "p50", measurement),
    ("P90", "p90", measurement),
    ("max", "max", measurement),
)


def metrics_table(use: MeasuredUse) -> Table:
    """Return each metric in numbers, in its own unit."""
    return rows_table("metric", _METRICS, use.metrics, "metric")


def jobs_table(use: JobUse, top: int | None) -> Table:
    """Return the distribution over jobs of each one's mean, and the samples of kinds of jobs.

    Args:
        use: of one metric.
        top: so many rows a property at most, most samples first; None = all. Size classes are
            always all.
    """
    lines = [Line("jobs", cells_of(_JOBS, use.jobs), group=_jobs_heading(use.jobs))]
    for by, found in use.by.items():
        held = [row for row in found if row[by] != _UNHELD]
        if all(row[by] == _NONE for row in held):
            continue
        title, label = _TITLES[by], size_text if by == "num_gpus" else clean
        shown = held if top is None or by == "num_gpus" else held[:top]
        lines += [Line(label(row[by]), cells_of(_JOBS, row), group=title) for row in shown]
        hidden = held[len(shown) :]
        if hidden:
            samples = count(sum(row["n"] for row in hidden))
            cells = [Cell(text) for text in (samples, *[""] * (len(_JOBS) - 1))]
            lines.append(Line(f"{len(hidden):,} others", cells, group=title))
    return Table("", [head for head, _, _ in _JOBS], lines)


def _jobs_heading(facts: dict[str, Any]) -> str:
    remarks = []
    if facts["unknown"]:
        remarks.append(f"{count(facts['unknown'])} not in the trace")
    if facts["without"]:
        remarks.append(f"{plural(facts['without'], 'job')} more without a sample")
    if facts["left_out"]:
        remarks.append(f"{plural(facts['left_out'], 'sample')} of no job")
    return "Jobs, by the mean of each" + (f" ({', '.join(remarks)})" if remarks else "")


#: Class of size -> the wider class that stands for it in short; others stay.
_COARSE = {
    **dict.fromkeys(("2", "3-4", "5-8"), "2-8"),
    **dict.fromkeys(("9-16", "17-32", "33-64"), "9-64"),
    **dict.fromkeys(("65-128", "129-256", "257-512"), "65-512"),
}
_SHARE_KEYS = ("num_jobs", "job_share", "gpu_time", "gpu_time_share")


def coarse(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return shares by size of the job with two or three classes in one, from 2 GPUs on."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        label = _COARSE.get(row["num_gpus"], row["num_gpus"])
        into = found.setdefault(label, {"num_gpus": label, **dict.fromkeys(_SHARE_KEYS, 0)})
        for key in _SHARE_KEYS:
            into[key] += row[key] or 0
    return list(found.values())


def folded(rows: Sequence[dict[str, Any]], by: str, top: int) -> list[dict[str, Any]]:
    """Return the first rows of a table of shares, and all others as one."""
    if len(rows) <= top + 1:
        return list(rows)
    rest = rows[top:]
    others = {key: sum(row[key] or 0 for row in rest) for key in _SHARE_KEYS}
    return [*rows[:top], {by: f"{len(rest):,} others", **others}]
