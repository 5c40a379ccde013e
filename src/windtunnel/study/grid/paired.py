"""Who beats whom in a study: paired comparisons, each with its interval, claims only with one.

Runs are paired that differ in one axis alone, and flew the same jobs. What is compared is a ratio
of means; its interval comes from resampling the study's independent draws, pairs kept together:

* ``seeds``: each seed of a trace that is made is another draw of the workload, and each seed of a
  log cut by ``windows=12`` another of its windows. Seeds of any other trace that is read only vary
  what a run itself draws (placement, failures); where they vary nothing, they count as one draw.
* ``weeks``, ``users``: the jobs submitted in one week of the record, or by one user, together. This
  is how a single recorded log gets an interval (a cluster bootstrap, with ratios of sums). Weeks
  that hand their queue to the next, and users who share the cluster, are not quite independent.

Over several conditions the change is the geometric mean of theirs; conditions of one trace share
its draws, and are resampled together. This interval is of *these* traces. Where there are
`LEAST_TRACES`, another is given that is of traces *like* these: they are draws, too, and each has a
change of its own (a random effect). It is Student's t over the traces' changes, whose spread holds
both what tells traces apart and what their windows leave open.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError, quote
from windtunnel.study.grid.measure import HIGHER_IS_BETTER, OK
from windtunnel.study.statistics import Interval, bootstrap, student_quantile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windtunnel.study.grid.store import Results

#: What may be compared, all else being equal.
AXES: tuple[str, ...] = (
    *("trace", "cluster", "load", "placement", "queueing", "parameters", "policy"),
)
#: What independent draws may be.
OVER: tuple[str, ...] = ("seeds", "weeks", "users")
#: Metrics that are means over jobs: column of sums, and the number that they are divided by.
_SUMS = {
    "avg_wait": ("wait", "num_started"),
    "avg_jct": ("jct", "num_finished"),
    "avg_bounded_slowdown": ("bounded_slowdown", "num_finished"),
}
#: With fewer draws intervals are given, and no claim is made: they cover too little.
LEAST_DRAWS = 6
#: With fewer traces no interval is given for traces like them.
LEAST_TRACES = 4
#: What may be claimed of a comparison.
BETTER, WORSE, UNCLEAR, FEW, NOTHING = "better", "worse", "unclear", "few", "nothing"


@dataclass(frozen=True)
class Contrast:
    """One comparison.

    Attributes:
        metric: what is compared.
        value: label on the axis that is compared.
        baseline: label that it is compared with.
        condition: axis -> value that both share; None = all conditions together.
        mean: of the metric, over draws; None over several conditions.
        baseline_mean: likewise.
        change: mean / baseline's mean - 1, with its interval.
        num_missing: draws that are left out, for a run of them failed or tells nothing.
        verdict: ``better``, ``worse`` (claims); ``unclear``: the interval holds 0; ``few``: fewer
            draws than `LEAST_DRAWS`; ``nothing``: no ratio can be formed, as where the baseline's
            mean is 0 or, in a resample, may be.
        elsewhere: the change on traces like those of the study, ``num_draws`` being traces; None of
            one condition, and with fewer than `LEAST_TRACES`.
    """

    metric: str
    value: str
    baseline: str
    condition: dict[str, Any] | None
    mean: float | None
    baseline_mean: float | None
    change: Interval
    num_missing: int
    verdict: str
    elsewhere: Interval | None = None


@dataclass(frozen=True)
class Paired:
    """The comparisons of a study.

    Attributes:
        metrics: what was compared.
        between: the axis that was compared.
        over: what the draws are.
        baseline: the label that the others are compared with.
        contrasts: by metric, value and condition; all conditions together last.
        confidence: of each interval.
        notes: what a reader must know, one sentence each.
    """

    metrics: tuple[str, ...]
    between: str
    over: str
    baseline: str
    contrasts: tuple[Contrast, ...]
    confidence: float
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Sample:
    """The draws of one comparison.

    Attributes:
        condition: that both share.
        pairs: draw -> sum and what it is divided by, and the baseline's two.
        missing: draws that are left out.
    """

    condition: dict[str, Any]
    pairs: dict[Any, tuple[float, ...]]
    missing: int

    def array(self, draws: Iterable[Any]) -> np.ndarray:
        """Return the pairs of some draws, Float array of shape (draws, 4)."""
        return np.array([self.pairs[key] for key in draws], dtype=np.float64).reshape(-1, 4)


def compare_results(
    results: Results,
    *,
    metrics: tuple[str, ...] = ("avg_wait",),
    between: str = "policy",
    baseline: str | None = None,
    over: str | None = None,
    confidence: float = 0.95,
    resamples: int = 9999,
    seed: int = 0,
) -> Paired:
    """Compare the runs of a study, one axis at a time.

    Args:
        results: the study's results, finished or not.
        metrics: columns of the results; less is better but for `measure.HIGHER_IS_BETTER`.
        between: the axis, one of `AXES`.
        baseline: its label that the others are compared with; None = the first.
        over: ``seeds``, ``weeks`` or ``users``; None = seeds, where there are several, else weeks.
        confidence: of each interval by itself.
        resamples: of the bootstrap.
        seed: of the bootstrap.

    Raises:
        SpecError: an unknown name, or nothing to compare.
    """
    chosen = over or ("seeds" if len(results.manifest["seeds"]) > 1 else "weeks")
    _check(metrics, between, chosen, results.metrics)
    cells = results.manifest["grid"]
    labels = list(dict.fromkeys(axis_label(cell, between) for cell in cells))
    first = labels[0] if baseline is None else baseline
    checked_choice("--baseline", first, labels)
    others = [label for label in labels if label != first]
    if not others:
        raise SpecError(
            "--between", f"the study has one {between} alone, {quote(first)}; nothing to compare."
        )
    rows = {row["run_id"]: row for row in results.rows}
    options = {"confidence": confidence, "resamples": resamples, "seed": seed}
    found: list[Contrast] = []
    for metric in metrics:
        for label in others:
            samples = _samples(
                results, rows, metric, between=between, pair=(label, first), over=chosen
            )
            found += _contrasts(samples, metric, (label, first), options)
    notes = _notes(found, chosen, confidence, set(results.manifest["made"]), results)
    return Paired(metrics, between, chosen, first, tuple(found), confidence, notes)


def _check(metrics: tuple[str, ...], between: str, over: str, known: tuple[str, ...]) -> None:
    checked_choice("--between", between, AXES)
    checked_choice("--over", over, OVER)
    for metric in metrics:
        checked_choice("--metric", metric, known)
        if over != "seeds" and metric not in _SUMS:
            raise SpecError(
                "--metric",
                f"{quote(metric)} is no mean over jobs, as {over} need; expected one of "
                f"{', '.join(_SUMS)}, or several seeds and --over seeds.",
            )


def axis_label(cell: dict[str, Any], axis: str) -> str:
    """Return the words for a place on an axis.

    >>> axis_label({"load": None}, "load"), axis_label({"load": 0.9}, "load")
    ('recorded', '0.9')
    """
    value = cell[axis]
    if axis == "load":
        return "recorded" if value is None else f"{value:g}"
    if axis == "parameters":
        return ", ".join(f"{name}={item}" for name, item in value.items()) or "none"
    return "default" if value is None else str(value)


def _samples(
    results: Results,
    rows: dict[str, dict[str, Any]],
    metric: str,
    *,
    between: str,
    pair: tuple[str, str],
    over: str,
) -> list[_Sample]:
    """Return the draws of a comparison under each condition."""
    made = set(results.manifest["made"])
    places: dict[str, dict[str, Any]] = {}
    for cell in results.manifest["grid"]:
        label = axis_label(cell, between)
        if label in pair:
            shared = {axis: cell[axis] for axis in AXES if axis != between}
            key = json.dumps(shared, sort_keys=True)
            place = places.setdefault(key, {"condition": shared, pair[0]: {}, pair[1]: {}})
            place[label][cell["seed"]] = rows.get(cell["run_id"])
    return [
        _sample(place, metric, pair, over, made)
        for place in places.values()
        if place[pair[0]] and place[pair[1]]
    ]


def _sample(
    place: dict[str, Any], metric: str, pair: tuple[str, str], over: str, made: set[str]
) -> _Sample:
    """Return the draws of a comparison under one condition."""
    missing, is_made = 0, place["condition"].get("trace") in made
    sums: dict[Any, np.ndarray] = {}
    for seed, ours in place[pair[0]].items():
        theirs = place[pair[1]].get(seed)
        both = [_values(row, metric, over) for row in (ours, theirs)]
        if not both[0] or not both[1]:
            missing += 1
            continue
        for unit in both[0].keys() | both[1].keys():
            key = (seed, unit) if over == "seeds" or is_made else unit
            values = (*both[0].get(unit, (0.0, 0.0)), *both[1].get(unit, (0.0, 0.0)))
            sums[key] = sums.get(key, np.zeros(4)) + np.array(values)
    pairs = {key: tuple(sums[key].tolist()) for key in sorted(sums, key=str)}
    if over == "seeds" and not is_made and len({*pairs.values()}) == 1:
        first = next(iter(pairs))
        pairs = {first: pairs[first]}
    return _Sample(place["condition"], pairs, missing)


def _values(row: dict[str, Any] | None, metric: str, over: str) -> dict[str, tuple[float, float]]:
    """Return a run's draws: name -> sum and its divisor; empty where it tells nothing."""
    if row is None or row["status"] != OK:
        return {}
    if over == "seeds":
        return {} if row[metric] is None else {"": (float(row[metric]), 1.0)}
    total, number = _SUMS[metric]
    return {group["group"]: (group[total], float(group[number])) for group in row[over] or ()}


