"""What prediction buys: how far predictions are off, beside what a queue ordered by them gains.

The question of Weng et al., NSDI 2022 (MLaaS in the Wild), section 6, with what averages hide: the
same jobs under first come first served, under shortest predicted first for several predictors, and
for the best of them under aging and reservations, at several loads, by size of the job.

A predictor goes once along the *recorded* log (`windtunnel.study.predictions`); stretching the
submissions to another load changes the run, not what was known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel import schema
from windtunnel.cluster.parse import parse_cluster
from windtunnel.plain import fields_of
from windtunnel.policies import resolve_policy
from windtunnel.predictors.accuracy import ERROR_GRID, accuracy, error_cdf
from windtunnel.predictors.features import numbers
from windtunnel.sim.flight import REJECTED
from windtunnel.sim.metrics import size_classes
from windtunnel.study.big_jobs import BigJobs, big_jobs, big_measures
from windtunnel.study.effect_settings import (
    AGINGS,
    FIFO,
    LOADS,
    MODELS,
    Choice,
    Setting,
    checked_models,
    checked_numbers,
    choose,
    cures,
    judged,
    shortest,
)
from windtunnel.study.offered_load import at_load, offered_load
from windtunnel.study.predictions import Predictions
from windtunnel.study.resolving import conditions_of, resolved
from windtunnel.study.simulate import fly

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.outcome import Outcome
    from windtunnel.site.conditions import Conditions

#: Reasons for which jobs cannot be flown that are listed one by one.
_REASONS = 3
_METRICS = (
    *("avg_wait", "p50_wait", "p90_wait", "p99_wait", "max_wait", "num_waited"),
    *("avg_jct", "p50_jct", "p90_jct", "p99_jct", "utilization", "makespan"),
)


@dataclass(frozen=True)
class PredictionEffect:
    """The study's result.

    Attributes:
        cluster: where the jobs flew.
        loads: offered loads, as asked for.
        natural_load: the load of the log as it was recorded, on this cluster.
        num_flown: jobs that flew.
        num_rejected: jobs that could not: no time, no duration, or larger than the cluster.
        big: the big jobs.
        model: the predictor that the cures go by.
        runs: one row a load and setting: ``load``, ``policy`` (the label), ``kind``, ``model``,
            ``aging``, ``queueing``, ``num_finished``, metrics of `windtunnel.sim.metrics.summary`,
            those of `windtunnel.study.big_jobs.big_measures`, and those of
            `windtunnel.study.effect_settings.judged`.
        sizes: one row a load, setting and size class: ``load``, ``policy``, and the columns of
            `windtunnel.sim.metrics.by_size`, of the jobs that flew.
        predictions: one row a predictor: ``model``, ``peeks``, and the measures of
            `windtunnel.predictors.accuracy.accuracy` over the jobs that flew.
        errors: one row a predictor and point: ``model``, ``error``, ``share``, ``n``.
        within: one row a predictor and size class: ``model``, ``size``, ``n``, ``within_25``.
        choice: the setting that the rule picks.
        settings: everything that decides the result.
        notes: what a reader of the numbers must know.
    """

    cluster: ClusterSpec
    loads: tuple[float, ...]
    natural_load: float
    num_flown: int
    num_rejected: int
    big: BigJobs
    model: str
    runs: pa.Table
    sizes: pa.Table
    predictions: pa.Table
    errors: pa.Table
    within: pa.Table
    choice: Choice
    settings: dict[str, Any]
    notes: tuple[str, ...]

    def at(self, load: float) -> list[dict[str, Any]]:
        """Return the runs at one load, in the order in which they were flown."""
        return [row for row in self.runs.to_pylist() if row["load"] == load]


def prediction_effect(
    jobs: Any,
    cluster: ClusterSpec | str,
    *,
    loads: Sequence[float] = LOADS,
    models: Sequence[str] = MODELS,
    agings: Sequence[float] = AGINGS,
    reservations: bool = True,
    placement: str | None = None,
    seed: int = 0,
    on_done: Callable[[str], None] = lambda _: None,
) -> PredictionEffect:
    """Fly the jobs with and without predictions, and say what the predictions bought.

    Jobs without a time, a duration or GPUs, or larger than the cluster, are rejected and counted.

    Args:
        jobs: as for `windtunnel.simulate`.
        cluster: as for `windtunnel.simulate`.
        loads: offered loads, to each of which the submissions are stretched.
        models: predictors; one that knows the truth (``oracle``) is a bound.
        agings: aging parameters to try with the best predictor.
        reservations: also try reservations with it.
        placement: as for `windtunnel.simulate`.
        seed: of the predictors and the placement.
        on_done: called with a label after each of `num_steps` runs.

    Raises:
        SpecError: a name or number is wrong, or the jobs offer no load.
        SchemaError: the jobs break the schema.
    """
    names, peeking = checked_models(models, seed)
    wanted = checked_numbers("loads", loads, least=1)
    checked_numbers("agings", agings, least=0)
    table = schema.as_jobs(jobs)
    spec = parse_cluster(cluster) if isinstance(cluster, str) else cluster
    conditions = conditions_of(
        spec, placement=placement, seed=seed, oversize="reject", incomplete="reject"
    )
    predictions = Predictions(table, seed)
    # A run of no length tells which jobs are rejected: that depends on neither load nor policy.
    plain = resolved(conditions.having(policy=resolve_policy(FIFO.policy), until=0.0))
    rehearsal = fly(table, plain, predictions)
    tunnel = _Tunnel(rehearsal, conditions, predictions)
    settings = [FIFO, *(shortest(name) for name in names)]
    for load in wanted:
        for setting in settings:
            tunnel.fly(load, setting)
            on_done(setting.label)
    model = _best(tunnel.runs, [n for n in names if n not in peeking] or names)
    for load in wanted:
        for setting in cures(model, agings, reservations=reservations):
            tunnel.fly(load, setting)
            on_done(setting.label)
    tunnel.sort(wanted)
    runs = judged(tunnel.runs)
    flown = tunnel.flown
    by_model = {name: predictions.of(name) for name in names}
    truth = numbers(table, "duration")
    return PredictionEffect(
        cluster=spec,
        loads=tuple(wanted),
        natural_load=tunnel.natural,
        num_flown=int(flown.sum()),
        num_rejected=int((~flown).sum()),
        big=tunnel.big,
        model=model,
        runs=pa.Table.from_pylist(runs),
        sizes=pa.Table.from_pylist(tunnel.sizes),
        predictions=_accuracies(by_model, truth, flown, peeking),
        errors=_errors(by_model, truth, flown),
        within=_within(by_model, truth, flown, rehearsal.num_gpus),
        choice=choose(runs, model),
        settings={
            "placement": rehearsal.settings["placement"],
            "sharing": rehearsal.settings["sharing"],
            "seed": seed,
            "models": names,
            "agings": list(agings),
            "reservations": reservations,
        },
        notes=_notes(rehearsal, flown, by_model, model, reserved=reservations),
    )


def num_steps(
    loads: Sequence[float], models: Sequence[str], agings: Sequence[float], *, reservations: bool
) -> int:
    """Return how often `prediction_effect` calls ``on_done``."""
    each = 1 + len(models) + len(cures("any", agings, reservations=reservations))
    return len(loads) * each


class _Tunnel:
    """The runs of the study, and what they gave.

    Attributes:
        runs: rows of `PredictionEffect.runs`, without what `judged` adds.
        sizes: rows of `PredictionEffect.sizes`.
        flown: bool array of shape (n,): the jobs that were not rejected.
        natural: the load that they offer as recorded.
        big: the big jobs.
    """

    def __init__(
        self, rehearsal: Outcome, conditions: Conditions, predictions: Predictions
    ) -> None:
        self._table = rehearsal.jobs
        self._cluster = rehearsal.cluster
        self._conditions = conditions
        self._predictions = predictions
        self.flown = rehearsal.flight.status != REJECTED
        self.natural = offered_load(self._table, self._cluster.num_gpus, self.flown)
        self.big = big_jobs(rehearsal.num_gpus, self.flown)
        self._stretched: dict[float, pa.Table] = {}
        self._order: dict[str, int] = {}
        self.runs: list[dict[str, Any]] = []
        self.sizes: list[dict[str, Any]] = []

    def fly(self, load: float, setting: Setting) -> None:
        """Fly one setting at one load and keep its rows."""
        if load not in self._stretched:
            self._stretched[load] = at_load(self._table, self.natural, load, self.flown)
        self._order.setdefault(setting.label, len(self._order))
        conditions = self._conditions.having(
            policy=resolve_policy(setting.policy),
            queueing=setting.queueing,
            estimates=setting.estimates,
        )
        outcome = fly(self._stretched[load], resolved(conditions), self._predictions)
        metrics = outcome.metrics()
        self.runs.append(
            {
                "load": load,
                "policy": setting.label,
                **fields_of(setting, "kind", "model", "aging", "queueing"),
                "num_finished": metrics["num_finished"],
                **{key: metrics[key] for key in _METRICS},
                **big_measures(outcome, self.big),
            }
        )
        named = {"load": load, "policy": setting.label}
        # All that fly finish: a class has as many jobs as started, the rejected do not count.
        self.sizes += [
            {**named, **row, "num_jobs": row["num_started"]}
            for row in outcome.by_size().to_pylist()
            if row["num_started"]
        ]

    def sort(self, loads: Sequence[float]) -> None:
        """Put the rows in order of load, then of the settings' first runs."""
        for rows in (self.runs, self.sizes):
            rows.sort(key=lambda row: (loads.index(row["load"]), self._order[row["policy"]]))


