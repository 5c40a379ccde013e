"""`search_study`: the parameters of one policy that make a metric best, within limits.

Settings are proposed by Optuna's tree-structured Parzen estimator (Bergstra et al., NIPS 2011), in
batches of a fixed size, so that the proposals do not depend on how many workers fly them. Each is
flown under every condition and seed of the study; the objective is the mean over these runs, and
every one of them must keep to the limits. The runs go into the study's store: a search that was
killed proposes the same again, and finds them there.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError
from windtunnel.study.grid.executors import check_executor
from windtunnel.study.grid.measure import HIGHER_IS_BETTER, METRICS, OK
from windtunnel.study.grid.plan import grid, unique
from windtunnel.study.grid.run import Expedition
from windtunnel.study.grid.spec import PolicyEntry, Span
from windtunnel.study.grid.store import TRIALS, Results, Store, open_results, write_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from windtunnel.study.grid.plan import Cell
    from windtunnel.study.grid.spec import Limit, Search, Study

DIRECTIONS: tuple[str, ...] = ("minimize", "maximize")
#: Significant digits of a proposed number: more say nothing, and are hard to read.
_DIGITS = 4


@dataclass(frozen=True)
class TrialResult:
    """One setting that was tried.

    Attributes:
        number: from 0, in the order of proposal.
        parameters: name -> value.
        policy: what results call it.
        objective: mean over its runs; None where one of them has none.
        worst: constrained metric -> the value furthest in the forbidden direction.
        is_allowed: whether every run keeps to every limit.
        error: of the first run that has one.
    """

    number: int
    parameters: dict[str, Any]
    policy: str
    objective: float | None
    worst: dict[str, float | None]
    is_allowed: bool
    error: str | None


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        results: the store, with the runs of the study and of all trials.
        objective: the metric.
        direction: ``minimize`` or ``maximize``.
        trials: every setting, in the order of proposal.
        best: the best that is allowed, the first on a tie; None = none is.
        baseline: label of a policy of the study -> the objective of its runs.
    """

    results: Results
    objective: str
    direction: str
    trials: tuple[TrialResult, ...]
    best: TrialResult | None
    baseline: dict[str, float | None]


def search_study(
    study: Study,
    out: str | Path,
    *,
    on: str | Executor = "processes",
    workers: int | None = None,
    on_start: Callable[[int, int], None] = lambda _done, _total: None,
    on_done: Callable[[str], None] = lambda _: None,
) -> Found:
    """Search the parameters that ``[search]`` of a study describes.

    The study's own policies are flown first, as what to compare with.

    Args:
        study: the study, with ``search``.
        out: as for `run_study`.
        on: likewise.
        workers: likewise.
        on_start: likewise; called again with each batch.
        on_done: likewise.

    Raises:
        SpecError: the search is wrong, or Optuna is not installed; and as `run_study`.
    """
    check_executor(on, workers)
    search, entry = _checked(study)
    sampler = _Sampler(search)
    base = grid(study) if search.policy is not None and study.policies else []
    cells = list(base)
    trials: list[TrialResult] = []
    store = Store(out)
    with store.locked():
        with Expedition(study, store, on, workers) as expedition:
            if base:
                expedition.fly(cells, on_start=on_start, on_done=on_done)
            for first in range(0, search.trials, search.batch):
                proposed = sampler.propose(min(search.batch, search.trials - first))
                grids = [grid(study, only=entry, extra=values) for values in proposed]
                cells += [cell for own in grids for cell in own]
                expedition.fly(cells, on_start=on_start, on_done=on_done)
                for values, own in zip(proposed, grids, strict=True):
                    trials.append(_judged(len(trials), values, own, store, search))
                sampler.learn(trials[first:])
        store.gather([run.run_id for run in unique(cells)])
        write_parquet(store.folder / TRIALS, _table(trials))
    direction = _direction(search)
    baseline = {
        name: _mean(_rows(base, store, name), search)
        for name in dict.fromkeys(cell.run.policy for cell in base)
    }
    best = best_of(trials, direction)
    return Found(open_results(out), search.objective, direction, tuple(trials), best, baseline)


def best_of(trials: Sequence[TrialResult], direction: str) -> TrialResult | None:
    """Return the best allowed trial, the first on a tie; None where none is allowed."""
    allowed = [t for t in trials if t.is_allowed and t.objective is not None]
    sign = -1.0 if direction == "maximize" else 1.0
    return min(allowed, key=lambda t: sign * (t.objective or 0.0), default=None)


def _checked(study: Study) -> tuple[Search, PolicyEntry]:
    """Return the search and the policy whose parameters it searches."""
    search = study.search
    if search is None:
        raise SpecError("$.search", "the study has none; add [search] with objective and space.")
    checked_choice("$.search.objective", search.objective, METRICS)
    for name, limit in search.constraints.items():
        _check_limit(name, limit)
    if search.direction not in (None, *DIRECTIONS):
        raise SpecError.unknown("$.search.direction", str(search.direction), DIRECTIONS)
    if not search.space:
        raise SpecError("$.search.space", "expected at least one parameter.")
    for name, span in search.space.items():
        _check_span(f"$.search.space.{name}", span)
    if search.trials < 1 or search.batch < 1 or search.seed < 0:
        raise SpecError("$.search", "expected trials >= 1, batch >= 1 and seed >= 0.")
    entries = study.policy_entries()
    if search.policy is None and len(entries) != 1:
        raise SpecError("$.search.policy", "expected the policy whose parameters are searched.")
    entry = entries[0] if search.policy is None else PolicyEntry(policy=search.policy)
    return search, entry