def _contrasts(
    samples: list[_Sample], metric: str, pair: tuple[str, str], options: dict[str, Any]
) -> list[Contrast]:
    """Return a comparison under each condition, then under all together."""
    found = []
    for one in samples:
        array = one.array(one.pairs)
        change = _change([[array]], options)
        means, verdict = _means(array), _verdict(metric, change)
        found.append(Contrast(metric, *pair, one.condition, *means, change, one.missing, verdict))
    if len(samples) > 1:
        strata: dict[Any, list[_Sample]] = {}
        for one in samples:
            strata.setdefault(one.condition.get("trace"), []).append(one)
        arrays = [_aligned(group) for group in strata.values()]
        change = _change(arrays, options)
        missing = sum(one.missing for one in samples)
        verdict, likely = _verdict(metric, change), _elsewhere(arrays, options["confidence"])
        found.append(Contrast(metric, *pair, None, None, None, change, missing, verdict, likely))
    return found


def _elsewhere(strata: list[list[np.ndarray]], confidence: float) -> Interval | None:
    """Return the change on traces like these: Student's t over their own; None where too few."""
    changes = [_log_change(arrays) for arrays in strata]
    if len(changes) < LEAST_TRACES or not np.isfinite(changes).all():
        return None
    middle, count = float(np.mean(changes)), len(changes)
    error = float(np.std(changes, ddof=1)) / math.sqrt(count)
    reach = student_quantile((1 + confidence) / 2, count - 1) * error
    low, high = math.expm1(middle - reach), math.expm1(middle + reach)
    return Interval(math.expm1(middle), low, high, confidence, count)


