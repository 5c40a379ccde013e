"""An engine's request log served again: what was measured, what is simulated, and the error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.errors import TraceError
from windtunnel.plain import fields_of
from windtunnel.serving.llm_costs import LinearCost
from windtunnel.serving.llm_measured import RequestLog, read_request_log
from windtunnel.serving.llm_outcome import latency_figure
from windtunnel.serving.llm_simulate import simulate_llm

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.serving.llm_model import LlmModel
    from windtunnel.serving.llm_outcome import LlmOutcome

#: The twelve figures: these of each of the three latencies.
POINTS = ("mean", "p50", "p90", "p99")
LATENCIES = ("ttft", "tpot", "e2e")
#: Where a number starts that is 0 in the file: s, s a token, s a sequence, and so on.
_USUAL = (1e-2, 1e-5, 1e-5, 1e-8, 1e-9)
#: How often the search begins anew from the best.
_ROUNDS = 2
#: Steps of a search for costs, at most; and where it ends: the span of its simplex.
_STEPS = 400
_NEAR = 1e-4


@dataclass(frozen=True)
class Replay:
    """A request log beside its simulation.

    Attributes:
        log: what was measured.
        outcome: what was simulated.
        num_rows: requests that the figures are of.
        measured, simulated: the twelve figures, s; None where no request has it.
        error: simulated / measured - 1.
    """

    log: RequestLog
    outcome: LlmOutcome
    num_rows: int
    measured: dict[str, float | None]
    simulated: dict[str, float | None]
    error: dict[str, float | None]

    @property
    def mean_absolute_error(self) -> float | None:
        """Mean of |error| over the figures."""
        return self.mean_error("")

    def mean_error(self, latency: str) -> float | None:
        """Return the mean of |error| over the figures of a latency, or of all."""
        named = {name: one for name, one in self.error.items() if name.endswith(latency)}
        known = [abs(one) for one in named.values() if one is not None]
        return float(np.mean(known)) if known else None

    def data(self) -> dict[str, Any]:
        """Return what `llm-replay` reports."""
        return {
            "num_requests": self.num_rows,
            **fields_of(self, "measured", "simulated", "error", "mean_absolute_error"),
        }


def replay_log(log: RequestLog | str | Path, model: LlmModel) -> Replay:
    """Serve the requests of a log on one replica, or one pair of pools, of a model.

    Raises:
        TraceError: the log cannot be read, or has a request that the model refuses.
        SpecError: as `windtunnel.serving.simulate_llm`.
    """
    known = log if isinstance(log, RequestLog) else read_request_log(log)
    outcome = simulate_llm(known.requests, model)
    refused = np.flatnonzero(outcome.replica < 0)
    if len(refused):
        what = f"requests that fit the engine; {len(refused)} of them do not"
        raise TraceError(known.requests.name, what)
    everyone = np.ones(len(known.first), dtype=bool)
    return _compared(known, outcome, everyone)


def _compared(log: RequestLog, outcome: LlmOutcome, rows: np.ndarray) -> Replay:
    measured = _figures(log.latencies(), rows)
    simulated = _figures(outcome.latencies, rows)
    error = {name: _error(simulated[name], value) for name, value in measured.items()}
    return Replay(log, outcome, int(rows.sum()), measured, simulated, error)


def _figures(values: dict[str, np.ndarray], rows: np.ndarray) -> dict[str, float | None]:
    return {
        f"{point}_{name}": latency_figure(values[name][rows], point)
        for name in LATENCIES
        for point in POINTS
    }


def _error(simulated: float | None, measured: float | None) -> float | None:
    if simulated is None or measured is None or measured == 0:
        return None
    return simulated / measured - 1


@dataclass(frozen=True)
class LogFit:
    """Linear costs fitted to a request log.

    Attributes:
        model: with these costs.
        fitted: the earlier half of the requests, which the costs are fitted to.
        held_back: the later half.
    """

    model: LlmModel
    fitted: Replay
    held_back: Replay


def fit_log(log: RequestLog | str | Path, model: LlmModel) -> LogFit:
    """Fit linear costs to the earlier half of a log by replaying it, from those of a model on.

    What is least is the mean |error| of the twelve figures over that half (Nelder & Mead, Computer
    Journal 7, 1965, on the logarithms of the numbers). All requests are served each time: the
    earlier half runs beside the later one.

    Args:
        log: with two requests at least.
        model: whose linear costs are where the search begins; those of other forms are lined first.

    Raises:
        TraceError: the log cannot be read, or the engine refuses a request.
    """
    known = log if isinstance(log, RequestLog) else read_request_log(log)
    count = len(known.first)
    early = np.arange(count) < (count + 1) // 2
    start = replay_log(known, model).outcome.model.cost
    lines = start if isinstance(start, LinearCost) else _lined(start)
    begin = [number or usual for number, usual in zip(lines.costs, _USUAL, strict=True)]

    def with_costs(logs: np.ndarray) -> LlmModel:
        a, b, c, d, q = np.exp(logs).tolist()
        return model.with_cost(LinearCost(a, b, c, d, q, start.tensor_parallel))

    def error(logs: np.ndarray) -> float:
        found = _compared(known, simulate_llm(known.requests, with_costs(logs)), early)
        return found.mean_absolute_error or 0.0

    at = np.log(begin)
    for _ in range(_ROUNDS):  # a simplex that has collapsed too early gets its size again
        at = _least(error, at)
    best = with_costs(at)
    outcome = simulate_llm(known.requests, best)
    return LogFit(best, _compared(known, outcome, early), _compared(known, outcome, ~early))


def _lined(cost: Any) -> LinearCost:
    """Return linear costs near those of another form, over iterations of usual sizes."""
    from windtunnel.serving.llm_fit import linear_fit

    rows = [
        (prefill, decoding, decoding * context, prefill * (prefill + 1) / 2)
        for prefill in (0, 128, 512, 1024, 2048)
        for decoding in (0, 1, 8, 32, 128)
        for context in (128, 512, 2048)
        if prefill or decoding
    ]
    counts = np.array(rows, dtype=np.float64)
    times = np.array([cost.seconds(*row) for row in rows])
    return linear_fit(counts, times)


def _least(error: Any, start: np.ndarray) -> np.ndarray:
    """Return where a function is least, near a point, by Nelder and Mead's simplex."""
    count = len(start)
    points = np.vstack([start, start + 0.3 * np.eye(count)])
    values = np.array([error(point) for point in points])
    for _ in range(_STEPS):
        order = np.argsort(values, kind="stable")
        points, values = points[order], values[order]
        if np.abs(points[1:] - points[0]).max() < _NEAR:
            break
        centre = points[:-1].mean(axis=0)
        away = centre - points[-1]
        tried = centre + away
        value = error(tried)
        if value < values[0]:
            further = centre + 2 * away
            best = error(further)
            points[-1], values[-1] = (further, best) if best < value else (tried, value)
            continue
        if value < values[-2]:
            points[-1], values[-1] = tried, value
            continue
        inner = centre + (0.5 if value < values[-1] else -0.5) * away
        best = error(inner)
        if best < min(value, values[-1]):
            points[-1], values[-1] = inner, best
            continue
        points[1:] = points[0] + 0.5 * (points[1:] - points[0])
        values[1:] = [error(point) for point in points[1:]]
    return np.asarray(points[np.argmin(values)])
