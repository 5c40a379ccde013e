"""``windtunnel energy optimum``: the best configuration, as the measurements alone say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.energy import (
    configuration_data,
    eta_option,
    joules,
    opened,
    workload_data,
    workload_options,
)
from windtunnel.cli.presenting import CHARTS, TABLES, presented, rows_table
from windtunnel.errors import SpecError
from windtunnel.plain import fields_of
from windtunnel.report.format import duration, number, percent
from windtunnel.report.result import Part, Result, table_of

if TYPE_CHECKING:
    from windtunnel.energy.workload import Workload
    from windtunnel.report.sections import Table


@click.command(short_help="Best batch size and power limit, and the Pareto front.")
@workload_options
@eta_option
@presented(
    (*CHARTS, *TABLES),
    "Write the charts (.html, .svg, .png, .pdf) or every configuration (.csv, .parquet).",
)
def optimum(*, eta: float, **asked: Any) -> Result:
    """Compute the batch size and power limit of lowest expected cost, without any simulation.

    A batch size counts if every recorded run of it reached the target; cost is eta x energy +
    (1 - eta) x largest power x time. Beside the optimum: the default, the Pareto front of energy
    and time, and what either knob alone could save. With --workload all, --gpu all or both: a row a
    pair of workload and GPU.
    """
    if "all" in {asked["workload"].lower(), asked["gpu"].lower()}:
        return _every_pair(_all_opened(asked), eta)
    return _one(opened(asked), eta)


def _data(workload: Workload, eta: float) -> dict[str, Any]:
    """Return what is reported of a workload: `workload_data`, ``eta``, `_found`, ``notes``."""
    return {
        "workload": workload_data(workload),
        "eta": eta,
        **_found(workload, eta),
        "notes": list(workload.notes),
    }


def _all_opened(asked: dict[str, Any]) -> list[Workload]:
    """Return every pair of workload and GPU where one or the other is ``all``, GPUs first."""
    from windtunnel.energy.open import PUBLISHED_GPUS, known_gpus, open_published

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


def _every_pair(workloads: list[Workload], eta: float) -> Result:
    """Return what is reported of many workloads: a row each."""
    pairs = [_data(workload, eta) for workload in workloads]
    return Result(
        f"{len(pairs)} pairs of workload and GPU, \u03b7 = {eta:g}",
        parts=[Part("", tables=[("", _pairs(pairs))])],
        notes=["The last column: energy that could be saved where only energy counts."],
        data={"eta": eta, "pairs": pairs},
        table=lambda: rows_table([_flat(pair) for pair in pairs]),
    )


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


def _pairs(pairs: list[dict[str, Any]]) -> Table:
    names = ("eta_percent", "tta_change_percent", "cost_percent")
    rows = []
    for pair in pairs:
        one = pair["reduction"] or dict.fromkeys(names, float("nan"))
        chosen = (pair["default"], pair["optimum"])
        rows.append(
            (
                *(pair["workload"][name] for name in ("gpu", "dataset")),
                *(f"{found['batch_size']} @ {found['power_limit']} W" for found in chosen),
                *(percent(one[name] / 100) for name in names),
                "\u2013" if pair["potential"] is None else percent(pair["potential"]["both"]),
            )
        )
    columns = ("GPU", "workload", "default", "optimum", "energy saved", "time", "cost saved")
    return table_of((*columns, "\u03b7 = 1"), rows, texts=1)


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
        "potential": potential and fields_of(potential, "batch_size", "power_limit", "both"),
        "pareto_front": [configuration_data(one) for one in pareto_front(every)],
        "num_configurations": len(every),
        "num_feasible_configurations": len(order),
    }


def _one(workload: Workload, eta: float) -> Result:
    """Return what is reported of one workload."""
    from windtunnel.energy.optimum import configurations
    from windtunnel.report.energy_charts import optimum_chart, title_of

    job, data = workload.job, _data(workload, eta)
    rows = [_row("default", data["default"]), _row("optimum", data["optimum"])]
    if data["runner_up"] is not None:
        rows.append(_row("second best", data["runner_up"]))
    columns = ("configuration", "batch size", "limit", "epochs", "time", "energy", "cost")
    front = [_row("", one)[1:] for one in data["pareto_front"]]
    tables = [("", table_of(columns, rows))]
    tables.append(("Pareto front, fastest first", table_of(columns[1:], front)))
    feasible = f"{data['num_feasible_configurations']} of {data['num_configurations']}"
    trained = (
        f"{job.network} trained with {job.optimizer} to {job.target_metric:g} within "
        f"{job.max_epochs} epochs; {feasible} configurations are feasible."
    )
    return Result(
        title_of(workload, eta),
        _verdict(data),
        parts=[Part("What it means", points=[trained, *_meaning(data)]), Part("", tables=tables)],
        cautions=data.pop("notes"),
        data=data,
        table=lambda: rows_table([configuration_data(o) for o in configurations(workload, eta)]),
        chart=lambda: optimum_chart(workload, eta),
    )


def _verdict(data: dict[str, Any]) -> str:
    """Return what to use, and what that saves."""
    best, cut = data["optimum"], data["reduction"]
    use = f"Batch size {best['batch_size']} at {best['power_limit']} W"
    if cut is None:
        return f"{use} is the optimum; the default misses the target in some runs."
    energy, cost = (percent(cut[f"{name}_percent"] / 100) for name in ("eta", "cost"))
    return f"{use} saves {energy} of the default's energy and {cost} of its cost."


def _meaning(data: dict[str, Any]) -> list[str]:
    """Return what the optimum saves, in sentences."""
    cut, knobs = data["reduction"], data["potential"]
    if cut is None:
        return ["The default misses the target in some runs: there is nothing to compare with."]
    saved = f"With the optimum, time changes by {percent(cut['tta_change_percent'] / 100)}."
    alone = (
        f"Energy alone (\u03b7 = 1): the batch size could save {percent(knobs['batch_size'])}, "
        f"the power limit {percent(knobs['power_limit'])}, both {percent(knobs['both'])}."
    )
    return [saved, alone]


def _row(name: str, one: dict[str, Any]) -> list[str]:
    return [
        name,
        str(one["batch_size"]),
        f"{one['power_limit']} W",
        number(one["mean_epochs"]),
        duration(one["tta_s"]),
        joules(one["eta_j"]),
        joules(one["cost_j"]),
    ]
