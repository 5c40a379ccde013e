"""Asked for and used: PAI figure 6, the tasks that use more than they asked for, and figure 8."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.characterize.overuse import jobs_against_use, requests_against_use
from windtunnel.characterize.relation import known_columns
from windtunnel.characterize.requests import RESOURCES, request_use_cdfs
from windtunnel.characterize.slowdown import node_load_cdfs
from windtunnel.report.chart.axes import Axis, numbers, percent, powers
from windtunnel.report.figures.collecting import Answer, Lacking, Measure, across, within
from windtunnel.report.figures.panels import Plan, bars, by_panel, curves, framed
from windtunnel.report.format import plural

if TYPE_CHECKING:
    from windtunnel.report.figures.panels import Row
    from windtunnel.report.figures.sources import Look, Series

#: resource -> what it is called, and the unit of its axis.
_RESOURCES = {
    "cpu": ("CPU", "CPU cores of the task (log)"),
    "gpu": ("GPU", "GPUs of the task (log)"),
    "mem": ("memory", "Memory of the task, GiB (log)"),
}
_LOADS = {
    "machine_cpu": "CPU, all",
    "machine_cpu_usr": "CPU, user",
    "machine_cpu_kernel": "CPU, kernel",
    "machine_cpu_iowait": "CPU, I/O wait",
    "machine_gpu": "GPU",
}
#: Words of the tables as a note says them.
_WORDS = {"gpu_mem": "GPU memory", "use": "used", "request": "asked", "network": "read, Gbit/s"}
_WORDS |= {"cpu": "CPU cores", "gpu": "GPUs", "mem": "GiB of memory"}
_WORDS |= {name: f"load of the node, {text}, %" for name, text in _LOADS.items()}
#: An axis leaves out where curves have risen by less than this, or lack less than the other, %.
_HARDLY_ANY, _ALMOST_ALL = 0.5, 99.9
#: How the notebook adds up a job's tasks.
_AS_PUBLISHED = (
    "a job is the sum of its tasks of which any use is known, what is unknown of them counting as "
    "0, as the published numbers are."
)
_NO_TASKS = "the trace has no tasks table"


def tasks_of(series: Series) -> Any:
    """Return a trace's tasks table.

    Raises:
        Lacking: it has none.
    """
    if series.trace.tasks is None:
        raise Lacking(_NO_TASKS)
    return series.trace.tasks


def _asked_and_used(series: Series, resource: str) -> Answer:
    table = series.once("request_use", partial(request_use_cdfs, tasks_of(series)))
    mine = [resource, "gpu_mem"] if resource == "mem" else [resource]
    part = table.filter(pc.is_in(table["resource"], value_set=pa.array(mine)))
    part = part.filter(pc.greater(part["n"], 0))
    if not part.num_rows:
        return Answer(part, 0, 0)
    firsts = {(row["resource"], row["kind"]): row for row in part.to_pylist()}
    n = max(row["n"] for row in firsts.values())
    left_out = min(row["left_out"] for row in firsts.values())
    return Answer(part, n, left_out, notes=_beyond(part, "resource", "kind"))


def _asked_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    names = {"request": "asked", "use": "used"}
    first = _RESOURCES.get(rows[0]["resource"], _RESOURCES["mem"])
    named = [
        {**row, "kind": "GPU memory used" if row["resource"] == "gpu_mem" else names[row["kind"]]}
        for row in rows
    ]
    low, high = _where_it_rises(named, "kind")
    x = powers("x", first[1], (low, high * 2), 10)
    shown = [row for row in named if row["x"] >= low]
    return curves(shown, look, x=x, y=percent(title="CDF, % of tasks"), series="kind", **how)


def _where_it_rises(rows: list[Row], series: str) -> tuple[float, float]:
    """Return from where to where curves rise, at least a factor of 4, on a logarithmic axis."""
    ends: list[float] = []
    for name in dict.fromkeys(row[series] for row in rows):
        curve = [(row["x"], row["percent"]) for row in rows if row[series] == name and row["x"] > 0]
        below = [x for x, percent in curve if percent <= _HARDLY_ANY]
        above = [x for x, percent in curve if percent >= _ALMOST_ALL]
        ends += [below[-1] if below else curve[0][0], above[0] if above else curve[-1][0]]
    high = max(ends)
    return min(*ends, high / 4), high


def _beyond(table: pa.Table, *columns: str) -> tuple[str, ...]:
    """Return a note for each curve that has not reached all its tasks at its last point."""
    last = {tuple(row[name] for name in columns): row for row in table.to_pylist()}
    return tuple(
        f"{' '.join(_WORDS.get(word, word) for word in names)}: "
        f"{plural(row['n'] - row['count'], 'task')} beyond the last point, {row['x']:,g}."
        for names, row in last.items()
        if row["count"] < row["n"]
    )


def _overuse(series: Series, unit: Any) -> Answer:
    tasks = tasks_of(series)
    as_published = False
    if unit == "task":
        table = requests_against_use(tasks)
    else:
        table, as_published = jobs_against_use(tasks, series.trace.nodes)
    # The published sums count what is unknown as 0; of what nobody knows anything there is no bar.
    known = known_columns(tasks, [name for r in RESOURCES for name in (r.asked, r.used)])
    both = [r.name for r in RESOURCES if {r.asked, r.used} <= known]
    table = table.filter(pc.is_in(table["resource"], value_set=pa.array(both, pa.string())))
    table = table.filter(pc.greater(table["n"], 0))
    found = table.to_pylist()
    if not found:
        return Answer(table, 0, 0)
    names = [_RESOURCES[row["resource"]][0] for row in found]
    part = pa.table(
        {
            "resource": pa.array(names, pa.string()),
            **{name: table[name] for name in ("over", "under")},
            "percent": pc.multiply(table["over_share"], 100.0),
            **{name: table[name] for name in ("n", "left_out")},
        }
    )
    reasons = "; ".join(dict.fromkeys(row["why"] for row in found if row["why"]))
    notes = (_AS_PUBLISHED,) if as_published else ()
    return Answer(part, max(row["n"] for row in found), found[0]["left_out"], reasons, notes)


def _draw_overuse(table: pa.Table, look: Look) -> Any:
    found = [{**row, "line": f"{row['resource']} (n = {row['n']:,})"} for row in table.to_pylist()]
    lone = len({row["trace"] for row in found}) == 1
    line = "line" if lone else "resource"
    order = [name for name, _ in _RESOURCES.values()]

    def panel(rows: list[Row], **how: Any) -> Any:
        noun = "tasks" if rows[0]["title"].startswith("Task") else "jobs"
        named = [row for row in found if row["panel"] == rows[0]["panel"]]
        named.sort(key=lambda row: order.index(row["resource"]))
        return bars(
            named,
            look,
            value=numbers("percent", f"% of {noun} that use more than asked"),
            line=line,
            series="trace",
            text=lambda v: f"{v:.2f}",
            all_names=[row[line] for row in found],
            **how,
        )

    return framed(table, look, panel)


def _loads(series: Series, *, network: bool) -> Answer:
    tasks = tasks_of(series)
    if not known_columns(tasks, ("read", *_LOADS)):
        raise Lacking("the tasks table has no measurements of nodes and network")
    table = series.once("node_load", partial(node_load_cdfs, tasks))
    is_network = pc.equal(table["value"], "network")
    part = table.filter(is_network if network else pc.invert(is_network))
    part = part.filter(pc.greater(part["n"], 0)).rename_columns({"value": "metric"})
    if not part.num_rows:
        return Answer(part, 0, 0)
    n, left_out = max(part["n"].to_pylist()), min(part["left_out"].to_pylist())
    return Answer(part, n, left_out, notes=_beyond(part, "metric"))


def _load_panel(rows: list[Row], look: Look, **how: Any) -> Any:
    if rows[0]["metric"] == "network":
        low, high = _where_it_rises(rows, "metric")
        x = powers("x", "Network read, Gbit/s (log)", (low, high * 2), 10)
        shown = [{**row, "metric": "read"} for row in rows if row["x"] >= low]
    else:
        x = Axis("x", "Load of the node, %", "linear", (0.0, 100.0))
        shown = [{**row, "metric": _LOADS[row["metric"]]} for row in rows]
    return curves(shown, look, x=x, y=percent(title="CDF, % of tasks"), series="metric", **how)


#: CDFs of what tasks ask for and of what they use, a panel a resource.
ASKED_AND_USED = Plan(
    within(
        *(
            Measure(
                f"{name} asked and used",
                partial(_asked_and_used, resource=resource),
                f"no task tells {name} asked for or used",
            )
            for resource, (name, _) in _RESOURCES.items()
        )
    ),
    by_panel(_asked_panel),
)
#: The share of tasks, and of jobs, that use more than they asked for.
OVERUSE = Plan(
    across(
        *(
            Measure(
                f"{noun}s that use more than they ask for",
                partial(_overuse, unit=noun.lower()),
                f"no {noun.lower()} tells both what it asked for and what it used",
            )
            for noun in ("Task", "Job")
        )
    ),
    _draw_overuse,
)
#: What tasks read over the network, and how busy the nodes were that they ran on.
NODE_LOAD = Plan(
    within(
        Measure("network", partial(_loads, network=True), "no task tells what it read"),
        Measure("load of the nodes", partial(_loads, network=False), "no task tells a load"),
    ),
    by_panel(_load_panel),
)
