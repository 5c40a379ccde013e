"""What a run knows of run times beforehand: predictors as columns of the jobs table.

A policy may order by a predictor (`windtunnel.sim.contract.Policy.by`), backfilling may plan with
one (``estimates``). Before the run each predictor goes once along the *recorded* log
(`windtunnel.predictors.predict_online`): a job's prediction is the one that could have been made at
its submission, from jobs that had ended by then, as they ran then. It does not follow what the run
makes of the schedule. So the order stays static, and every policy of a comparison knows the same.

Where a predictor says nothing (nothing like the job had ended), the requested wall time stands in;
where that is unknown too, the job goes first in an order, and backfilling expects it to take a day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError, nearest, quote
from windtunnel.predictors import PREDICTORS, predict_online, resolve_predictor
from windtunnel.predictors.features import numbers
from windtunnel.predictors.knowledge import past_of
from windtunnel.sim.columns import numeric_column
from windtunnel.sim.contract import ESTIMATES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.predictors import Predictor
    from windtunnel.sim.contract import Policy

#: What backfilling expects of a job of which nothing is known, s.
UNKNOWN_LENGTH = 86_400.0


def checked_estimates(value: str | None, policy: Policy) -> str:
    """Return where expected run times come from: the user's choice, else the policy's.

    Raises:
        SpecError: neither ``recorded`` nor ``perfect`` nor a predictor.
    """
    chosen = value or policy.estimates
    if chosen in ESTIMATES:
        return chosen
    if not _names_predictor(chosen):
        raise SpecError.unknown("estimates", chosen, [*ESTIMATES, *PREDICTORS])
    resolve_predictor(chosen)
    return chosen


class RunPredictions(NamedTuple):
    """The predictions that one run goes by.

    Attributes:
        columns: what the run needs on top of the jobs table's columns: name -> Float array (n,).
        order_by: what the policy orders by, in words; empty where it does not say.
        estimates: ``recorded``, ``perfect``, the column that backfilling plans with, or None.
        notes: what a reader of the numbers must know, one sentence each.
    """

    columns: dict[str, np.ndarray]
    order_by: str
    estimates: str | None
    notes: tuple[str, ...]

    def onto(self, table: pa.Table) -> pa.Table:
        """Return a jobs table of the same rows with these columns behind its own."""
        for name, values in self.columns.items():
            table = table.append_column(name, pa.array(values))
        return table


class Predictions:
    """The predictions for one jobs table; each predictor is asked once.

    Args:
        table: a validated jobs table.
        seed: of predictors that have one and do not say it.
    """

    def __init__(self, table: pa.Table, seed: int) -> None:
        self.table = table
        self._seed = seed
        self._by_name: dict[str, np.ndarray] = {}

    def of_rows(self, rows: Sequence[int]) -> Predictions:
        """Return the predictions for these rows, made as they are for all of the table."""
        if len(rows) == self.table.num_rows:
            return self
        return _Taken(self.table.take(list(rows)), self._seed, self.of, rows)

    def column_of(self, policy: Policy) -> str | None:
        """Return the name in ``policy.by`` that counts: a column, else a predictor; None = none.

        Raises:
            SpecError: no name of them is either, or the column does not hold numbers.
        """
        for name in policy.by:
            if name in self.table.column_names:
                numeric_column(self.table, name, f"policy {policy.label}")
                return name
        for name in policy.by:
            if _names_predictor(name):
                resolve_predictor(name, seed=self._seed)
                return name
        if not policy.by:
            return None
        wanted = policy.by[0]
        known = [*self.table.column_names, *PREDICTORS]
        raise SpecError(
            f"policy {policy.label}",
            f"found {quote(wanted)}, which is neither a column of the jobs nor a predictor."
            f"{nearest(wanted, known)} Columns: {', '.join(self.table.column_names)}. "
            f"Predictors: {', '.join(sorted(PREDICTORS))}.",
        )

    def for_policy(self, policy: Policy, estimates: str | None) -> RunPredictions:
        """Return what a run of the policy goes by.

        Args:
            policy: the policy.
            estimates: what `checked_estimates` returned, where the run plans; None = it does not.

        Raises:
            SpecError: as `column_of`; or a predictor needs something that is missing.
        """
        columns: dict[str, np.ndarray] = {}
        order_by = ""
        notes: list[str] = []
        name = self.column_of(policy)
        if name in self.table.column_names:
            order_by = f"column {name}"
        elif name is not None:
            predicted, predictor, notes = self._predicted(name, policy)
            columns[name] = self._stood_in(predicted, 0.0)
            order_by = f"predictor {predictor.label}"
            what = ("go", "by the wall time asked for", "first")
            notes += self._silent(policy, predicted, *what)
        if estimates is not None and estimates not in ESTIMATES:
            predicted, _, more = self._predicted(estimates, policy)
            values = np.maximum(self._stood_in(predicted, UNKNOWN_LENGTH), 0.0)
            estimates = f"expected by {estimates}"
            columns[estimates] = values
            overruns = int((numbers(self.table, "duration") > values).sum())
            if overruns:
                overrun = f"{policy.label}: {overruns:,} job(s) run longer than expected"
                notes.append(f"{overrun}; they are not killed.")
            what = ("are expected to take", "the wall time asked for", "a day")
            notes += [*more, *self._silent(policy, predicted, *what)]
        return RunPredictions(columns, order_by, estimates, tuple(dict.fromkeys(notes)))

    def of(self, name: str) -> np.ndarray:
        """Return what the predictor of this name says of each job, s, shape (n,), NaN = nothing.

        Raises:
            SpecError: no such predictor, or it needs something that is missing.
        """
        if name not in self._by_name:
            found = predict_online(self.table, resolve_predictor(name, seed=self._seed))
            self._by_name[name] = numbers(found, "predicted")
        return self._by_name[name]

    def _predicted(self, name: str, policy: Policy) -> tuple[np.ndarray, Predictor, list[str]]:
        """Return what a predictor says of each job (s, shape (n,), NaN = nothing), and notes."""
        predictor = resolve_predictor(name, seed=self._seed)
        predicted = self.of(name)
        if predictor.peeks:
            notes = [f"{predictor.label} knows the true run times: a bound, not a predictor."]
        else:
            note = f"{policy.label}: {predictor.label} predicts each job at its submission, from "
            note += "jobs that had ended by then in the recorded log."
            notes = [note, *past_of(self.table).notes]
        return predicted, predictor, notes

    def _stood_in(self, predicted: np.ndarray, otherwise: float) -> np.ndarray:
        """Return predictions, without one the estimate, without that ``otherwise``, shape (n,)."""
        values = np.where(np.isnan(predicted), numbers(self.table, "estimate"), predicted)
        known: np.ndarray = np.where(np.isnan(values), otherwise, values)
        return known

    def _silent(
        self, policy: Policy, predicted: np.ndarray, do: str, asked_for: str, unknown: str
    ) -> list[str]:
        """Return how many submitted jobs have no prediction, and what stands in for it."""
        silent = np.isnan(predicted) & ~np.isnan(numbers(self.table, "submit_time"))
        bare = int((silent & np.isnan(numbers(self.table, "estimate"))).sum())
        asked = int(silent.sum()) - bare
        parts = [f"{asked_for} ({asked:,})"] if asked else []
        parts += [f"{unknown} ({bare:,})"] if bare else []
        if not parts:
            return []
        total = f"{policy.label}: {asked + bare:,} job(s) have no prediction"
        return [f"{total} and {do} {', '.join(parts)}."]


class _Taken(Predictions):
    """The predictions for rows of another's table, some of them more than once."""

    def __init__(
        self,
        table: pa.Table,
        seed: int,
        whole: Callable[[str], np.ndarray],
        rows: Sequence[int],
    ) -> None:
        super().__init__(table, seed)
        self._whole, self._rows = whole, list(rows)

    def of(self, name: str) -> np.ndarray:
        """Return what the predictor of this name predicts of each job, as `Predictions.of`."""
        return self._whole(name)[self._rows]


def _names_predictor(text: str) -> bool:
    first, colon, _ = text.partition(":")
    return PREDICTORS.spelt(first.strip()) is not None or bool(colon)
