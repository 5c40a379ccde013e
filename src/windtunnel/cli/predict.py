"""``windtunnel predict``: how well what will happen could have been predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.machine import trace_data
from windtunnel.cli.opening import TraceRequest, open_request
from windtunnel.cli.options import (
    COUNT,
    TIME,
    lazy_group,
    listed,
    one_of,
    option,
    seed_option,
    trace_options,
)
from windtunnel.cli.presenting import TABLES, presented
from windtunnel.cli.screen import progress
from windtunnel.errors import SpecError, quote
from windtunnel.report.format import count, duration, percent
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.predictors.backtest import Backtest
    from windtunnel.predictors.convention import Predictor
    from windtunnel.report.sections import Table

#: `windtunnel.predictors.knowledge.KNOWN_AFTER`, which is not imported here: it needs Arrow.
KNOWN_AFTER = ("recorded", "end", "submit+duration")
_ABOUT = (
    "Share of the predicted jobs whose run time was off by at most 25 % and 100 % of the truth; "
    "median relative error; mean error."
)
_ABOUT_INTERVALS = "The last column: the share whose run time lies in the predicted interval."
#: The options of a back-test.
_OPTIONS = (
    *("refresh", "refresh_jobs", "min_history", "train_last", "known_after"),
    *("warm_up", "horizon", "interval"),
)


@lazy_group(
    "Predict waits and run times, back-tested; what they buy.",
    durations="predict",
    effect="predict_effect",
    wait="predict_wait",
)
def predict() -> None:
    """Tell how well predictors would have done, each from its past alone, and what they buy."""


@click.command(short_help="How well could run times have been predicted?")
@trace_options
@option(
    "--model NAMES",
    "Predictors, separated by commas: rolling, qssf-rolling, mean:user+template, sju, sjg, "
    "sjgg, cart, gbdt, quantile, requested, column:NAME, oracle, noise. Parameters go behind "
    "colons: rolling:last=20:statistic=median.",
    dest="models",
    default="rolling",
)
@option(
    "--refresh TIME",
    "Train cart, gbdt and quantile anew each time so much has passed.  [default: 1d]",
    TIME,
)
@option("--refresh-jobs N", "Instead, each time N more jobs have ended.", COUNT)
@option(
    "--min-history N",
    "Ended jobs before they are trained; until then they fall back on rolling means.  "
    "[default: 100]",
    COUNT,
)
@option("--train-last N", "Train on the last N ended jobs.  [default: 10000]", COUNT)
@option(
    "--known-after",
    "When a run time is known: at the recorded end, and without one at submission + run "
    "time; at the recorded end only; always at submission + run time.",
    one_of(*KNOWN_AFTER),
    metavar="|".join(KNOWN_AFTER),
    default="recorded",
)
@option(
    "--warm-up TIME",
    "Learn from jobs submitted before this time of the trace, but do not judge them.",
    TIME,
)
@option("--horizon TIME", "Judge no jobs submitted from this time of the trace on.", TIME)
@option(
    "--interval P",
    "Also predict intervals that hold the run time with this probability, such as 0.9.",
    click.FloatRange(0, 1, min_open=True, max_open=True),
)
@seed_option("Seed of the models, and of a synthetic trace.  [default: 0]")
@presented(TABLES, "Write every prediction of every model: a .parquet or .csv file.")
def durations(*, trace: str, models: str, **asked: Any) -> Result:
    """Predict each run time of TRACE at its submission, from jobs that had ended, and compare.

    TRACE is a name (`windtunnel traces`), a file, or - for standard input.
    """
    from windtunnel.predictors.backtest import backtest

    chosen = {name: asked.pop(name) for name in _OPTIONS}
    predictors = _resolved(models, asked["seed"] or 0)
    options = _options(chosen)
    opened = open_request(TraceRequest(trace, **asked))
    tests: list[Backtest] = []
    with progress("Predicting", len(predictors)) as done:
        for predictor in predictors:
            tests.append(backtest(opened.jobs, predictor, seed=asked["seed"] or 0, **options))
            done(predictor.label)
    judged, jobs = tests[0].summary()["n"], tests[0].table.num_rows
    with_intervals = tests[0].settings["coverage"] is not None
    sizes = _parts_table("GPUs", tests, [test.by_size() for test in tests])
    templates = _parts_table("template", tests, [test.by_recurrence() for test in tests])
    tables = [
        ("", _models_table(tests)),
        ("By GPUs of the job: within 25 %", sizes),
        ("By recurrence of the template: within 25 %", templates),
    ]
    return Result(
        opened.name,
        f"{_ABOUT} {_ABOUT_INTERVALS}" if with_intervals else _ABOUT,
        parts=[Part("", tables=tables)],
        notes=[f"{count(judged)} of {count(jobs)} jobs are judged.", *_notes(tests)],
        data={
            "trace": trace_data(opened),
            "models": [_data(test) for test in tests],
            "notes": _notes(tests),
        },
        table=lambda: _all_predictions(tests),
    )


def _resolved(models: str, seed: int) -> list[Predictor]:
    """Return the predictors that were named."""
    from windtunnel.predictors.catalogue import resolve_predictor

    names = listed(models)
    if not names:
        raise SpecError("--model", "expected at least one predictor, such as rolling,cart.")
    found: dict[str, Predictor] = {}
    for name in names:
        predictor = resolve_predictor(name, seed=seed)
        if predictor.label in found:
            raise SpecError("--model", f"found {quote(predictor.label)} twice; name each once.")
        found[predictor.label] = predictor
    return list(found.values())


def _options(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `backtest` that were given, checked before the trace is read."""
    from windtunnel.predictors.online import Refreshing

    given = {name: value for name, value in chosen.items() if value is not None}
    often = ("refresh", "refresh_jobs", "min_history", "train_last")
    Refreshing.of(**{name: given[name] for name in often if name in given})
    if given.get("warm_up", 0.0) >= given.get("horizon", float("inf")):
        raise SpecError("--horizon", "expected a time after --warm-up.")
    if "interval" in given:
        given["coverage"] = given.pop("interval")
    return given