def _best(runs: Sequence[dict[str, Any]], models: Sequence[str]) -> str:
    """Return the predictor whose order keeps mean waits lowest over the loads; the first on a tie.

    Each load counts alike: what is averaged is the mean wait over that under first come first
    served (where nobody waits at all, 1).
    """
    base = {row["load"]: row["avg_wait"] for row in runs if row["kind"] == FIFO.kind}

    def score(model: str) -> float:
        shares = [
            row["avg_wait"] / base[row["load"]] if base[row["load"]] > 0 else 1.0
            for row in runs
            if row["model"] == model
        ]
        return float(np.mean(shares))

    return min(models, key=score)


def _accuracies(
    by_model: dict[str, np.ndarray], truth: np.ndarray, flown: np.ndarray, peeking: frozenset[str]
) -> pa.Table:
    rows = [
        {"model": name, "peeks": name in peeking, **accuracy(predicted[flown], truth[flown])}
        for name, predicted in by_model.items()
    ]
    return pa.Table.from_pylist(rows)


def _errors(by_model: dict[str, np.ndarray], truth: np.ndarray, flown: np.ndarray) -> pa.Table:
    rows = []
    for name, predicted in by_model.items():
        n = int((~np.isnan(predicted[flown])).sum())
        shares = error_cdf(predicted[flown], truth[flown])
        rows += [
            {"model": name, "error": at, "share": float(share) if n else None, "n": n}
            for at, share in zip(ERROR_GRID, shares, strict=True)
        ]
    return pa.Table.from_pylist(rows)


