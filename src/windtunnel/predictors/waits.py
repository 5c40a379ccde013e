"""How long would a request wait? From the waits of the latest requests like it, made conformal.

A request is like those of the same GPU class, virtual cluster and user that met a queue of the
same class (`QUEUES`); where fewer than `LEAST` of them are known, the user is left out, then the
virtual cluster, then the GPUs, then the queue. The waits of the last `LAST` of them that had
started by then are its distribution F. Of the nested intervals

    I(c) = [F^-1((1 - c) / 2), least x with F(x) - F(low -) >= c],  0 < c < 1,

whose upper end makes up for a lower end that holds many equal waits (most are 0 or 1 s), the one
is taken whose c is the conformal quantile of the scores of earlier requests: the least c whose
interval held each one's wait (nested conformal prediction: Gupta, Kuchibhotla, Ramdas, *Pattern
Recognition* 127, 2022). Every number comes from jobs that had started before; a request that still
waits tells nothing yet, so that waits are predicted too short while a queue grows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.characterize.recorded import Recorded
from windtunnel.errors import SpecError
from windtunnel.predictors.conformal import conformal_quantile
from windtunnel.sim.metrics import size_classes

if TYPE_CHECKING:
    from collections.abc import Mapping


#: Upper ends of the classes of queues, GPUs asked for by those who wait; the last is open.
QUEUES: tuple[float, ...] = (0, 8, 64, 512)
#: So many of the latest waits are a request's distribution, and so many must be known.
LAST, LEAST = 1000, 100
#: Quantiles of a predicted wait.
PERCENTS: tuple[int, ...] = (10, 25, 50, 75, 90)
#: Levels among which a score lies.
_LEVELS = np.arange(1, 200) / 200
#: So many of the latest scores calibrate, and so many must be known for an interval.
_SCORES, _LEAST_SCORES = 4000, 50
#: What jobs like a request share with it, the most alike first; each is a choice of the code's
#: columns.
_KEYS: tuple[tuple[str, ...], ...] = (
    ("size", "vc", "user", "queue"),
    ("size", "vc", "queue"),
    ("size", "queue"),
    ("queue",),
    (),
)


@dataclass(frozen=True)
class Request:
    """A request for GPUs.

    Attributes:
        gpus: how many.
        vc: the virtual cluster; None = any.
        user: the user; None = any.
        at: when it would be submitted, s since the epoch.
    """

    gpus: float
    at: float
    vc: str | None = None
    user: str | None = None


@dataclass(frozen=True)
class WaitPrediction:
    """What a request's wait would be.

    Attributes:
        quantiles: percent -> s.
        low: lower end of the interval, s.
        high: upper end, s; infinite where too little is known.
        at_once: share of the requests like it that started within a second.
        alike: how many they are.
        by: what they have in common with it.
        queued_gpus: GPUs asked for by those who wait at that instant.
        queued_jobs: how many they are.
        held_gpus: GPUs that jobs hold at that instant.
        largest: most GPUs of a request that had started by then.
    """

    quantiles: dict[int, float]
    low: float
    high: float
    at_once: float
    alike: int
    by: tuple[str, ...]
    queued_gpus: float
    queued_jobs: int
    held_gpus: float
    largest: float


class WaitHistory:
    """The recorded waits of a trace's GPU jobs.

    Args:
        jobs: a jobs table (`windtunnel.schema`) with recorded starts.

    Raises:
        SpecError: it records no wait of a GPU job.
    """

    def __init__(self, jobs: pa.Table) -> None:
        found = Recorded.of(jobs)
        rows = np.flatnonzero((found.gpus > 0) & ~np.isnan(found.submit))
        rows = rows[np.lexsort((rows, found.submit[rows]))]
        self.submit, self.start = found.submit[rows], found.start[rows]
        self.gpus, self.wait = found.gpus[rows], found.wait[rows]
        if np.isnan(self.wait).all():
            raise SpecError(
                "trace", "it records no start of a GPU job, so that no wait can be learnt."
            )
        leave = np.where(np.isnan(found.start), found.end, found.start)[rows]
        ended = np.asarray(jobs["end_time"].to_numpy(), dtype=np.float64)[rows]
        leave = np.where(np.isnan(leave), np.where(np.isnan(ended), np.inf, ended), leave)
        # A job that starts at once is never in the line.
        waited = leave > self.submit
        self._joined, self._joined_gpus = _running(self.submit[waited], self.gpus[waited])
        self._left, self._left_gpus = _running(leave[waited], self.gpus[waited])
        self._held_at, self._held = found.held
        self.sizes, self.size_names = size_classes(self.gpus)
        vcs, users = found.names("vc"), found.names("user")
        self._names = {
            "vc": {name: code for code, name in enumerate(vcs[1])},
            "user": {name: code for code, name in enumerate(users[1])},
        }
        queued = self._queued(self.submit)[0]
        self._codes = {
            "size": self.sizes,
            "vc": vcs[0][rows],
            "user": users[0][rows],
            "queue": np.searchsorted(QUEUES, np.rint(queued * 1e6) / 1e6, side="left"),
        }
        self._known = ~np.isnan(self.start)
        self._groups: dict[tuple[str, ...], dict[Any, tuple[np.ndarray, np.ndarray]]] = {}

    @property
    def last(self) -> float:
        """The last submission of the log, s."""
        return float(self.submit.max())

    def sample(self, codes: dict[str, int | None], at: float) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return the waits of the latest requests like one, and what they have in common with it.

        Args:
            codes: ``size``, ``vc``, ``user``, ``queue`` -> code; None = not given, or never seen.
            at: only starts up to this instant are known, s.

        Returns:
            Float array (k,), s, ascending; empty where none is known.
        """
        waits = np.empty(0)
        for keys in _KEYS:
            wanted = tuple(codes[key] for key in keys)
            if None in wanted:
                continue
            starts, of_group = self._group(keys).get(wanted, (waits[:0], waits[:0]))
            known = int(np.searchsorted(starts, at, side="right"))
            waits = of_group[max(0, known - LAST) : known]
            if known >= LEAST or not keys:
                return np.sort(waits), keys
        return waits, ()

    def codes_of(self, row: int) -> dict[str, int | None]:
        """Return the codes of a job of the log."""
        return {key: int(codes[row]) for key, codes in self._codes.items()}

    def predict(self, request: Request, level: float) -> WaitPrediction:
        """Return what a request's wait would be.

        Args:
            level: c of the interval, as `WaitBacktest.level_at` gives it; above 1 = unbounded.

        Raises:
            SpecError: nothing had started by then.
        """
        gpus, jobs = self._queued(np.array([request.at]))
        code = size_classes(np.array([request.gpus]))[0][0]
        codes: dict[str, int | None] = {
            "size": int(code),
            "queue": int(np.searchsorted(QUEUES, np.rint(gpus[0] * 1e6) / 1e6, side="left")),
        }
        for key, name in (("vc", request.vc), ("user", request.user)):
            codes[key] = None if name is None else self.code_of(key, name)
        if request.user is not None and request.vc is None:
            codes["user"] = None
        waits, by = self.sample(codes, request.at)
        if not len(waits):
            raise SpecError(
                "--at", "no GPU job had started by then, so no wait is known; name a later time."
            )
        low, high = interval(waits, level)
        place = int(np.searchsorted(self._held_at, request.at, side="right"))
        return WaitPrediction(
            {percent: _quantile(waits, percent / 100) for percent in PERCENTS},
            low,
            high,
            float((waits < 1).mean()),
            len(waits),
            by,
            float(gpus[0]),
            int(jobs[0]),
            float(self._held[place - 1]) if place else 0.0,
            float(self.gpus[self.start <= request.at].max()),
        )

    def code_of(self, key: str, name: str) -> int:
        """Return the code of a virtual cluster or user.

        Raises:
            SpecError: the log has none of this name; the nearest is suggested.
        """
        known = self._names[key]
        if name not in known:
            raise SpecError.unused(f"--{key}", key, name, known, where="the log")
        return known[name]

    def _queued(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the GPUs asked for by the jobs in line at some instants, and how many jobs.

        What is submitted at an instant is not in line yet, what starts at it no longer.
        """
        came = np.searchsorted(self._joined, at, side="left")
        went = np.searchsorted(self._left, at, side="right")
        return self._joined_gpus[came] - self._left_gpus[went], came - went

    def _group(self, keys: tuple[str, ...]) -> dict[Any, tuple[np.ndarray, np.ndarray]]:
        """Return codes of the keys -> starts, ascending, and waits of the jobs that have them."""
        if keys not in self._groups:
            rows = np.flatnonzero(self._known)
            rows = rows[np.argsort(self.start[rows], kind="stable")]
            columns = [self._codes[key][rows] for key in keys]
            table = np.stack(columns, axis=1) if columns else np.zeros((len(rows), 1), np.int64)
            names, place = np.unique(table, axis=0, return_inverse=True)
            order = np.argsort(place.ravel(), kind="stable")
            bounds = np.cumsum(np.bincount(place.ravel()))[:-1]
            parts = np.split(rows[order], bounds)
            self._groups[keys] = {
                tuple(name) if keys else (): (self.start[part], self.wait[part])
                for name, part in zip(names.tolist(), parts, strict=True)
            }
        return self._groups[keys]


def _running(times: np.ndarray, gpus: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return instants in order, and the GPUs of all events up to the k-th, shape (n + 1,)."""
    order = np.argsort(times, kind="stable")
    return times[order], np.concatenate([[0.0], np.cumsum(gpus[order])])


def _quantile(waits: np.ndarray, share: float) -> float:
    """Return the least wait that at least this share does not exceed; ``waits`` ascend."""
    return float(waits[max(0, math.ceil(round(share * len(waits), 9)) - 1)])


def interval(waits: np.ndarray, level: float) -> tuple[float, float]:
    """Return I(c) of ascending waits, both ends within it; (0, infinity) for a level above 1.

    >>> interval(np.array([0.0, 0.0, 0.0, 5.0, 9.0]), 0.8)
    (0.0, 5.0)
    """
    if level > 1 or not len(waits):
        return 0.0, math.inf
    low = _quantile(waits, (1 - level) / 2)
    below = int(np.searchsorted(waits, low, side="left"))
    high = waits[min(len(waits), below + math.ceil(round(level * len(waits), 9))) - 1]
    return low, float(high)


def score(waits: np.ndarray, wait: float) -> float:
    """Return the least of the levels whose interval holds a wait; infinite where none does."""
    lows = np.ceil(np.round((1 - _LEVELS) / 2 * len(waits), 9)).astype(int) - 1
    lows = waits[np.maximum(lows, 0)]
    below = np.searchsorted(waits, lows, side="left")
    counts = np.ceil(np.round(_LEVELS * len(waits), 9)).astype(int)
    highs = waits[np.minimum(len(waits), below + counts) - 1]
    holds = (lows <= wait) & (wait <= highs)
    return float(_LEVELS[int(holds.argmax())]) if holds.any() else math.inf


def calibrated(scores: np.ndarray, coverage: float) -> float:
    """Return the level that covers as asked for, by the latest scores; infinite if they are few."""
    latest = scores[-_SCORES:]
    return conformal_quantile(latest, coverage) if len(latest) >= _LEAST_SCORES else math.inf


#: Time limits between half of a request's and twice of it are like it.
LIKE_LIMIT = 2.0


def jobs_alike(
    jobs: pa.Table, wanted: Mapping[str, str | None], limit: float | None = None
) -> pa.Table:
    """Return the jobs from which a request's wait is predicted.

    Args:
        wanted: column -> word that they have in it, in any case; None = any.
        limit: a time limit, s: theirs are between half of it and twice of it; None = any.

    Raises:
        SpecError: no job has such a word, or such a limit; the nearest word is suggested.
    """
    for column, word in wanted.items():
        if word is None:
            continue
        option = f"--{column.replace('_', '-')}"
        there = column in jobs.column_names
        words = [name or "" for name in jobs[column].to_pylist()] if there else []
        mask = np.array([name.lower() == word.lower() for name in words], dtype=bool)
        if not mask.any():
            kind, known = column.replace("_", " "), set(words) - {""}
            raise SpecError.unused(option, kind, word, known, where="the log")
        jobs = jobs.filter(pa.array(mask))
    if limit is None:
        return jobs
    asked = np.asarray(jobs["estimate"].to_numpy(), dtype=np.float64)
    mask = (asked >= limit / LIKE_LIMIT) & (asked <= limit * LIKE_LIMIT)
    if not mask.any():
        raise SpecError("--time-limit", f"no job of the log asked for about {limit:g} s.")
    return jobs.filter(pa.array(mask))
