"""A predictor inside a simulation: fed with completions in simulated time.

`OnlinePredictor` makes the same predictions as `windtunnel.predictors.along.predict_along` where it
is told of the same completions at the same times; a simulation tells it of its own, which other
policies make happen at other times.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.predictors.catalogue import resolve_predictor
from windtunnel.predictors.convention import MODEL, Given, Predicted
from windtunnel.predictors.fitted import Fitted
from windtunnel.predictors.recalling import Recall, Recalling, recalled
from windtunnel.predictors.refreshing import MIN_HISTORY, TRAIN_LAST, Refreshing
from windtunnel.predictors.submission import numbers
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.predictors.convention import Predictor


class OnlinePredictor:
    """A predictor that goes along a run.

    Args:
        model: a name, a `Predictor`, or an object with ``fit`` and ``predict``; it is not changed.
        jobs: the jobs of the run; rows are given by their number in it. A true duration is read
            only by models that peek (``oracle``, ``noise``).
        refresh: see `windtunnel.predictors.along.predict_along`, as for what follows.
        refresh_jobs: completions between trainings.
        min_history: completions before the first training.
        train_last: completions that a training uses at most.
        seed: of a model given by name.

    Raises:
        SchemaError: the jobs break the schema.
        SpecError: a name or an option is wrong, or scikit-learn is missing.
    """

    def __init__(
        self,
        model: str | Predictor | Any,
        jobs: Any,
        *,
        refresh: float | None = None,
        refresh_jobs: int | None = None,
        min_history: int = MIN_HISTORY,
        train_last: int = TRAIN_LAST,
        seed: int = 0,
    ) -> None:
        table = as_jobs(jobs)
        self.predictor = resolve_predictor(model, seed=seed).clone()
        self._often = Refreshing.of(refresh, refresh_jobs, min_history, train_last)
        submit = numbers(table, "submit_time")
        self._origin = float(np.nanmin(submit)) if (~np.isnan(submit)).any() else 0.0
        self._now = -np.inf
        self._rows: list[int] = []
        self._seconds: list[float] = []
        self._times: list[float] = []
        self._trained = 0
        self._given: np.ndarray | None = None
        self._recall: Recall | None = None
        self._prepared: Any = None
        if isinstance(self.predictor, Given):
            self._given = self.predictor.read(table)
        elif isinstance(self.predictor, Recalling):
            self._recall = Recall(self.predictor.memory(), table)
        elif isinstance(self.predictor, Fitted):
            self._recall = Recall(self.predictor.fallback().memory(), table)
            self._prepared = self.predictor.prepare(table)

    def observe(self, row: int, duration: float, now: float) -> None:
        """Learn that a job has ended.

        Args:
            row: its row in the jobs table.
            duration: what it took, s.
            now: the simulated instant, s; never earlier than in an earlier call.

        Raises:
            SpecError: time runs backwards, or the duration is not a number >= 0.
        """
        self._advance(now)
        if not 0 <= duration < np.inf:
            raise SpecError("duration", f"found {duration!r}; expected seconds >= 0.")
        if self._recall is not None:
            self._recall.observe(row, float(duration))
        if isinstance(self.predictor, Fitted):
            self.predictor.see(self._prepared, row)
            self.predictor.observe(self._prepared, row, float(duration))
            self._rows.append(row)
            self._seconds.append(float(duration))
            self._times.append(now)

    def explain(self, rows: Sequence[int], now: float) -> Predicted:
        """Return what is predicted for jobs at ``now``, with what it rests on, in their order.

        A fitted model knows a job as it was when it was asked about first: ask at its submission.

        Raises:
            SpecError: time runs backwards, or scikit-learn is missing.
        """
        self._advance(now)
        chosen = np.asarray(rows, dtype=np.int64)
        if self._given is not None:
            return Predicted.by_model(self._given[chosen])
        if self._recall is None:
            return Predicted.nothing(len(chosen))
        found = recalled(self._recall, chosen.tolist())
        if not isinstance(self.predictor, Fitted):
            return found
        for row in chosen.tolist():
            self.predictor.see(self._prepared, row)
        self._train(self.predictor, now)
        if self._trained and len(chosen):
            own = self.predictor.predict_rows(self._prepared, chosen)
            mixed = self.predictor.combine(found.seconds, own)
            spoke = ~np.isnan(own)
            found.seconds[spoke] = mixed[spoke]
            found.source[spoke], found.runs[spoke] = MODEL, 0
        return found

    def predict(self, rows: Sequence[int], now: float) -> np.ndarray:
        """Return predicted durations at ``now``, s, NaN = none; raises as `explain`."""
        return self.explain(rows, now).seconds

    def _advance(self, now: float) -> None:
        if not now >= self._now:
            raise SpecError("now", f"found {now!r} after {self._now!r}; time runs forwards.")
        self._now = now

    def _train(self, predictor: Fitted, now: float) -> None:
        """Train the predictor where the time for it has come."""
        often = self._often
        before = len(self._times)
        if often.refresh_jobs is not None:
            trained = before // often.refresh_jobs * often.refresh_jobs
        else:
            span = float(often.refresh or 0.0)
            last = self._origin + np.floor((now - self._origin) / span) * span
            trained = bisect_left(self._times, last)
        if trained < often.min_history or trained == self._trained:
            return
        self._trained = trained
        used = often.used(trained)
        predictor.fit_rows(
            self._prepared,
            np.array(self._rows[used], dtype=np.int64),
            np.array(self._seconds[used]),
        )
