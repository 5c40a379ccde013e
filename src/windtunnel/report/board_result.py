"""A report of the board: the leaderboard, and a card a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.board.cards import BASELINES, ONLINE
from windtunnel.board.record import ABSENT
from windtunnel.board.scenarios import BY_NAME, LATE, MEASURES, SCENARIOS, WINDOW
from windtunnel.plain import fields_of
from windtunnel.report.format import count
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.result import Part, Result, table_of
from windtunnel.report.sections import Cell, Line, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.board.bench import Bench
    from windtunnel.board.cards import Card, Row
    from windtunnel.study.statistics import Interval


def board_result(found: Bench) -> Result:
    """Return policies on the board as a result."""
    whole = len(found.board[0].rows) == len(SCENARIOS)
    title = f"{found.version}: {', '.join(clean(c.policy, 60) for c in found.cards) or 'the board'}"
    parts = [
        Part(
            f"Card of {clean(one.policy, 60)}",
            _finding(one),
            [("Scenario by scenario", card_table(one))],
            tells=True,
        )
        for one in found.cards
    ]
    board = Part(
        "The board",
        "Score: geometric mean of value / lower bound over the scenarios; 1 cannot be beaten. "
        "Against: geometric mean of the ratios to that baseline, with its 95 % interval.",
        [("Online policies first", board_table(found))],
        tells=True,
    )
    scenarios = Part(
        "The scenarios",
        tables=[("What is measured", scenario_table())],
        points=[f"{word}: {meaning}." for word, meaning in MEASURES.items()],
        page_only=True,
    )
    return Result(
        title,
        " ".join(_headline(one, whole=whole) for one in found.cards) or _leader(found),
        parts=[*parts, board, scenarios],
        cautions=[] if whole else ["Some of the scenarios only: this is no score of the board."],
        notes=_notes(found),
        data=bench_data(found),
    )


def _notes(found: Bench) -> list[str]:
    seeds = ", ".join(map(str, found.seeds))
    again = ""
    if found.holdout is not None:
        again = f" They are drawn from {found.holdout}: --holdout {found.holdout} flies them again."
    return [
        f"Measured: the jobs submitted inside {WINDOW}; all are flown. Seeds: {seeds}.{again}",
        "Clairvoyant: it decided otherwise in a world that differs only later.",
        *(f"Not on the board: {name} ({why})." for name, why in ABSENT.items()),
    ]


def bench_data(found: Bench) -> dict[str, Any]:
    """Return the bench as plain data.

    Keys: ``version``, ``seeds``, ``holdout``, ``score`` (of the first policy asked for; null
    without one), ``cards`` and ``board`` (lists: ``policy``, ``class``, ``found``, ``score``,
    ``num_flown``, ``overall`` (baseline -> ``ratio``, ``low``, ``high``), ``scenarios`` (list:
    ``scenario``, ``measure``, ``value``, ``bound``, ``ratio``, ``best``, ``best_by``, ``changes``,
    ``reason``)).
    """
    return {
        "version": found.version,
        "seeds": list(found.seeds),
        "holdout": found.holdout,
        "score": found.cards[0].score if found.cards else None,
        "cards": [_card_data(one) for one in found.cards],
        "board": [_card_data(one) for one in found.ranked],
    }


def _card_data(one: Card) -> dict[str, Any]:
    rows = [
        {
            "scenario": row.scenario,
            "measure": BY_NAME[row.scenario].measure,
            **fields_of(row, "value", "bound", "ratio", "best", "best_by", "reason"),
            "changes": {name: _interval(change) for name, change in row.changes.items()},
        }
        for row in one.rows
    ]
    return {
        "policy": one.policy,
        "class": one.kind,
        **fields_of(one, "found", "score", "num_flown"),
        "overall": {name: _interval(change) for name, change in one.overall.items()},
        "scenarios": rows,
    }


def _interval(change: Interval) -> dict[str, float | None]:
    return {"ratio": change.estimate, "low": change.low, "high": change.high}


def _headline(one: Card, *, whole: bool) -> str:
    change = one.overall["easy"]
    name = clean(one.policy, 60)
    score = f"{name} scores {one.score:.3f} ({one.kind})" if whole else name
    return f"{score}: {_range(change)} times easy's values."


def _leader(found: Bench) -> str:
    online = [one for one in found.ranked if one.kind == ONLINE]
    return (
        f"Best of {count(len(online))} online policies: {online[0].policy}, {online[0].score:.3f}."
    )


def _finding(one: Card) -> str:
    if not one.found:
        return f"{one.kind}: it decided the same wherever only what is to come differed."
    return clean(f"{one.kind}: {one.found}.", MAX_TEXT)


def _range(change: Interval) -> str:
    if change.low is None or change.high is None:
        return f"{change.estimate:.3f}"
    return f"{change.estimate:.3f} ({change.low:.3f} to {change.high:.3f})"


def _cell(change: Interval) -> Cell:
    """Return a ratio, its interval under it, in one word that no terminal folds."""
    if change.low is None or change.high is None:
        return Cell(f"{change.estimate:.3f}")
    return Cell(f"{change.estimate:.3f}", note=f"{change.low:.2f}\u2013{change.high:.2f}")


def _value(row: Row, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if BY_NAME[row.scenario].measure == LATE else f"{value:,.0f}"


def card_table(one: Card) -> Table:
    """Return a card, a scenario a row."""
    columns = ["Value", "Bound", "Value / bound", "Best known", *_against()]
    lines = [
        Line(
            row.scenario,
            [
                Cell(_value(row, row.value), note="as fifo has it" if row.reason else ""),
                Cell(_value(row, row.bound)),
                Cell(f"{row.ratio:.3f}"),
                Cell(_value(row, row.best), note=row.best_by),
                *(_cell(change) for change in row.changes.values()),
            ],
            title=clean(row.reason, MAX_TEXT),
        )
        for row in one.rows
    ]
    return Table("Scenario", columns, lines)


def _against() -> list[str]:
    return [f"Against {name}" for name in BASELINES]


def board_table(found: Bench) -> Table:
    """Return the leaderboard, best first, by class."""
    asked = {one.policy for one in found.cards}
    lines = [
        Line(
            clean(one.policy, 60),
            [
                Cell(f"{one.score:.3f}", marked=one.policy in asked),
                *(_cell(change) for change in one.overall.values()),
                Cell(f"{one.num_flown}/{len(one.rows)}"),
            ],
            group=one.kind,
        )
        for one in found.ranked
    ]
    return Table("Policy", ["Score", *_against(), "Flown"], lines)


def scenario_table() -> Table:
    """Return the scenarios."""
    rows = [(s.name, s.covers, s.twin, s.cluster, f"{s.load:g}", s.measure) for s in SCENARIOS]
    columns = ("Scenario", "About", "Twin", "Cluster", "Load", "Measure")
    return table_of(columns, rows, texts=5)


def markdown(found: Bench) -> str:
    """Return the leaderboard as Markdown: scores, then each scenario's value over its bound."""
    scores = board_table(found)
    rows = [
        [line.label, line.group, *(_plain(cell) for cell in line.cells)] for line in scores.lines
    ]
    first = _grid(["Policy", "Class", *scores.columns], rows)
    ratios = [
        [one.policy, *("-" if row.reason else f"{row.ratio:.2f}" for row in one.rows)]
        for one in found.ranked
    ]
    return f"{first}\n{_grid(['Policy', *(row.scenario for row in found.board[0].rows)], ratios)}"


def _plain(cell: Cell) -> str:
    return f"{cell.text} ({cell.note})" if cell.note else cell.text


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    body = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in body)
