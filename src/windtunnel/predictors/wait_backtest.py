"""How well would waits have been predicted? On a held-back end of the log, from the past alone.

Each judged job is predicted at its submission from what had started by then; the interval's level
comes from the scores of jobs that had started before its day began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from windtunnel.checked import checked_number
from windtunnel.predictors.waits import PERCENTS, WaitHistory, calibrated, interval, score
from windtunnel.quantiles import quantiles

#: Jobs that are judged, and jobs before them whose scores calibrate, at most; evenly spaced.
MOST = 20_000
DAY = 86400.0


@dataclass(frozen=True)
class WaitBacktest:
    """A back-test; arrays in order of submission of the judged jobs.

    Attributes:
        history: the log.
        coverage: what the intervals are to cover.
        begin: from then on jobs are judged, s.
        rows: Int array (m,): the judged jobs of the history.
        low: Float array (m,), s; so are ``high`` (may be infinite) and ``middle`` (the median).
        high: see ``low``.
        middle: see ``low``.
        below: Bool array (m, percents): whether the wait was at most each of `PERCENTS`.
        scores: Float array (k,): scores of all jobs that were looked at, in order of their start.
        starts: Float array (k,): when they started, s.
    """

    history: WaitHistory
    coverage: float
    begin: float
    rows: np.ndarray
    low: np.ndarray
    high: np.ndarray
    middle: np.ndarray
    below: np.ndarray
    scores: np.ndarray
    starts: np.ndarray

    @property
    def held(self) -> np.ndarray:
        """Bool array (m,): whether the wait lay in the interval."""
        wait = self.history.wait[self.rows]
        held: np.ndarray = (self.low <= wait) & (wait <= self.high)
        return held

    def level_at(self, at: float) -> float:
        """Return the level of an interval of a request at some instant."""
        known = int(np.searchsorted(self.starts, at, side="right"))
        return calibrated(self.scores[:known], self.coverage)

    def summary(self) -> dict[str, Any]:
        """Return the back-test in numbers.

        Keys: ``n`` (jobs judged), ``coverage`` (wanted), ``covered`` (share in their interval),
        ``begin`` (s), ``p50_width`` (median width, s; null without bounded ones), ``unbounded``
        (intervals without an upper end), ``below`` (percent -> share of waits at most that
        quantile).
        """
        n = len(self.rows)
        width = (self.high - self.low)[np.isfinite(self.high)]
        shares = self.below.mean(axis=0).tolist() if n else [None] * len(PERCENTS)
        return {
            "n": n,
            "coverage": self.coverage,
            "covered": float(self.held.mean()) if n else None,
            "begin": self.begin,
            "p50_width": float(quantiles(width, 0.5)) if len(width) else None,
            "unbounded": int(np.isinf(self.high).sum()),
            "below": dict(zip(map(str, PERCENTS), shares, strict=True)),
        }

    def by_size(self) -> list[dict[str, Any]]:
        """Return coverage by size: ``size``, ``n``, ``covered``, ``p50_wait``, ``p90_wait`` (s)."""
        codes, wait = self.history.sizes[self.rows], self.history.wait[self.rows]
        found = []
        for code in np.unique(codes):
            mask = codes == code
            found.append(
                {
                    "size": self.history.size_names[code],
                    "n": int(mask.sum()),
                    "covered": float(self.held[mask].mean()),
                    "p50_wait": float(quantiles(wait[mask], 0.5)),
                    "p90_wait": float(quantiles(wait[mask], 0.9)),
                }
            )
        return found


def wait_backtest(
    history: WaitHistory,
    *,
    coverage: float = 0.8,
    held_back: float = 30 * DAY,
    until: float | None = None,
) -> WaitBacktest:
    """Back-test predictions of waits on the last part of a log.

    Args:
        coverage: share of waits that intervals are to hold, between 0 and 1.
        held_back: so much of the log's end is judged, s; at most its younger half.
        until: jobs submitted later are not judged, s; None = all.

    Raises:
        SpecError: ``coverage`` or ``held_back`` is out of range.
    """
    checked_number("--coverage", coverage, "a share between 0 and 1", above=0, below=1)
    checked_number("--held-back", held_back, "a time above 0", above=0)
    first, last = float(history.submit.min()), history.last if until is None else until
    begin = max(last - held_back, (first + last) / 2)
    started = ~np.isnan(history.start) & (history.submit <= last)
    judged = _spaced(np.flatnonzero(started & (history.submit >= begin)))
    before = started & (history.submit < begin) & (history.submit >= begin - held_back)
    rows = np.concatenate([_spaced(np.flatnonzero(before)), judged])
    scores, low, high, middle = (np.full(len(rows), np.nan) for _ in range(4))
    below = np.zeros((len(rows), len(PERCENTS)), dtype=bool)
    starts = history.start[rows]
    days = np.floor((history.submit[rows] - begin) / DAY)
    for day in np.unique(days).tolist():
        now = begin + day * DAY
        # Scores of jobs that had started when the day began, in the order of their starts.
        known = np.flatnonzero((starts <= now) & ~np.isnan(scores))
        level = calibrated(scores[known[np.argsort(starts[known], kind="stable")]], coverage)
        for place in np.flatnonzero(days == day).tolist():
            row = int(rows[place])
            waits, _ = history.sample(history.codes_of(row), float(history.submit[row]))
            if not len(waits):
                continue
            wait = float(history.wait[row])
            scores[place] = score(waits, wait)
            low[place], high[place] = interval(waits, level)
            cuts = np.ceil(np.round(np.array(PERCENTS) / 100 * len(waits), 9)).astype(int) - 1
            below[place] = wait <= waits[cuts]
            middle[place] = waits[cuts[PERCENTS.index(50)]]
    is_judged = np.arange(len(rows)) >= len(rows) - len(judged)
    is_judged &= ~np.isnan(low)
    scored = np.flatnonzero(~np.isnan(scores))
    scored = scored[np.argsort(starts[scored], kind="stable")]
    return WaitBacktest(
        *(history, coverage, begin, rows[is_judged], low[is_judged], high[is_judged]),
        *(middle[is_judged], below[is_judged], scores[scored], starts[scored]),
    )


def _spaced(rows: np.ndarray) -> np.ndarray:
    """Return at most `MOST` of the rows, evenly spaced."""
    if len(rows) <= MOST:
        return rows
    return rows[np.linspace(0, len(rows) - 1, MOST).astype(np.int64)]
