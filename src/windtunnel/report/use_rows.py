"""Telemetry as rows of texts, for the terminal and the page alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.format import count, number, percent, plural
from windtunnel.report.measured_use import SHOWN
from windtunnel.report.names import clean

if TYPE_CHECKING:
    from windtunnel.report.measured_use import JobUse, MeasuredUse

#: Columns of `metric_rows`.
METRIC_COLUMNS: tuple[str, ...] = (
    *("metric", "n", "at 0", "mean"),
    *(f"P{percent_:g}" for percent_ in SHOWN),
)
#: Columns of `job_rows` and `by_rows` behind the first.
JOB_COLUMNS: tuple[str, ...] = ("n", "mean", "P50", "P90", "max")
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


def metric_rows(use: MeasuredUse) -> list[tuple[str, ...]]:
    """Return each metric in numbers, in its own unit."""
    return [
        (
            clean(row["metric"]),
            count(row["n"]),
            percent(row["zero_share"]),
            measurement(row["mean"]),
            *(measurement(row[f"p{percent_:g}"]) for percent_ in SHOWN),
        )
        for row in use.metrics
    ]


def job_rows(use: JobUse) -> list[tuple[str, ...]]:
    """Return the distribution over jobs of each one's mean, under a heading."""
    facts = use.jobs
    told = []
    if facts["unknown"]:
        told.append(f"{count(facts['unknown'])} not in the trace")
    if facts["without"]:
        told.append(f"{plural(facts['without'], 'job')} more without a sample")
    if facts["left_out"]:
        told.append(f"{plural(facts['left_out'], 'sample')} of no job")
    heading = "Jobs, by the mean of each"
    if told:
        heading += f" ({', '.join(told)})"
    return [(heading,), ("jobs", count(facts["n"]), *_numbers(facts))]


def by_rows(use: JobUse, top: int | None) -> list[tuple[str, ...]]:
    """Return the samples of kinds of jobs, under a heading a property.

    Args:
        use: of one metric.
        top: so many rows a property at most, most samples first; None = all. Size classes are
            always all.
    """
    rows: list[tuple[str, ...]] = []
    for by, found in use.by.items():
        held = [row for row in found if row[by] != _UNHELD]
        if all(row[by] == _NONE for row in held):
            continue
        rows.append((_TITLES[by],))
        shown = held if top is None or by == "num_gpus" else held[:top]
        rows += [_group_row(row, by) for row in shown]
        hidden = held[len(shown) :]
        if hidden:
            samples = sum(row["n"] for row in hidden)
            rows.append((f"{len(hidden):,} others", count(samples), *[""] * 4))
    return rows


def _group_row(row: dict[str, Any], by: str) -> tuple[str, ...]:
    label = row[by].replace("-", "\u2013") if by == "num_gpus" else clean(row[by])
    return (label, count(row["n"]), *_numbers(row))


def _numbers(row: dict[str, Any]) -> tuple[str, ...]:
    return tuple(measurement(row[key]) for key in ("mean", "p50", "p90", "max"))


def measurement(value: float | None) -> str:
    r"""Return a measurement in few characters, whatever its unit.

    >>> measurement(97.5), measurement(4335301032.0), measurement(None)
    ('97.5', '4.34e9', '\u2013')
    """
    if value is None or abs(value) < _LARGE:
        return number(value)
    digits, power = f"{value:.2e}".split("e")
    return f"{digits}e{int(power)}".replace("-", "\u2212")
