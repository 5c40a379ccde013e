"""``windtunnel energy optimum``: the best configuration, as the measurements alone say."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.energy import (
    CHARTS,
    TABLES,
    WORKLOAD_QUIET,
    configuration_data,
    eta_option,
    joules,
    opened,
    option_words,
    out_data,
    workload_data,
    workload_options,
)
from windtunnel.cli.options import out_option, output_options

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.energy.workload import Workload


@click.command(short_help="Best batch size and power limit, and the Pareto front.")
@workload_options
@eta_option
@out_option("FILE", "Write the charts (.html, .svg, .png) or every configuration (.csv, .parquet).")
@output_options
def optimum(*, out: Path | None, as_json: bool, eta: float, **asked: Any) -> None:
    """Compute the batch size and power limit of lowest expected cost, without any simulation.

    A batch size counts if every recorded run of it reached the target; cost is eta x energy +
    (1 - eta) x largest power x time. Beside the optimum: the default, the Pareto front of energy
    and time, and what either knob alone could save. With --workload all, --gpu all or both: a row a
    pair of workload and GPU.
    """
    from windtunnel.cli.opening import check_out

    every = "all" in {asked["workload"].lower(), asked["gpu"].lower()}
    check_out(out, TABLES if every else (*CHARTS, *TABLES), "")
    words = ["windtunnel", "energy", "optimum", *option_words(asked, WORKLOAD_QUIET)]
    words += ["--eta", f"{eta:g}"] + ([] if out is None else ["--out", str(out)])
    if every:
        _tell_all(_all_opened(asked), eta, out, as_json=as_json, command=shlex.join(words))
        return
    workload = opened(asked)
    data = {
        **_data(workload, eta),
        "command": shlex.join(words),
        "out": out_data(out),
    }
    if out is not None:
        _write(workload, eta, out)
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json(data)
        return
    _print(workload, data)


def _data(workload: Workload, eta: float) -> dict[str, Any]:
    """Return what is told of a workload: `workload_data`, ``eta``, `_found`, ``notes``."""
    return {
        "workload": workload_data(workload),
        "eta": eta,
        **_found(workload, eta),
        "notes": list(workload.notes),
    }


def _all_opened(asked: dict[str, Any]) -> list[Workload]:
    """Return every pair of workload and GPU where one or the other is ``all``, GPUs first.

    Raises:
        SpecError: options that go with one workload only.
    """
    from windtunnel.energy.open import PUBLISHED_GPUS, known_gpus, open_published
    from windtunnel.errors import SpecError

    for name in ("target", "max_epochs", "default_batch_size"):
        if asked[name] is not None:
            option = f"--{name.replace('_', '-')}"
            raise SpecError(option, "goes with one workload on one GPU, not with all.")
    if asked["gpu"].lower() != "all":
        gpus: tuple[str, ...] = (asked["gpu"],)
    elif asked["data"] is None:
        gpus = PUBLISHED_GPUS
    else:
        gpus = known_gpus(asked["data"])
    if asked["workload"].lower() == "all":
        return [w for gpu in gpus for w in open_published(gpu, data=asked["data"]).values()]
    return [opened({**asked, "gpu": gpu}) for gpu in gpus]


def _tell_all(
    workloads: list[Workload], eta: float, out: Path | None, *, as_json: bool, command: str
) -> None:
    """Tell of many workloads: a row each."""
    pairs = [_data(workload, eta) for workload in workloads]
    if out is not None:
        import pyarrow as pa

        from windtunnel.cli.saving import save_table

        save_table(pa.Table.from_pylist([_flat(pair) for pair in pairs]), out)
    if as_json:
        from windtunnel.cli.machine import print_json

        print_json({"eta": eta, "pairs": pairs, "command": command, "out": out_data(out)})
        return
    _print_all(pairs, eta, command, out)


def _flat(pair: dict[str, Any]) -> dict[str, Any]:
    """Return a pair as a row of a table: ``opt_*``, ``default_*`` and what is saved."""
    about = pair["workload"]
    row = {name: about[name] for name in ("gpu", "dataset", "network", "optimizer")}
    row |= {name: about[name] for name in ("target_metric", "max_epochs", "max_power_w")}
    row["eta"] = pair["eta"]
    for short, name in (("opt", "optimum"), ("default", "default")):
        row |= {f"{short}_{key}": value for key, value in pair[name].items()}
    reduction = pair["reduction"] or {}
    for name in ("eta_percent", "tta_change_percent", "cost_percent"):
        row[f"reduction_{name}"] = reduction.get(name)
    return row


def _print_all(pairs: list[dict[str, Any]], eta: float, command: str, out: Path | None) -> None:
    from windtunnel.cli.screen import bullets, heading, line, plain_table, screen
    from windtunnel.report.format import percent

    console = screen()
    heading(console, f"{len(pairs)} pairs of workload and GPU, \u03b7 = {eta:g}")
    rows = []
    for pair in pairs:
        one = pair["reduction"] or dict.fromkeys(
            ("eta_percent", "tta_change_percent", "cost_percent"), float("nan")
        )
        best, default = pair["optimum"], pair["default"]
        saved = (one["eta_percent"], one["tta_change_percent"], one["cost_percent"])
        rows.append(
            [
                *(pair["workload"][name] for name in ("gpu", "dataset")),
                *(f"{c['batch_size']} @ {c['power_limit']} W" for c in (default, best)),
                *(percent(value / 100) for value in saved),
                "\u2013" if pair["potential"] is None else percent(pair["potential"]["both"]),
            ]
        )
    columns = (
        "GPU",
        "workload",
        "default",
        "optimum",
        "energy saved",
        "time",
        "cost saved",
        "\u03b7 = 1",
    )
    console.print(plain_table(columns, rows, numbers=6))
    meaning = "The last column: energy that could be saved where only energy counts."
    bullets(console, "What it means", [meaning])
    bullets(console, "The same again", [command])
    if out is not None:
        console.print()
        console.print(line(f"The result is in {out}"), soft_wrap=True)


def _found(workload: Workload, eta: float) -> dict[str, Any]:
    """Return the optimum and what surrounds it as plain data.

    Keys: ``optimum``, ``default`` and ``runner_up`` (configurations; ``runner_up`` with its
    ``cost_gap_percent``, or null), ``reduction`` (per cent of the default's: ``eta``, ``cost``;
    ``tta_change``), ``potential`` (shares of energy: ``batch_size``, ``power_limit``, ``both``),
    ``pareto_front`` (configurations, time ascending), ``num_configurations``,
    ``num_feasible_configurations``. Where the default is not feasible, ``reduction`` and
    ``potential`` are null.
    """
    from windtunnel.energy.optimum import (
        configurations,
        default_configuration,
        energy_potential,
        pareto_front,
        ranked,
    )

    every = configurations(workload, eta)
    order = ranked(workload, eta)
    best, default = order[0], default_configuration(workload, eta)
    runner_up = None
    if len(order) > 1:
        gap = 100 * (order[1].cost_j / best.cost_j - 1)
        runner_up = {**configuration_data(order[1]), "cost_gap_percent": gap}
    reduction = None
    if default.feasible:
        reduction = {
            "eta_percent": 100 * (1 - best.eta_j / default.eta_j),
            "tta_change_percent": 100 * (best.tta_s / default.tta_s - 1),
            "cost_percent": 100 * (1 - best.cost_j / default.cost_j),
        }
    potential = energy_potential(workload)
    return {
        "optimum": configuration_data(best),
        "default": configuration_data(default),
        "runner_up": runner_up,
        "reduction": reduction,
        "potential": None
        if potential is None
        else {
            "batch_size": potential.batch_size,
            "power_limit": potential.power_limit,
            "both": potential.both,
        },
        "pareto_front": [configuration_data(one) for one in pareto_front(every)],
        "num_configurations": len(every),
        "num_feasible_configurations": len(order),
    }


def _write(workload: Workload, eta: float, out: Path) -> None:
    import pyarrow as pa

    from windtunnel.cli.saving import save
    from windtunnel.energy.optimum import configurations
    from windtunnel.report.energy_charts import optimum_chart, title_of

    def table() -> pa.Table:
        return pa.Table.from_pylist(
            [configuration_data(one) for one in configurations(workload, eta)]
        )

    save(out, table, lambda: optimum_chart(workload, eta), title_of(workload, eta))


def _print(workload: Workload, data: dict[str, Any]) -> None:
    from windtunnel.cli.screen import bullets, heading, line, plain_table, screen
    from windtunnel.report.format import percent

    console = screen()
    job = workload.job
    heading(console, f"{workload.name}, \u03b7 = {data['eta']:g}")
    console.print(
        line(
            f"{job.network} trained with {job.optimizer} to {job.target_metric:g} within "
            f"{job.max_epochs} epochs; {data['num_feasible_configurations']} of "
            f"{data['num_configurations']} configurations are feasible."
        )
    )
    rows = [_row("default", data["default"]), _row("optimum", data["optimum"])]
    if data["runner_up"] is not None:
        rows.append(_row("second best", data["runner_up"]))
    columns = ("configuration", "batch size", "limit", "epochs", "time", "energy", "cost")
    console.print(plain_table(columns, rows, numbers=len(columns) - 1))
    told = []
    if data["reduction"] is not None:
        cut, change = data["reduction"], data["reduction"]["tta_change_percent"] / 100
        told.append(
            f"The optimum saves {percent(cut['eta_percent'] / 100)} of the energy and "
            f"{percent(cut['cost_percent'] / 100)} of the cost; time changes by {percent(change)}."
        )
        knobs = data["potential"]
        told.append(
            f"Energy alone (\u03b7 = 1): the batch size could save {percent(knobs['batch_size'])}, "
            f"the power limit {percent(knobs['power_limit'])}, both {percent(knobs['both'])}."
        )
    else:
        told.append("The default misses the target in some runs: there is nothing to compare with.")
    bullets(console, "What it means", told)
    heading(console, "Pareto front, fastest first")
    front = [_row("", one)[1:] for one in data["pareto_front"]]
    console.print(plain_table(columns[1:], front, numbers=len(columns) - 1))
    bullets(console, "Mind", data["notes"])
    bullets(console, "The same again", [data["command"]])
    if data["out"] is not None:
        console.print()
        console.print(line(f"The result is in {data['out']}"), soft_wrap=True)


def _row(name: str, one: dict[str, Any]) -> list[str]:
    from windtunnel.report.format import duration, number

    return [
        name,
        str(one["batch_size"]),
        f"{one['power_limit']} W",
        number(one["mean_epochs"]),
        duration(one["tta_s"]),
        joules(one["eta_j"]),
        joules(one["cost_j"]),
    ]
