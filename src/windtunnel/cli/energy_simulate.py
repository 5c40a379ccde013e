"""``windtunnel energy simulate``: who finds the best configuration, and when that pays back."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.energy import (
    CHARTS,
    TABLES,
    WORKLOAD_QUIET,
    configuration_data,
    joules,
    opened,
    option_words,
    out_data,
    tuning_options,
    workload_data,
    workload_options,
)
from windtunnel.cli.options import out_option, output_options, seed_option

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from windtunnel.energy.seeds import EnergyStudy, Replications

#: The first seed, where none is given.
FIRST_SEED = 1
#: The options of a simulation with the defaults that say nothing.
_QUIET: dict[str, Any] = {
    "optimizer": None,
    "eta": 0.5,
    "beta": 2.0,
    "power_limits": "jit",
    "recurrences": None,
    "within": None,
    "seeds": None,
    "seed": FIRST_SEED,
}


@click.command(short_help="Zeus, grid search and others over recurrences.")
@workload_options
@click.option(
    "--optimizer",
    default="zeus",
    show_default=True,
    metavar="NAMES",
    help="Who chooses batch sizes: zeus (zeus:window=10), grid, oracle, default, or pkg.mod:name; "
    "several joined by commas. The default runs beside them.",
)
@tuning_options
@click.option(
    "--recurrences",
    type=click.IntRange(min=1, max=1_000_000),
    metavar="N",
    help="How often the job recurs.  [default: twice the number of configurations]",
)
@click.option(
    "--within",
    type=click.IntRange(min=1),
    metavar="K",
    help="Tell in how many seeds learning pays back within K recurrences.  [default: all]",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1, max=10_000),
    default=20,
    show_default=True,
    metavar="N",
    help="Simulations of each optimiser, a seed each.",
)
@seed_option(f"The first seed.  [default: {FIRST_SEED}]")
@out_option("FILE", "Write the regret curves (.html, .svg, .png) or every run (.csv, .parquet).")
@output_options
def simulate(*, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Let optimisers choose batch size and power limit of a job that recurs, many times.

    Told are what the last five recurrences save against the default, what all of them cost beyond
    the optimum (regret), and after how many recurrences learning has paid back.
    """
    from windtunnel.cli.opening import check_out
    from windtunnel.cli.screen import progress, shows_progress
    from windtunnel.energy.seeds import BASELINE, study

    check_out(out, (*CHARTS, *TABLES), "")
    asked["seed"] = FIRST_SEED if asked["seed"] is None else asked["seed"]
    names = _names(asked["optimizer"])
    words = ["windtunnel", "energy", "simulate", *option_words(asked, WORKLOAD_QUIET | _QUIET)]
    words += [] if out is None else ["--out", str(out)]
    workload = opened(asked)
    count = len({BASELINE, *names}) * asked["seeds"]
    with progress("Simulating", count, show=shows_progress(as_json=as_json)) as done:
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
    data |= {"command": shlex.join(words), "out": out_data(out)}
    if out is not None:
        _write(result, out)
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json(data)
        return
    _print(result, data)