def _log_change(arrays: list[np.ndarray]) -> float:
    """Return the mean log ratio of one trace's conditions."""
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = np.array([array.sum(axis=0) for array in arrays])
        logs = np.log(sums[:, 0] / sums[:, 1]) - np.log(sums[:, 2] / sums[:, 3])
    return float(logs.mean())


def _aligned(samples: list[_Sample]) -> list[np.ndarray]:
    """Return the draws that all samples of a trace have, in the same order."""
    shared = set.intersection(*(set(sample.pairs) for sample in samples))
    return [sample.array(key for key in sample.pairs if key in shared) for sample in samples]


def _means(array: np.ndarray) -> tuple[float | None, float | None]:
    """Return both means; None without draws."""
    sums = array.sum(axis=0)
    ours = float(sums[0] / sums[1]) if sums[1] > 0 else None
    theirs = float(sums[2] / sums[3]) if sums[3] > 0 else None
    return ours, theirs


def _change(strata: list[list[np.ndarray]], options: dict[str, Any]) -> Interval:
    """Return the geometric mean of ratios, less 1, with its interval.

    Args:
        strata: for each trace its conditions' draws, arrays of shape (draws, 4), in one order.
        options: of `bootstrap`.
    """

    def statistic(indices: list[np.ndarray]) -> np.ndarray:
        logs = []
        with np.errstate(divide="ignore", invalid="ignore"):
            for rows, arrays in zip(indices, strata, strict=True):
                for array in arrays:
                    sums = array[rows].sum(axis=1)
                    logs.append(np.log(sums[:, 0] / sums[:, 1]) - np.log(sums[:, 2] / sums[:, 3]))
            change: np.ndarray = np.expm1(np.mean(logs, axis=0))
        return change

    sizes = [len(arrays[0]) for arrays in strata]
    if min(sizes) == 0:
        return Interval(float("nan"), None, None, options["confidence"], 0)
    return bootstrap(sizes, statistic, **options)


def _verdict(metric: str, change: Interval) -> str:
    """Return what may be claimed."""
    if change.num_draws == 0 or not np.isfinite(change.estimate):
        return NOTHING
    if change.num_draws < LEAST_DRAWS:
        return FEW
    if not change.is_known:
        return NOTHING
    lower, higher = change.lies_below(0.0), change.lies_above(0.0)
    if not lower and not higher:
        return UNCLEAR
    return BETTER if lower != (metric in HIGHER_IS_BETTER) else WORSE


def _notes(
    found: list[Contrast], over: str, confidence: float, made: set[str], results: Results
) -> tuple[str, ...]:
    """Return what a reader of the comparisons must know."""
    sure = f"{100 * confidence:g} %"
    how = f"Changes are ratios of means; intervals are BCa bootstrap ones of {sure} over {over}, "
    notes = [how + f"widened for few draws, each by itself; there are {len(found)} of them."]
    few = [c for c in found if c.verdict == FEW]
    if few:
        notes.append(f"{len(few)} rest on fewer than {LEAST_DRAWS} draws: no claim is made.")
    read = [t for t in {cell["trace"] for cell in results.manifest["grid"]} if t not in made]
    if over == "seeds" and read:
        notes.append(
            f"{', '.join(sorted(read))}: the log is the same for every seed; seeds vary only what "
            "a run draws, and count once where they vary nothing. Compare over weeks or users."
        )
    if over != "seeds":
        notes.append(
            "The jobs of a week are resampled together; a week hands its queue to the next."
            if over == "weeks"
            else "The jobs of a user are resampled together; users share the cluster."
        )
    missing = sum(contrast.num_missing for contrast in found if contrast.condition is not None)
    if missing:
        notes.append(f"{missing} pairs are left out: a run failed, is not there or tells nothing.")
    return tuple(notes)
