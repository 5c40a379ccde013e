"""Tables for a terminal: the page's numbers as rich renderables. Nothing here prints.

Every text is put in as `rich.text.Text`, never as markup, and names are cleaned of control
characters first, so that a trace can neither colour nor rewrite somebody's terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report import measures, power_measures, sections
from windtunnel.report.curves import named
from windtunnel.report.names import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from windtunnel.energy.account import Account
    from windtunnel.sim.outcome import Outcome

#: Verdict -> style; arrows and words carry the meaning where there is no colour.
_STYLES = {"better": "green", "worse": "red", "neutral": "dim", "same": "dim", "unknown": "dim"}
#: Up to so many runs, waits by size show more than their mean.
_FEW = 2
#: Metrics of one run that a terminal shows, in order; a page shows them all.
_SHORT: tuple[str, ...] = (
    *("avg_jct", "p50_jct", "p90_jct", "p99_jct"),
    *("avg_wait", "p50_wait", "p90_wait", "p99_wait", "max_wait", "num_waited"),
    *("num_missed_deadlines", "slo_attainment", "avg_tardiness"),
    *("avg_bounded_slowdown", "utilization", "makespan", "gpu_time", "num_preemptions"),
    *("reconfigurations_per_job", "penalty_gpu_time", "promises_kept_running"),
    *("jain_user", "jain_vc"),
    *("num_failures", "num_restarts", "lost_gpu_time"),
    *("num_jobs", "num_finished", "num_failed", "num_running", "num_waiting", "num_rejected"),
)


def outcome_table(outcome: Outcome, title: str = "") -> Table:
    """Return one run in numbers, a metric a row.

    Args:
        outcome: the run.
        title: heading; the policy's name where empty.
    """
    metrics = outcome.metrics()
    table = _table(title or str(outcome.settings.get("policy", "run")))
    table.add_column("metric", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    for key in _rows([metrics]):
        measure = measures.BY_KEY[key]
        table.add_row(_text(measure.label), _text(measure.text(metrics[key])))
    for measure in measures.own([outcome]):
        table.add_row(_text(measure.label), _text(measure.text(metrics[measure.key])))
    return table


def comparison_table(outcomes: Mapping[str, Outcome], title: str = "") -> Table:
    """Return runs side by side, each metric with its difference to the first run.

    Args:
        outcomes: run name -> outcome, in order.
        title: heading; empty for none.
    """
    runs = [outcome.metrics() for outcome in outcomes.values()]
    shown = [measures.BY_KEY[key] for key in _rows(runs)]
    return _side_by_side(outcomes, runs, [*shown, *measures.own(outcomes.values())], title)


def energy_table(
    outcomes: Mapping[str, Outcome], books: Mapping[str, Account], title: str = "Energy"
) -> Table:
    """Return the energy of runs side by side, each number with its difference to the first run.

    Args:
        outcomes: run name -> outcome, in order.
        books: run name -> its energy, the same runs.
        title: heading; empty for none.
    """
    runs = [power_measures.numbers_of(book) for book in books.values()]
    return _side_by_side(outcomes, runs, power_measures.shown(runs), title)


def _side_by_side(
    outcomes: Mapping[str, Outcome],
    runs: list[dict[str, Any]],
    shown: list[measures.Measure],
    title: str,
) -> Table:
    table = _table(title)
    table.add_column("", no_wrap=True)
    for name, _ in named(outcomes):
        table.add_column(_text(name), justify="right")
    for measure in shown:
        key = measure.key
        cells = [_text(measure.label)]
        for index, run in enumerate(runs):
            cell = _text(measure.text(run.get(key)))
            if index:
                change = measures.difference(measure, runs[0].get(key), run.get(key))
                if change.text:
                    cell.append(f"\n{change.words}", style=_STYLES[change.verdict])
            cells.append(cell)
        table.add_row(*cells)
    return table


def size_table(outcomes: Mapping[str, Outcome], title: str = "Waits by job size") -> Table:
    """Return waits by job size, runs across; much longer ones are marked with ``!``.

    One or two runs show mean and P90, more show the mean only: a terminal is narrow.

    Args:
        outcomes: run name -> outcome, in order; "much longer" is against the first.
        title: heading; empty for none.
    """
    data = sections.sizes_table(outcomes)
    table = _table(title)
    table.add_column(data.corner, no_wrap=True)
    table.add_column(data.lead[0], justify="right", no_wrap=True)
    width = len(data.under)
    shown = width if len(data.columns) <= _FEW else 1
    for name in data.columns:
        for under in data.under[:shown]:
            heading = _text(name)
            heading.append(f"\n{under}", style="dim")
            table.add_column(heading, justify="right")
    for line in data.lines:
        cells = [_text(line.label), _text(line.cells[0].text)]
        for index, cell in enumerate(line.cells[len(data.lead) :]):
            if index % width >= shown:
                continue
            text = _text(cell.text)
            if cell.marked:
                text.append(f"\n! {cell.note}", style="red")
            cells.append(text)
        table.add_row(*cells)
    return table


def overview_table(overview: Mapping[str, Any], title: str = "") -> Table:
    """Return a trace in numbers.

    Args:
        overview: what `windtunnel.characterize.overview` returned.
        title: heading (the trace's name); empty for none.
    """
    return _facts(sections.trace_facts(overview), title)


def _facts(facts: list[sections.Fact], title: str) -> Table:
    table = _table(title)
    table.add_column("fact", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("notes", style="dim")
    for fact in facts:
        table.add_row(_text(fact.label), _text(fact.text), _text(fact.note) if fact.note else "")
    return table


def _rows(runs: list[dict[str, Any]]) -> list[str]:
    shown = {measure.key for measure in measures.shown(runs)}
    return [key for key in _SHORT if key in shown]


def _text(text: str) -> Any:
    """Return untrusted text as a rich text: no markup is read in it, no control is left in it."""
    from rich.text import Text

    return Text(clean(text, 120) if text else "")


def _table(title: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    heading = _text(title) if title else None
    return Table(title=heading, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