def _names(text: str) -> list[str]:
    """Return the optimisers, checked before anything is read.

    Raises:
        SpecError: none, an unknown one, or one twice.
    """
    from windtunnel.energy.catalogue import resolve_optimizer
    from windtunnel.errors import SpecError, quote

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        resolve_optimizer(name)
    if not names or len(set(names)) < len(names):
        raise SpecError("--optimizer", f"found {quote(text)}; expected names, each once.")
    return names


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
    told = {
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
        told["history"] = one.results[0].table.to_pylist()
    return told


def _runs(one: Replications) -> list[dict[str, Any]]:
    return [
        {
            "seed": seed,
            "num_runs": len(result.runs),
            "num_failed": sum(not run.reached for _, run in result.runs),
            "num_refused": len(result.refused),
            "energy_j": result.energy_j,
            "time_s": result.time_s,
            "cost_j": result.cost_j,
            "batch_size": size,
            "power_limit": limit,
        }
        for seed, result, (size, limit) in zip(one.seeds, one.results, one.settled, strict=True)
    ]


def _write(result: EnergyStudy, out: Path) -> None:
    if out.suffix.lower() in CHARTS:
        from windtunnel.report.chart.saving import write_chart
        from windtunnel.report.energy_charts import regret_chart

        write_chart(out, regret_chart(result), result.workload.name)
        return
    import pyarrow as pa

    from windtunnel.cli.saving import save_table

    tables = []
    for name, one in result.replications.items():
        for seed, found in zip(one.seeds, one.results, strict=True):
            n = found.table.num_rows
            table = found.table.add_column(0, "seed", pa.array([seed] * n, pa.int64()))
            tables.append(table.add_column(0, "optimizer", pa.array([name] * n, pa.string())))
    save_table(pa.concat_tables(tables), out)


def _print(result: EnergyStudy, data: dict[str, Any]) -> None:
    from windtunnel.cli.screen import bullets, heading, line, plain_table, screen
    from windtunnel.report.format import count, number, percent

    console = screen()
    settings = data["settings"]
    heading(
        console,
        f"{result.workload.name}, \u03b7 = {settings['eta']:g}, \u03b2 = {settings['beta']:g}: "
        f"{count(settings['recurrences'])} recurrences, {len(settings['seeds'])} seeds",
    )
    headings = ["optimizer", "runs", "energy", "last 5 save", "all save", "regret", "paid back"]
    rows = []
    for name, told in data["optimizers"].items():
        energy = [row["energy_j"] for row in told["runs"]]
        rows.append(
            [
                name,
                number(sum(row["num_runs"] for row in told["runs"]) / len(energy)),
                joules(sum(energy) / len(energy)),
                "" if name == "default" else _saving(told["savings_last_5"]),
                "" if name == "default" else percent(told["savings_total"]["mean"]),
                number(told["regret"]["mean"]),
                "" if name == "default" else _payback(told["payback"]),
            ]
        )
    console.print(plain_table(headings, rows, numbers=len(headings) - 1))
    bullets(console, "What it means", _meaning(result, data))
    bullets(console, "Mind", data["notes"])
    bullets(console, "The same again", [data["command"]])
    if data["out"] is not None:
        console.print()
        console.print(line(f"The result is in {data['out']}"), soft_wrap=True)


def _saving(band: dict[str, float]) -> str:
    from windtunnel.report.format import percent

    low, high = percent(band["p10"]), percent(band["p90"])
    mean = percent(band["mean"])
    return mean if low == high else f"{mean} ({low.removesuffix(' %')}\u2013{high})"


def _payback(band: dict[str, float]) -> str:
    low, middle, high = (_recurrence(band[name]) for name in ("p10", "p50", "p90"))
    return middle if low == high else f"{middle} ({low}\u2013{high})"


def _recurrence(at: float | np.floating[Any]) -> str:
    return "never" if at == float("inf") else f"{at:.0f}"


def _meaning(result: EnergyStudy, data: dict[str, Any]) -> list[str]:
    from windtunnel.report.format import percent

    best, within = result.best, data["settings"]["within"]
    default = f"{result.default.batch_size} at {result.default.power_limit} W"
    optimum = f"The optimum is batch size {best.batch_size} at {best.power_limit} W"
    told = [f"{optimum}; the default {default}."]
    told += [
        f"{name} has paid back within {within} recurrences in "
        f"{percent(one['paid_back_within'])} of {one['num_seeds']} seeds."
        for name, one in data["optimizers"].items()
        if name not in {"default", "oracle"}
    ]
    told.append(
        "Runs, energy, savings and regret are means over seeds, in brackets their 10th to 90th "
        "percentile. Savings are of energy, against the default under the same seed; regret is the "
        "cost beyond always running the optimum, in optimal jobs. Paid back: the median recurrence "
        "from which on all costs so far stay below the default's."
    )
    return told
