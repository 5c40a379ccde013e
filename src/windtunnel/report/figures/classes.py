"""Who waits, who runs long, who asks for what: PAI figures 4 and 5, by class of jobs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windtunnel.characterize.cdf import POWERS_DURATION, count_cdf
from windtunnel.characterize.population import NONE, SHARING
from windtunnel.characterize.relation import column_names, relation, rows
from windtunnel.characterize.spread import quantile_curve
from windtunnel.characterize.tasks import ASSIGNED, class_shares, run_times_by_type
from windtunnel.characterize.waits import waited_share_cdf
from windtunnel.report.chart.axes import fractions, numbers, percent, seconds
from windtunnel.report.figures.collecting import (
    Answer,
    Lacking,
    Measure,
    across,
    counted,
    with_columns,
    within,
)
from windtunnel.report.figures.durations import time_axis
from windtunnel.report.figures.panels import Plan, bars, by_panel, curves, framed
from windtunnel.report.format import plural
from windtunnel.report.names import labels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Look, Series

#: Classes in one panel; the smaller ones are drawn as one.
MOST = 8
#: Thresholds of wait / completion time.
_RATIOS = tuple(i / 50 for i in range(51))
#: What jobs without the property are called in a figure.
UNRECORDED = "not recorded"


def _draw_run_times(table: pa.Table, look: Look) -> Any:
    """Return the chart of quantiles: ordinate 100 i / (n - 1), as the PAI notebook draws it."""
    longest = max(row["value"] for row in table.to_pylist())
    high = 2.0 ** max(len(bin(int(longest))) - 2, 6)

    def panel(rows: list[Row], **how: Any) -> Any:
        shown = [{**row, "value": max(row["value"], 1.0)} for row in rows]
        x = seconds("value", "Run time, s to days (log; up to 1 s on the edge)", (1.0, high))
        return curves(shown, look, x=x, y=percent(), series="trace", **how)

    return framed(table, look, panel)


#: The run time at each percent of the jobs: PAI figure 4, beside Philly.
RUN_TIMES = Plan(
    across(
        Measure(
            "Run time of all jobs",
            lambda s: counted(quantile_curve(s.trace.jobs, "duration")),
            "no job has a run time",
        )
    ),
    _draw_run_times,
)


def _halves(series: Series) -> Answer:
    table = waited_share_cdf(series.trace.jobs, _RATIOS)
    answer = counted(table, "half", lacking="run time", fact="wait or end")
    last = {row["half"]: row["n"] - row["count"] for row in answer.table.to_pylist()}
    beyond = sum(last.values())
    if not beyond:
        return answer
    note = f"{plural(beyond, 'job')} beyond 1: by the source they end before they start."
    return replace(answer, notes=(*answer.notes, note))


def _half_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    named = [{**row, "half": f"{row['half']} half"} for row in rows]
    x = fractions("x", "Wait / completion time (line: half of it)")
    return curves(named, look, x=x, y=percent(), series="half", guides=(0.5,), **how)


#: Wait / completion time of the shorter and the longer half of the jobs.
WAITS_BY_HALF = Plan(
    within(Measure("wait by run time", _halves, "no job has both a wait and an end")),
    by_panel(_half_panel),
)


def _waits(series: Series, by: str, where: str) -> Answer:
    table = count_cdf(series.trace.jobs, "wait", POWERS_DURATION, by=by, where=where)
    if by == "sharing":
        table = with_unit(table, by)
    return counted(pooled(table, by), by, keep_none=True)


def _names_of(groups: Sequence[str]) -> list[str]:
    """Return harmless names of groups, none of them `UNRECORDED`, which a trace may use, too."""
    return labels([UNRECORDED, *groups])[1:]


def with_unit(table: pa.Table, by: str) -> pa.Table:
    """Return a table with its classes of GPUs asked per task as they are read: ``1 GPU``."""
    names = [name if name in (NONE, "no GPU") else f"{name} GPU" for name in table[by].to_pylist()]
    return with_columns(table, **{by: pa.array(names, pa.string())})


def _typed_waits(series: Series) -> Answer:
    return _as_type(_waits(series, gpu_type_of(series.trace.jobs), "gpu"))


def gpu_type_of(jobs: pa.Table) -> str:
    """Return the column that tells the type of a job's GPUs: assigned, else asked for.

    Raises:
        Lacking: no job tells.
    """
    for name in (ASSIGNED, "gpu_type"):
        if name in column_names(jobs):
            table = relation(jobs, (name,))
            (known,) = rows(table.aggregate(n=table[name].count()))
            if known["n"]:
                return name
    raise Lacking("no job tells a GPU type")


def _as_type(answer: Answer) -> Answer:
    """Return an answer with its groups in a column ``gpu_type``."""
    names = ["gpu_type" if name == ASSIGNED else name for name in answer.table.column_names]
    return replace(answer, table=answer.table.rename_columns(names))


def pooled(table: pa.Table, by: str, most: int = MOST) -> pa.Table:
    """Return the CDF counts of groups with harmless names, the smaller groups as one.

    Args:
        table: of `windtunnel.characterize.cdf.count_cdf`, with ``by``.
        by: the column of the groups.
        most: groups that are left.
    """
    found = table.to_pylist()
    sizes = {row[by]: row["n"] for row in found if row["n"]}
    real = [name for name in sizes if name != NONE]
    names = dict(zip(real, _names_of(real), strict=True)) | {NONE: UNRECORDED}
    if len(real) > most:
        kept = set(sorted(real, key=lambda name: -sizes[name])[: most - 1])
        names |= {name: f"{len(real) - len(kept)} others" for name in real if name not in kept}
    sums: dict[tuple[str, float], Row] = {}
    for row in found:
        if not row["n"]:
            continue
        key = (names[row[by]], row["x"])
        if key not in sums:
            sums[key] = {**row, by: key[0]}
            continue
        for count in ("count", "n", "left_out", "unsized"):
            sums[key][count] += row[count]
    order = list(dict.fromkeys(name for name, _ in sums))
    order.sort(key=lambda name: name.endswith(" others") or name == UNRECORDED)
    merged = sorted(sums.values(), key=lambda row: (order.index(row[by]), row["x"]))
    for row in merged:
        row["percent"] = 100.0 * row["count"] / row["n"]
    return pa.Table.from_pylist(merged, schema=table.schema)


def _times(series: str, noun: str) -> Callable[[pa.Table, Look], Any]:
    def panel(rows: list[Row], look: Look, **how: Any) -> Any:
        return curves(rows, look, x=time_axis(rows, noun), y=percent(), series=series, **how)

    return by_panel(panel)


def _typed_run_times(series: Series) -> Answer:
    jobs = series.trace.jobs
    by = gpu_type_of(jobs)
    known = jobs if by == ASSIGNED else jobs.drop_columns(_extras(jobs))
    table = run_times_by_type(known)
    others = table["other_status"][0].as_py() if table.num_rows else 0
    answer = counted(pooled(table.drop_columns(["other_status"]), by), by, keep_none=True)
    why = f"{others:,} jobs that did not complete" if others else ""
    return _as_type(Answer(answer.table, answer.n, answer.left_out + others, why))


def _extras(jobs: pa.Table) -> list[str]:
    """Return the columns that would stand in for ``gpu_type`` although they say nothing."""
    return [ASSIGNED] if ASSIGNED in jobs.column_names else []


#: Waits by the GPUs that one task asks for, and by the GPU type assigned, else asked for; run times
#: of completed GPU jobs by that type.
WAITS_BY_REQUEST = Plan(
    within(
        Measure(
            "wait by GPUs asked per task",
            partial(_waits, by="sharing", where="all"),
            "no job has a wait",
        )
    ),
    _times("sharing", "Wait"),
)
WAITS_BY_GPU_TYPE = Plan(
    within(Measure("wait by GPU type", _typed_waits, "no GPU job has a wait")),
    _times("gpu_type", "Wait"),
)
RUN_TIMES_BY_GPU_TYPE = Plan(
    within(
        Measure("run time by GPU type", _typed_run_times, "no completed GPU job has a run time")
    ),
    _times("gpu_type", "Run time"),
)


def _request_shares(series: Series) -> Answer:
    table = class_shares(series.trace.jobs, by="sharing")
    return _shares(with_unit(table, "sharing"), "sharing")


def _type_shares(series: Series) -> Answer:
    by = gpu_type_of(series.trace.jobs)
    return _shares(class_shares(series.trace.jobs, by=by), by)


def _shares(table: pa.Table, by: str) -> Answer:
    """Return the shares with the class in a column ``class``, the smaller classes as one."""
    found = [row for row in table.to_pylist() if row["num_jobs"]]
    n = found[0]["n"] if found else 0
    real = [row for row in found if row[by] != NONE]
    kept = real
    if len(real) > MOST:
        kept = sorted(real, key=lambda row: -row["num_jobs"])[: MOST - 1]
    names = _names_of([row[by] for row in kept])
    counts = dict(zip(names, [row["num_jobs"] for row in kept], strict=True))
    rest = sum(row["num_jobs"] for row in real) - sum(counts.values())
    if rest:
        counts[f"{len(real) - len(kept)} others"] = rest
    unrecorded = sum(row["num_jobs"] for row in found if row[by] == NONE)
    if unrecorded:
        counts[UNRECORDED] = unrecorded
    drawn = [
        {"class": name, "num_jobs": jobs, "percent": 100 * jobs / n, "n": n, "left_out": 0}
        for name, jobs in counts.items()
    ]
    return Answer(pa.Table.from_pylist(drawn), n, 0)


def _draw_shares(table: pa.Table, look: Look) -> Any:
    classes = table["class"].to_pylist()

    def panel(rows: list[Row], **how: Any) -> Any:
        value = numbers("percent", "% of GPU jobs")
        return bars(
            _complete(rows),
            look,
            value=value,
            line="class",
            series="trace",
            text=lambda v: f"{v:.1f}",
            all_names=classes,
            **how,
        )

    return framed(table, look, panel)


def _complete(found: list[Row]) -> list[Row]:
    """Return the rows with classes in one order over all traces, the catch-alls last."""
    names = list(dict.fromkeys(row["class"] for row in found))
    known = [name if name == "no GPU" else f"{name} GPU" for name in SHARING]
    names.sort(
        key=lambda name: (
            name == UNRECORDED,
            name.endswith(" others"),
            known.index(name) if name in known else 0,
        )
    )
    return sorted(found, key=lambda row: names.index(row["class"]))


#: The share of GPU jobs by GPUs asked per task, and by GPU type.
SHARES = Plan(
    across(
        Measure("GPU jobs by GPUs asked per task", _request_shares, "there is no GPU job"),
        Measure("GPU jobs by GPU type", _type_shares, "there is no GPU job"),
    ),
    _draw_shares,
)