def _check_limit(name: str, limit: Limit) -> None:
    checked_choice(f"$.search.constraints.{name}", name, METRICS)
    if limit.min is None and limit.max is None:
        raise SpecError(f"$.search.constraints.{name}", "expected min, max or both.")


def _check_span(where: str, span: Any) -> None:
    if not isinstance(span, Span):
        if not span:
            raise SpecError(where, "expected at least one value.")
        return
    if not -float("inf") < span.low < span.high < float("inf"):
        raise SpecError(where, f"found {span.low:g} to {span.high:g}; expected low < high.")
    if span.log and span.low <= 0:
        raise SpecError(where, f"found low = {span.low:g}; a logarithm needs numbers > 0.")
    if span.whole and not (span.low.is_integer() and span.high.is_integer()):
        raise SpecError(where, "expected whole numbers for low and high.")


def _direction(search: Search) -> str:
    usual = "maximize" if search.objective in HIGHER_IS_BETTER else "minimize"
    return search.direction or usual


class _Sampler:
    """Optuna's sampler: proposes settings, and hears what they gave."""

    def __init__(self, search: Search) -> None:
        try:
            import optuna
        except ImportError as error:
            message = "needs Optuna: pip install 'windtunnel[search]'."
            raise SpecError("$.search", message) from error
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._search = search
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that constraints may change in a later Optuna
            sampler = optuna.samplers.TPESampler(
                seed=search.seed, constraints_func=lambda trial: trial.user_attrs["violations"]
            )
        self._study = optuna.create_study(sampler=sampler, direction=_direction(search))
        self._fail = optuna.trial.TrialState.FAIL
        self._asked: list[Any] = []

    def propose(self, count: int) -> list[dict[str, Any]]:
        """Return so many settings, parameter -> value."""
        self._asked = [self._study.ask() for _ in range(count)]
        return [
            {name: _suggested(trial, name, span) for name, span in self._search.space.items()}
            for trial in self._asked
        ]

    def learn(self, trials: Sequence[TrialResult]) -> None:
        """Take in what the settings proposed last gave, in their order."""
        limits = self._search.constraints
        for asked, trial in zip(self._asked, trials, strict=True):
            violations = [
                _violation(limit, value)
                for limit, value in zip(limits.values(), trial.worst.values(), strict=True)
            ]
            asked.set_user_attr("violations", [v for pair in violations for v in pair])
            if trial.objective is None:
                self._study.tell(asked, state=self._fail)
            else:
                self._study.tell(asked, trial.objective)


def _suggested(trial: Any, name: str, span: Span | tuple[Any, ...]) -> Any:
    """Return the value that a trial proposes for a parameter."""
    if not isinstance(span, Span):
        return trial.suggest_categorical(name, list(span))
    if span.whole:
        return trial.suggest_int(name, int(span.low), int(span.high), log=span.log)
    value = float(f"{trial.suggest_float(name, span.low, span.high, log=span.log):.{_DIGITS}g}")
    return min(max(value, span.low), span.high)


def _violation(limit: Limit, value: float | None) -> tuple[float, float]:
    """Return by how much a value is above and below its limit; an unknown one breaks it."""
    return (1.0, 1.0) if value is None else _beyond(limit, value, 0.0)


def _judged(
    number: int, values: dict[str, Any], cells: list[Cell], store: Store, search: Search
) -> TrialResult:
    """Return what a setting gave."""
    rows = _rows(cells, store)
    worst = {name: _worst(rows, name, limit) for name, limit in search.constraints.items()}
    allowed = all(
        value is not None and max(_violation(limit, value)) <= 0
        for limit, value in zip(search.constraints.values(), worst.values(), strict=True)
    )
    errors = [row["error"] for row in rows if row["status"] != OK]
    return TrialResult(
        number=number,
        parameters=values,
        policy=cells[0].run.policy,
        objective=_mean(rows, search),
        worst=worst,
        is_allowed=allowed and not errors,
        error=errors[0] if errors else None,
    )


def _rows(cells: list[Cell], store: Store, policy: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of a grid's runs, those of one policy if it is named."""
    columns = ["run_id", "status", "error", *METRICS]
    chosen = unique([cell for cell in cells if policy in (None, cell.run.policy)])
    return [store.row(run.run_id).select(columns).to_pylist()[0] for run in chosen]


def _mean(rows: Sequence[dict[str, Any]], search: Search) -> float | None:
    """Return the mean of the objective; None where a run has none."""
    values = [row[search.objective] for row in rows]
    return None if None in values or not values else float(sum(values)) / len(values)


def _worst(rows: Sequence[dict[str, Any]], metric: str, limit: Limit) -> float | None:
    """Return the value that comes nearest to breaking a limit, or breaks it most."""
    values = [row[metric] for row in rows]
    if None in values:
        return None
    return float(max(values, key=lambda value: max(_beyond(limit, value, -float("inf")))))


def _beyond(limit: Limit, value: float, unlimited: float) -> tuple[float, float]:
    """Return by how much a value is above and below its limit, ``unlimited`` where it has none."""
    above = unlimited if limit.max is None else value - limit.max
    below = unlimited if limit.min is None else limit.min - value
    return above, below


def _table(trials: Sequence[TrialResult]) -> pa.Table:
    """Return the trials as a table: a row each, parameters and worst values as JSON."""
    schema = pa.schema(
        [
            ("number", pa.int64()),
            ("parameters", pa.string()),
            ("policy", pa.string()),
            ("objective", pa.float64()),
            ("worst", pa.string()),
            ("is_allowed", pa.bool_()),
            ("error", pa.string()),
        ]
    )
    rows = [
        {
            name: json.dumps(value, sort_keys=True) if isinstance(value, dict) else value
            for name, value in vars(trial).items()
        }
        for trial in trials
    ]
    return pa.Table.from_pylist(rows, schema=schema)
