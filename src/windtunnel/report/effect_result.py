"""A report of what prediction buys: the study's tables and pictures as one result."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from windtunnel.report import effect_charts, effect_findings
from windtunnel.report.columns import rows_table
from windtunnel.report.curves import size_order
from windtunnel.report.effect_charts import compared, shown_names
from windtunnel.report.format import count, duration, exact_seconds, percent, plural, size_text
from windtunnel.report.names import MAX_TEXT, clean
from windtunnel.report.result import Drawing, Part, Result
from windtunnel.report.sections import Cell, Line, Table, time_cell
from windtunnel.study.effect_settings import TOLERANCE

if TYPE_CHECKING:
    from windtunnel.report.columns import Columns
    from windtunnel.study.prediction_effect import PredictionEffect
    from windtunnel.traces.trace import Trace


_ERRORS = (
    "Higher is better. The dotted line is at 25 %; predictors that know the truth are left out."
)
_STARVATION = (
    f"Right of the dotted line, at {TOLERANCE:g} times the wait under fifo, a dot or a stroke "
    "means that they starve."
)
_KEY = (
    "The big jobs starve: the P99 or the longest of their waits is above "
    f"{TOLERANCE:g} times that under fifo at the same load. \u201cOf the gain\u201d: what is saved "
    "over what shortest first by the same predictor saves."
)
_TRADEOFF = (
    "A number is an aging, the seconds of waiting that make up for a second of run time; the line "
    "joins fifo, the agings and sjf. Right of the dotted line the big jobs starve. What is beyond "
    "1.5 times fifo stands on the edge, a mean wait with its number."
)


def effect_result(found: PredictionEffect, trace: Trace) -> Result:
    """Return a study as a result.

    Args:
        found: the study.
        trace: where the jobs come from.
    """
    waits, errors, starvation, tradeoff = _drawings(found)
    big, n = effect_findings.big_words(found), count(found.big.members.sum())
    sizes = [
        (
            f"Load {load:g}: waits and completion times by size",
            sizes_table(found, load),
        )
        for load in found.loads
    ]
    within = ("Predictions within 25 % of the truth, by size", within_table(found))
    predictors = predictors_table(found)
    runs = [(f"Load {load:g}: every setting", runs_table(found, load)) for load in found.loads]
    parts = [
        Part("In sentences", terms=effect_findings.sentences(found), tells=True),
        Part(
            "Error beside effect",
            "Relative errors of the predictions, over the jobs that fly, and what shortest "
            "predicted first saves of the mean wait under fifo at each load.",
            [("Predictors: error and effect", predictors)],
        ),
        Part(
            "Who waits, and whose run times are known",
            "",
            [*sizes, within],
            [waits, errors],
            page_only=True,
        ),
        Part(
            "Gain and starvation",
            f"The big jobs are {big} (n = {n}). Aging and reservations go by {clean(found.model)}, "
            "the predictor that saves most of those that do not know the truth.",
            runs,
            [tradeoff, starvation],
            key=_KEY,
        ),
    ]
    loads = ", ".join(f"{load:g}" for load in found.loads)
    return Result(
        f"What prediction buys: {clean(trace.name, 80)}",
        effect_findings.headline(found),
        parts=parts,
        notes=[
            _how(found),
            *(clean(note, MAX_TEXT) for note in (*found.notes, *trace.metadata.notes)),
        ],
        subtitle=[
            clean(trace.name),
            f"{count(found.num_flown)} of {plural(trace.jobs.num_rows, 'job')}",
            plural(found.cluster.num_gpus, "GPU"),
            f"load {loads}",
        ],
    )


def _how(found: PredictionEffect) -> str:
    return (
        f"{clean(found.cluster.describe(), MAX_TEXT)}. As recorded, the jobs offer this cluster a "
        f"load of {found.natural_load:.3g}: GPU time asked for over GPU time there is while jobs "
        "are submitted. For another load all submissions are stretched about the first. Placement "
        f"{found.settings['placement']}; fifo, shortest first and aging go on past a job that does "
        "not fit."
    )


def _drawings(found: PredictionEffect) -> list[Drawing]:
    """Return the pictures; those without data are not drawn."""
    model, who = clean(found.model), effect_findings.big_words(found)
    n = count(found.big.members.sum())
    drawn: dict[str, tuple[str, str, Any]] = {
        "waits": (
            "Mean wait by size of the job",
            f"All {count(found.num_flown)} jobs that fly; n of each size is in the table below.",
            effect_charts.waits_chart,
        ),
        "errors": ("How far off the predictions are", _ERRORS, effect_charts.errors_chart),
        "starvation": (
            "Who starves the big jobs",
            f"{who[0].upper()}{who[1:]}, n = {n}. {_STARVATION}",
            effect_charts.starvation_chart,
        ),
        "tradeoff": (
            "What the gain costs the big jobs",
            f"Settings of {model}, big jobs n = {n}; low and left is good. {_TRADEOFF}",
            effect_charts.tradeoff_chart,
        ),
    }
    return [
        Drawing(name, title, caption, partial(draw, found))
        for name, (title, caption, draw) in drawn.items()
    ]


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
        time_cell(row["avg_wait"]),
        Cell(percent(row["wait_saved"]) if others else ""),
        Cell(percent(row["gain_kept"]) if others and row["kind"] != "shortest" else ""),
        *(time_cell(row[key]) for key in ("p99_wait", "max_wait", "avg_jct")),
        Cell(percent(row["utilization"])),
        time_cell(row["big_avg_wait"]),
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
            parts += [Cell(duration(row["avg_wait"]), wait, tail), time_cell(row["avg_jct"])]
        lines.append(Line(size_text(size), parts))
    return Table(
        "GPUs of the job",
        [names[label] for label in labels],
        lines,
        lead=["n"],
        under=["mean wait", "mean JCT"],
    )


def predictors_table(found: PredictionEffect) -> Table:
    """Return the predictors: how far off they are beside what an order by them saves."""
    rows = {
        row["model"]: {
            **row,
            "name": clean(row["model"]) + (" (knows the truth)" if row["peeks"] else ""),
        }
        for row in found.predictions.to_pylist()
    }
    for run in found.runs.to_pylist():
        if run["kind"] == "shortest":
            rows[run["model"]][str(run["load"])] = run["wait_saved"]
    columns: Columns = (
        ("n", "num_predicted", count),
        ("\u2264 25 %", "within_25", percent),
        ("\u2264 100 %", "within_100", percent),
        ("median error", "median_error", percent),
        ("mean error", "mae", time_cell),
        *((f"saves at {load:g}", str(load), percent) for load in found.loads),
    )
    return rows_table("Predictor", columns, rows.values(), "name", str)


def within_table(found: PredictionEffect) -> Table:
    """Return the share of predictions within 25 % by size, predictors across."""
    rows = found.within.to_pylist()
    models = list(dict.fromkeys(row["model"] for row in rows))
    cells = {(row["size"], row["model"]): row for row in rows}
    sizes = size_order({row["size"] for row in rows})
    lines = [
        Line(
            size_text(size),
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