def _data(test: Backtest) -> dict[str, Any]:
    """Return a back-test as plain data."""
    return {
        **test.summary(),
        "error_cdf": test.error_cdf().to_pylist(),
        "by_size": test.by_size().to_pylist(),
        "by_recurrence": test.by_recurrence().to_pylist(),
        "by_source": test.by_source().to_pylist(),
        "settings": test.settings,
    }


def _notes(tests: Sequence[Backtest]) -> list[str]:
    """Return what a reader of the numbers must know, each sentence once."""
    notes = dict.fromkeys(note for test in tests for note in test.notes)
    peeking = [test.model for test in tests if test.peeks]
    if peeking:
        notes[f"{', '.join(peeking)}: knows the true run times; a bound, not a predictor."] = None
    return list(notes)


def _all_predictions(tests: Sequence[Backtest]) -> Any:
    """Return the back-tests' tables one below the other, the model's name in front."""
    import pyarrow as pa

    named = [
        test.table.add_column(0, "model", pa.array([test.model] * test.table.num_rows, pa.string()))
        for test in tests
    ]
    return pa.concat_tables(named)


def _models_table(tests: Sequence[Backtest]) -> Table:
    """Return the models with their errors, one a row."""
    nominal = tests[0].settings["coverage"]
    columns = ["model", "predicted", "fell back", "\u2264 25 %", "\u2264 100 %", "median", "mean"]
    columns += [] if nominal is None else [f"in {percent(nominal)}"]
    rows = []
    for test in tests:
        figures = test.summary()
        cells = [test.model, count(figures["num_predicted"]), count(figures["num_fallback"])]
        cells += [percent(figures[key]) for key in ("within_25", "within_100", "median_error")]
        cells += [duration(figures["mae"])]
        rows.append(cells + ([] if nominal is None else [percent(figures["coverage"])]))
    return table_of(columns, rows)


def _parts_table(title: str, tests: Sequence[Backtest], tables: Sequence[Any]) -> Table:
    """Return the share within 25 % of each part of the jobs, models across.

    Args:
        title: heading of the first column.
        tests: the back-tests.
        tables: a table of parts each, of the same parts: all judge the same jobs.
    """
    names = tables[0].column(0).to_pylist()
    rows = [
        [name, count(n), *(percent(table["within_25"][row].as_py()) for table in tables)]
        for row, (name, n) in enumerate(zip(names, tables[0]["n"].to_pylist(), strict=True))
    ]
    headings = [title, "jobs", *(test.model for test in tests)]
    return table_of(headings, rows)
