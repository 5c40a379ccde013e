"""A report of a plan against failures."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.report.answer_charts import curves
from windtunnel.report.format import count, duration, plural
from windtunnel.report.names import clean
from windtunnel.report.result import Drawing, Part, Result, notes_of, subtitle_of
from windtunnel.report.sections import Cell, Fact, Line, Table, time_cell
from windtunnel.sim.disruptions.closed_forms import SERIES_FROM
from windtunnel.study.reliability import SURE, with_interval

if TYPE_CHECKING:
    from windtunnel.study.reliability import Choice, Plan
    from windtunnel.traces.trace import Trace

_MEASURES = ("goodput", "ettr", "owned")
_THEORY = {
    "Young": "Young, 1974: sqrt(2 x cost x MTTF)",
    "Daly": "Daly, 2006, of a higher order",
    "Tc": "of best availability: sqrt(2 (Tf + Tr) Ts + Ts\u00b2)",
}


def reliability_answer(found: Plan, trace: Trace, gpus_per_node: int) -> Result:
    """Return the answer to "how often to save, how many spares, which nodes to drain?"."""
    best, flights = found.best, found.flights[found.best]
    goodput = with_interval(flights.goodput)
    nodes = plural(best.spares, "spare node")
    headline = (
        f"Save every {duration(best.interval)} of work and hold {nodes}: "
        f"{_share(goodput[0])} of the GPU time held makes progress"
        f"{_goal(found)}."
    )
    if found.drainable:
        names = ", ".join(str(node) for node in found.drainable[: best.drained])
        headline += f" Drain node{'s' * (best.drained > 1)} {names}." if names else (
            " Draining the nodes that fail most does not help."
        )  # fmt: skip
    gang = found.gang
    facts = [
        Fact("Work between checkpoints", duration(best.interval),
             note=f"{duration(found.good[0])} to {duration(found.good[1])} within 1 %"),
        Fact("Spare nodes", count(best.spares),
             note="" if found.spares is None else f"theory: {count(found.spares)}"),
        Fact("Goodput", _share(goodput[0]), note=_span(goodput)),
        Fact("Mean time to failure", duration(gang.mttf),
             note=f"of {count(gang.nodes)} nodes, by their rate"),
    ]  # fmt: skip
    repeats = plural(len(flights.goodput), "flight")
    notes = [
        f"{repeats} of each choice with the same failures; intervals are 95 %, of the mean.",
        "Spare nodes are nodes more than there are; any job may run there.",
    ]
    if gang.nodes * gpus_per_node < SERIES_FROM:
        notes.append(
            f"Theory takes a job to fail as often as all its nodes together; below about "
            f"{count(SERIES_FROM)} GPUs that was measured wrong (RSC-1: 7.9 h at 1,024 GPUs, where "
            "it says 28.8 h). Flights take the same rates."
        )
    if found.now is None:
        notes.append("Without checkpoints, as things are described, nothing was flown.")
    parts = [_intervals(found), _numbers(found, "spares")]
    if found.drainable:
        parts.append(_numbers(found, "drained"))
    return Result(
        title=f"Plan against failures: {clean(trace.name, 80)}",
        subtitle=subtitle_of(trace),
        headline=headline,
        facts=facts,
        parts=parts,
        notes=notes_of(trace, notes),
    )


def reliability_data(found: Plan) -> dict[str, Any]:
    """Return it as plain data.

    Keys: ``interval`` (s), ``interval_low``, ``interval_high`` (within 1 % of the best goodput),
    ``spares``, ``spares_in_theory``, ``drained`` (nodes), ``theory`` (word -> s), ``mttf`` (s, of
    the job), ``goal`` and ``tried``: a row a choice with ``interval``, ``spares``, ``drained`` (how
    many) and ``goodput``, ``ettr``, ``owned`` each with ``_low`` and ``_high``, ``late`` (share of
    the flights that miss the deadline, null without one).
    """
    best = found.best
    return {
        "interval": best.interval,
        "interval_low": found.good[0],
        "interval_high": found.good[1],
        "spares": best.spares,
        "spares_in_theory": found.spares,
        "drained": list(found.drainable[: best.drained]),
        "theory": found.intervals,
        "mttf": found.gang.mttf,
        "goal": None if found.goal is None else dict([found.goal]),
        "best": _row(found, best),
        "now": None if found.now is None else _row(found, found.now),
        "tried": [_row(found, choice) for choice in sorted(found.flights)],
    }


def _row(found: Plan, choice: Choice) -> dict[str, Any]:
    flights = found.flights[choice]
    row: dict[str, Any] = choice._asdict()
    for name in _MEASURES:
        ends = with_interval(getattr(flights, name))
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    is_late = found.goal is not None and found.goal[0] == "deadline"
    row["late"] = float((flights.end > found.goal[1]).mean()) if is_late and found.goal else None
    return row


def _share(value: float) -> str:
    """Return a share to a tenth of a percent: neighbours differ by less than one."""
    return f"{100 * value:.1f} %"


def _goal(found: Plan) -> str:
    if found.goal is None:
        return ""
    name, value = found.goal
    row = _row(found, found.best)
    if name == "ettr":
        return f", {_share(row['ettr'])} of the time since submission, {_share(value)} wanted"
    return (
        f", and {_share(1 - row['late'])} of the flights end within {duration(value)}, "
        f"{_share(SURE)} wanted"
    )


def _span(ends: tuple[float, float, float]) -> str:
    return f"{_share(ends[1])} to {_share(ends[2])}" if ends[1] < ends[2] else ""


def _cells(row: dict[str, Any], names: tuple[str, ...] = _MEASURES) -> list[Cell]:
    return [
        Cell(_share(row[name]), note=_span((row[name], row[f"{name}_low"], row[f"{name}_high"])))
        for name in names
    ]


def _intervals(found: Plan) -> Part:
    """Return the intervals that were tried, with theory's words for those that are its own."""
    searched = [c for c in found.flights if c != found.now and not c.drained]
    first = next(iter(searched)).spares
    rows = [_row(found, c) for c in sorted(searched) if c.spares == first]
    if found.now is not None:
        rows.append(_row(found, found.now))
    lines = []
    for row in rows:
        is_now = row is rows[-1] and found.now is not None
        mark = " (now)" if is_now else " (best)" if row["interval"] == found.best.interval else ""
        lines.append(Line(f"{duration(row['interval'])}{mark}", _cells(row, _MEASURES[:2])))
    words = [Line(label, [time_cell(found.intervals[key])]) for key, label in _THEORY.items()]
    theory = Table("Formula", ["work between checkpoints"], words)
    flown = [row for row in rows if found.now is None or row is not rows[-1]]
    points = [{"name": "flown", "at": row["interval"] / 60, "share": 100 - 100 * row["goodput"]}
              for row in flown]  # fmt: skip
    titles = {"x_title": "Work between checkpoints, min", "y_title": "No progress, %"}
    drawing = Drawing(
        "intervals",
        "GPU time without progress, by checkpoint interval",
        f"n = {plural(len(found.flights[found.best].goodput), 'flight')} a point.",
        partial(curves, points, x="at", y="share", names=["flown"], **titles),
    )
    table = Table("Work between checkpoints", ["goodput", "ETTR"], lines)
    return Part(
        "How often to save",
        "The interval of the best goodput; the curve is flat near its top.",
        [("Checkpoint intervals flown", table), ("Checkpoint intervals by theory", theory)],
        [drawing] if len(flown) > 1 else [],
    )


