"""The tables of what prediction buys, as data: for the page and for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.report.curves import size_order
from windtunnel.report.effect_charts import compared, shown_names
from windtunnel.report.format import count, duration, exact_seconds, percent
from windtunnel.report.names import clean
from windtunnel.report.sections import Cell, Line, Table

if TYPE_CHECKING:
    from windtunnel.study.prediction_effect import PredictionEffect

Row = dict[str, Any]
_RUNS = (
    *("mean wait", "saved", "of the gain", "P99", "longest", "mean JCT", "in use"),
    *("big: mean", "P99", "longest", "overtaken by"),
)
_KINDS = {
    "fifo": "Without prediction",
    "shortest": "Shortest predicted first",
    "aging": "The same with aging",
    "reservation": "With reservations",
}


def runs_table(found: PredictionEffect, load: float) -> Table:
    """Return every setting at one load; what starves the big jobs is marked."""
    names = shown_names(found)
    lines = [
        Line(names[row["policy"]], _run_cells(row), group=_KINDS[row["kind"]])
        for row in found.at(load)
    ]
    return Table("Setting", list(_RUNS), lines)


def _run_cells(row: Row) -> list[Cell]:
    others = row["kind"] != "fifo"
    starves = row["starves"]
    return [
        _time(row["avg_wait"]),
        Cell(percent(row["wait_saved"]) if others else ""),
        Cell(percent(row["gain_kept"]) if others and row["kind"] != "shortest" else ""),
        *(_time(row[key]) for key in ("p99_wait", "max_wait", "avg_jct")),
        Cell(percent(row["utilization"])),
        _time(row["big_avg_wait"]),
        *(
            Cell(
                duration(row[f"big_{key}_wait"]),
                exact_seconds(row[f"big_{key}_wait"]),
                _ratio(row[f"big_{key}_ratio"]) if others else "",
                "worse" if starves else "neutral",
                marked=starves,
            )
            for key in ("p99", "max")
        ),
        Cell(count(row["big_avg_overtaken"]), f"at most {count(row['big_max_overtaken'])}"),
    ]


def sizes_table(found: PredictionEffect, load: float) -> Table:
    """Return waits and completion times by size at one load, the compared settings across."""
    names = shown_names(found)
    labels = compared(found)
    cells = {
        (row["size"], row["policy"]): row for row in found.sizes.to_pylist() if row["load"] == load
    }
    lines = []
    for size in size_order({size for size, _ in cells}):
        rows = [cells[size, label] for label in labels]
        parts = [Cell(count(rows[0]["num_jobs"]))]
        for row in rows:
            tail = f"P99 {duration(row['p99_wait'])}" if row["p99_wait"] >= 1 else ""
            wait = exact_seconds(row["avg_wait"])
            parts += [Cell(duration(row["avg_wait"]), wait, tail), _time(row["avg_jct"])]
        lines.append(Line(size.replace("-", "\u2013"), parts))
    return Table(
        "GPUs of the job",
        [names[label] for label in labels],
        lines,
        lead=["n"],
        under=["mean wait", "mean JCT"],
    )


def predictors_table(found: PredictionEffect) -> Table:
    """Return the predictors: how far off they are beside what an order by them saves."""
    saved = {
        (row["model"], row["load"]): row["wait_saved"]
        for row in found.runs.to_pylist()
        if row["kind"] == "shortest"
    }
    lines = []
    for row in found.predictions.to_pylist():
        cells = [Cell(count(row["num_predicted"]))]
        cells += [Cell(percent(row[key])) for key in ("within_25", "within_100", "median_error")]
        cells += [_time(row["mae"])]
        cells += [Cell(percent(saved[row["model"], load])) for load in found.loads]
        name = clean(row["model"]) + (" (knows the truth)" if row["peeks"] else "")
        lines.append(Line(name, cells))
    loads = [f"saves at {load:g}" for load in found.loads]
    columns = ["n", "\u2264 25 %", "\u2264 100 %", "median error", "mean error", *loads]
    return Table("Predictor", columns, lines)


def within_table(found: PredictionEffect) -> Table:
    """Return the share of predictions within 25 % by size, predictors across."""
    rows = found.within.to_pylist()
    models = list(dict.fromkeys(row["model"] for row in rows))
    cells = {(row["size"], row["model"]): row for row in rows}
    sizes = size_order({row["size"] for row in rows})
    lines = [
        Line(
            size.replace("-", "\u2013"),
            [
                Cell(count(max(cells[size, model]["n"] for model in models))),
                *(Cell(percent(cells[size, model]["within_25"])) for model in models),
            ],
        )
        for size in sizes
    ]
    return Table("GPUs of the job", ["n", *(clean(model) for model in models)], lines)


def _ratio(value: float) -> str:
    """Return a factor near 1 with two decimals: the limit is at 1.1."""
    return f"{value:,.2f}\u00d7" if value < float("inf") else "from 0 s"


def _time(seconds: float | None) -> Cell:
    return Cell(duration(seconds), exact_seconds(seconds))