def _within(
    by_model: dict[str, np.ndarray], truth: np.ndarray, flown: np.ndarray, num_gpus: np.ndarray
) -> pa.Table:
    classes, labels = size_classes(num_gpus)
    rows = []
    for name, predicted in by_model.items():
        for code in np.unique(classes[flown]):
            members = flown & (classes == code)
            found = accuracy(predicted[members], truth[members])
            kept = {"n": found["num_predicted"], "within_25": found["within_25"]}
            rows.append({"model": name, "size": labels[code], **kept})
    return pa.Table.from_pylist(rows)


def _notes(
    rehearsal: Outcome,
    flown: np.ndarray,
    by_model: dict[str, np.ndarray],
    model: str,
    *,
    reserved: bool,
) -> tuple[str, ...]:
    """Return what a reader of the numbers must know, one sentence each."""
    notes = [f"{flown.sum():,} of {len(flown):,} jobs fly; only they are judged."]
    reasons: dict[str, int] = {}
    for reason in rehearsal.reasons.values():
        reasons[reason] = reasons.get(reason, 0) + 1
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    notes += [f"{n:,} job(s) cannot be flown: {reason}." for reason, n in ordered[:_REASONS]]
    rest = sum(n for _, n in ordered[_REASONS:])
    notes += [f"{rest:,} more cannot be flown for other reasons."] if rest else []
    notes.append(
        "Each job is predicted at its submission, from jobs that had ended by then in the log as "
        "it was recorded; stretching the submissions to another load changes no prediction."
    )
    for name, predicted in by_model.items():
        silent = int(np.isnan(predicted[flown]).sum())
        if silent:
            notes.append(
                f"{name} says nothing of {silent:,} job(s): they go by the wall time asked for, or "
                "without one first; a reservation then expects them to take a day."
            )
    overruns = int((numbers(rehearsal.jobs, "duration") > by_model[model])[flown].sum())
    if reserved and overruns:
        notes.append(
            f"{overruns:,} job(s) run longer than {model} expects; reservations are planned with "
            "what it expects, and nothing is killed."
        )
    return tuple(dict.fromkeys((*notes, *rehearsal.notes)))