def _numbers(found: Plan, name: str) -> Part:
    """Return the numbers of spare or drained nodes that were tried at the best interval."""
    other = "drained" if name == "spares" else "spares"
    fixed = 0 if other == "drained" else found.best.spares
    choices = [
        choice
        for choice in sorted(found.flights)
        if choice.interval == found.best.interval and getattr(choice, other) == fixed
    ]
    lines = []
    for choice in choices:
        row = _row(found, choice)
        mark = " (chosen)" if getattr(choice, name) == getattr(found.best, name) else ""
        cells = _cells(row)
        if row["late"] is not None:
            cells.append(Cell(_share(row["late"])))
        lines.append(Line(f"{count(getattr(choice, name))}{mark}", cells))
    columns = ["goodput", "ETTR", "of all nodes\u2019 time"]
    columns += ["late"] * (found.goal is not None and found.goal[0] == "deadline")
    if name == "drained":
        title, corner, caption = "Which nodes to drain", "Drained", "Drained nodes flown"
        lead = "Nodes that a failure model names are drained, the one that fails most first."
    else:
        title, corner, caption = "How many spares", "Spare nodes", "Spare nodes flown"
        lead = (
            "The fewest that reach the goal."
            if found.goal is not None
            else "No goal was given: as many as let all nodes, spare ones included, do most work."
        )
    return Part(title, lead, [(caption, Table(corner, columns, lines))])
