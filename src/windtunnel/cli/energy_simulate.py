"""``windtunnel energy simulate``: who finds the best configuration, and when that pays back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.energy import (
    configuration_data,
    joules,
    opened,
    tuning_options,
    workload_data,
    workload_options,
)
from windtunnel.cli.options import COUNT, each_once, option, seed_option
from windtunnel.cli.presenting import CHARTS, TABLES, presented
from windtunnel.cli.screen import progress
from windtunnel.plain import fields_of
from windtunnel.report.format import number, percent, plural
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from windtunnel.energy.seeds import EnergyStudy, Replications
    from windtunnel.report.sections import Table

#: The first seed, where none is given.
FIRST_SEED = 1


@click.command(short_help="Zeus, grid search and others over recurrences.")
@workload_options
@option(
    "--optimizer NAMES",
    "Who chooses batch sizes: zeus (zeus:window=10), grid, oracle, default, or pkg.mod:name; "
    "several joined by commas. The default runs beside them.",
    default="zeus",
)
@tuning_options
@option(
    "--recurrences N",
    "How often the job recurs.  [default: twice the number of configurations]",
    click.IntRange(min=1, max=1_000_000),
)
@option(
    "--within K",
    "Tell in how many seeds learning pays back within K recurrences.  [default: all]",
    COUNT,
)
@option(
    "--seeds N",
    "Simulations of each optimiser, a seed each.",
    click.IntRange(min=1, max=10_000),
    default=20,
)
@seed_option(f"The first seed.  [default: {FIRST_SEED}]")
@presented(
    (*CHARTS, *TABLES),
    "Write the regret curves (.html, .svg, .png, .pdf) or every run (.csv, .parquet).",
)
def simulate(**asked: Any) -> Result:
    """Let optimisers choose batch size and power limit of a job that recurs, many times.

    Shown are what the last five recurrences save against the default, what all of them cost beyond
    the optimum (regret), and after how many recurrences learning has paid back.
    """
    from windtunnel.energy.catalogue import resolve_optimizer
    from windtunnel.energy.seeds import BASELINE, study
    from windtunnel.report.energy_charts import regret_chart

    asked["seed"] = FIRST_SEED if asked["seed"] is None else asked["seed"]
    names = each_once(asked["optimizer"], "--optimizer", resolve_optimizer)
    workload = opened(asked)
    count = len({BASELINE, *names}) * asked["seeds"]
    with progress("Simulating", count) as done:
        result = study(
            workload,
            names,
            seeds=range(asked["seed"], asked["seed"] + asked["seeds"]),
            recurrences=asked["recurrences"],
            eta=asked["eta"],
            beta=asked["beta"],
            power_limits=asked["power_limits"],
            on_done=done,
        )
    data = _data(result, asked["within"])
    settings, seeds = data["settings"], plural(asked["seeds"], "seed")
    recurrences = plural(data["settings"]["recurrences"], "recurrence")
    about = f"\u03b7 = {settings['eta']:g}, \u03b2 = {settings['beta']:g}"
    return Result(
        f"{result.workload.name}, {about}: {recurrences}, {seeds}",
        _verdict(data),
        parts=[
            Part("", tables=[("", _optimizers(data))]),
            Part("What it means", points=_meaning(result, data)),
        ],
        cautions=data.pop("notes"),
        data=data,
        table=lambda: _every_run(result),
        chart=lambda: regret_chart(result),
    )


def _data(result: EnergyStudy, within: int | None) -> dict[str, Any]:
    """Return a study as plain data.

    Keys: ``workload``, ``settings``, ``optimum``, ``default`` (expectations), ``optimizers`` (name
    -> what `_optimizer_data` tells), ``notes``.
    """
    horizon = result.settings["recurrences"] if within is None else within
    notes = list(result.workload.notes)
    for one in result.replications.values():
        notes += [f"{one.optimizer}: {note}" for note in one.notes]
    return {
        "workload": workload_data(result.workload),
        "settings": {**result.settings, "within": horizon},
        "optimum": configuration_data(result.best),
        "default": configuration_data(result.default),
        "optimizers": {
            name: _optimizer_data(result, name, horizon) for name in result.replications
        },
        "notes": notes,
    }


def _optimizer_data(result: EnergyStudy, name: str, within: int) -> dict[str, Any]:
    """Return what an optimiser did as plain data.

    Keys: ``num_seeds``, ``gave_up`` (seed -> reason), ``runs`` (a row a seed: ``seed``,
    ``num_runs``, ``num_failed``, ``num_refused``, ``energy_j``, ``time_s``, ``cost_j``,
    ``batch_size`` and ``power_limit`` of the last run), bands (mean, p10, p50, p90) over seeds of
    ``savings_last_5``, ``savings_total`` (shares of the default's energy), ``cost_savings_total``,
    ``regret`` (optimal jobs) and ``payback`` (recurrences; null = never), ``paid_back_within``
    (share of seeds), ``regret_curve`` (band a recurrence) and, of one seed, ``history``.
    """
    from windtunnel.energy.seeds import band

    one, regret = result.replications[name], result.regret(name)
    curve = [band(regret[:, at]) for at in range(regret.shape[1])]
    data = {
        "num_seeds": len(one.seeds),
        "gave_up": {str(seed): why for seed, why in one.gave_up.items()},
        "runs": _runs(one),
        "savings_last_5": band(result.savings(name)),
        "savings_total": band(result.total_savings(name)),
        "cost_savings_total": band(result.total_savings(name, "cost_j")),
        "regret": band(regret[:, -1]),
        "payback": band(result.payback(name)),
        "paid_back_within": result.paid_back_within(name, within),
        "regret_curve": curve,
    }
    if len(one.results) == 1:
        data["history"] = one.results[0].table.to_pylist()
    return data


def _runs(one: Replications) -> list[dict[str, Any]]:
    return [
        {
            "seed": seed,
            "num_runs": len(result.runs),
            "num_failed": sum(not run.reached for _, run in result.runs),
            "num_refused": len(result.refused),
            **fields_of(result, "energy_j", "time_s", "cost_j"),
            "batch_size": size,
            "power_limit": limit,
        }
        for seed, result, (size, limit) in zip(one.seeds, one.results, one.settled, strict=True)
    ]


def _every_run(result: EnergyStudy) -> pa.Table:
    import pyarrow as pa

    tables = []
    for name, one in result.replications.items():
        for seed, found in zip(one.seeds, one.results, strict=True):
            n = found.table.num_rows
            table = found.table.add_column(0, "seed", pa.array([seed] * n, pa.int64()))
            tables.append(table.add_column(0, "optimizer", pa.array([name] * n, pa.string())))
    return pa.concat_tables(tables)


def _optimizers(data: dict[str, Any]) -> Table:
    rows = []
    for name, found in data["optimizers"].items():
        energy = [row["energy_j"] for row in found["runs"]]
        saved = ("", "")
        if name != "default":
            saved = (_saving(found["savings_last_5"]), percent(found["savings_total"]["mean"]))
        rows.append(
            (
                name,
                number(sum(row["num_runs"] for row in found["runs"]) / len(energy)),
                joules(sum(energy) / len(energy)),
                *saved,
                number(found["regret"]["mean"]),
                "" if name == "default" else _payback(found["payback"]),
            )
        )
    headings = ("optimizer", "runs", "energy", "last 5 save", "all save", "regret", "paid back")
    return table_of(headings, rows)


def _verdict(data: dict[str, Any]) -> str:
    """Return what the first optimiser saves, and when that has paid back."""
    names = [name for name in data["optimizers"] if name not in {"default", "oracle"}]
    found = [name for name in names or data["optimizers"] if name != "default"]
    if not found:
        return f"The default draws {joules(data['default']['eta_j'])} a run."
    one = data["optimizers"][found[0]]
    paid = _recurrence(one["payback"]["p50"])
    when = (
        "never pays back"
        if paid == "never"
        else f"has paid back after {paid} recurrence{'s' * (paid != '1')}"
    )
    saved = percent(one["savings_total"]["mean"])
    return f"{found[0]} saves {saved} of the default's energy in all, and {when}."


def _saving(band: dict[str, float]) -> str:
    low, high = percent(band["p10"]), percent(band["p90"])
    mean = percent(band["mean"])
    return mean if low == high else f"{mean} ({low.removesuffix(' %')}\u2013{high})"


def _payback(band: dict[str, float]) -> str:
    low, middle, high = (_recurrence(band[name]) for name in ("p10", "p50", "p90"))
    return middle if low == high else f"{middle} ({low}\u2013{high})"


def _recurrence(at: float | np.floating[Any]) -> str:
    return "never" if at == float("inf") else f"{at:.0f}"


def _meaning(result: EnergyStudy, data: dict[str, Any]) -> list[str]:
    best, within = result.best, data["settings"]["within"]
    default = f"{result.default.batch_size} at {result.default.power_limit} W"
    optimum = f"The optimum is batch size {best.batch_size} at {best.power_limit} W"
    sentences = [f"{optimum}; the default {default}."]
    sentences += [
        f"{name} has paid back within {within} recurrences in "
        f"{percent(one['paid_back_within'])} of {one['num_seeds']} seeds."
        for name, one in data["optimizers"].items()
        if name not in {"default", "oracle"}
    ]
    sentences.append(
        "Runs, energy, savings and regret are means over seeds, in brackets their 10th to 90th "
        "percentile. Savings are of energy, against the default under the same seed; regret is the "
        "cost beyond always running the optimum, in optimal jobs. Paid back: the median recurrence "
        "from which on all costs so far stay below the default's."
    )
    return sentences
