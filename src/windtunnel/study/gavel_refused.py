"""Which jobs Gavel's policies cannot run, and why: raised, or told where they may be rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SchemaError, Violation

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.site.conditions import Conditions
    from windtunnel.study.gavel_speeds import JobSpeeds


def refused(
    table: pa.Table,
    *,
    submit: np.ndarray,
    gangs: np.ndarray,
    speeds: JobSpeeds,
    capacity: np.ndarray,
    parts: bool,
    conditions: Conditions,
) -> dict[int, str]:
    """Return why some jobs are not flown, by row.

    Args:
        table: jobs table.
        submit: submission times, s, NaN = unknown; shape (rows,).
        gangs: GPUs of each job, NaN = unknown; shape (rows,).
        speeds: of the jobs, on the types that they accept.
        capacity: GPUs of each type, shape (types,).
        parts: whether jobs may ask for parts of GPUs.
        conditions: ``incomplete`` and ``oversize``.

    Raises:
        SchemaError: there are some, and they were not to be rejected.
    """
    reasons: dict[int, str] = {}
    asked, able = "a number of GPUs > 0", gangs > 0
    if not parts:
        asked, able = "a whole number of GPUs >= 1", (gangs >= 1) & (gangs % 1 == 0)
    for name, words, good in (
        ("submit_time", "a known number", ~np.isnan(submit)),
        ("num_gpus", asked, able),
        (speeds.column, "a known number", ~np.isnan(speeds.steps)),
    ):
        bad = np.flatnonzero(~good)
        _sort_out(table, (name, words), bad, conditions.scheduler.incomplete, reasons)
    runs = speeds.alone > 0
    nowhere = np.flatnonzero(~runs.any(axis=1))
    nowhere = np.array([row for row in nowhere.tolist() if row not in reasons], int)
    rule = ("template", "a job type with a speed, on as many GPUs, on a GPU type of the cluster")
    if speeds.column != "total_steps":
        rule = ("gpu_type", "a GPU type of the cluster")
    _sort_out(table, rule, nowhere, conditions.scheduler.incomplete, reasons)
    fits = (runs & (gangs[:, None] <= capacity)).any(axis=1)
    large = np.array([row for row in np.flatnonzero(~fits).tolist() if row not in reasons], int)
    rule = ("num_gpus", "at most the GPUs of a type on which the job runs")
    _sort_out(table, rule, large, conditions.scheduler.oversize, reasons)
    return reasons


def _sort_out(
    table: pa.Table,
    rule: tuple[str, str],
    rows: np.ndarray,
    ask: str,
    reasons: dict[int, str],
) -> None:
    """Raise for rows whose column breaks a rule, or note the reason; ``rule``: column, words."""
    if not len(rows):
        return
    column, words = rule
    value = table[column][int(rows[0])].as_py()
    if ask == "raise":
        found = Violation(column, words, len(rows), int(rows[0]) + 1, value, "row")
        raise SchemaError("jobs", [found])
    for row in rows.tolist():
        reasons[row] = f"column {column}: expected {words}"
