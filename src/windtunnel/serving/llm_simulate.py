"""Serving a language model on replicas: token metrics, goodput, and how many GPUs are needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import SpecError
from windtunnel.quantiles import quantiles
from windtunnel.serving.compiled import kernels
from windtunnel.serving.fewest import fewest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.serving.llm_model import LlmModel
    from windtunnel.serving.request_traces import RequestTrace

#: Dispatch rules, in the order of the kernel's codes.
LLM_DISPATCH = ("least_loaded", "round_robin")


@dataclass(frozen=True)
class LlmOutcome:
    """What became of n requests.

    Attributes:
        requests: what was served.
        model: of each replica.
        replica: where, shape (n,); -1 where refused.
        ttft: time to the first token, shape (n,), s; NaN where refused.
        tpot: mean time of each further token, shape (n,), s; NaN where there is none.
        e2e: time to the last token, shape (n,), s; NaN where refused.
        finish: when the last token came, shape (n,), s; NaN where refused.
        busy: time in iterations, shape (replicas,), s.
        peak_kv: most tokens reserved at once, shape (replicas,).
    """

    requests: RequestTrace
    model: LlmModel
    replica: np.ndarray
    ttft: np.ndarray
    tpot: np.ndarray
    e2e: np.ndarray
    finish: np.ndarray
    busy: np.ndarray
    peak_kv: np.ndarray

    def metrics(self, ttft: float = math.inf, tpot: float = math.inf) -> dict[str, float | None]:
        """Return mean, p50, p90, p99 of served requests' latencies, goodput and utilisation.

        Args:
            ttft: SLO of the first token, s.
            tpot: SLO of the mean time of further tokens, s; met where there is none.

        ``slo_attainment`` is the share of all requests that meet both, refused ones do not;
        ``goodput`` is their number per s from the first arrival to the last token.
        """
        for name, slo in (("ttft", ttft), ("tpot", tpot)):
            if not slo > 0:
                raise SpecError(name, f"must be > 0, not {slo!r}.")
        served = self.replica >= 0
        good = served & (self.ttft <= ttft) & ~(self.tpot > tpot)
        span = float(self.finish[served].max() - self.requests.arrival[0]) if served.any() else 0.0
        gpus = len(self.busy) * self.model.gpus
        goodput = float(good.sum()) / span if span else 0.0
        told: dict[str, float | None] = {
            "num_requests": len(served),
            "num_rejected": int((~served).sum()),
            "gpus": gpus,
            "slo_attainment": float(good.mean()),
            "goodput": goodput,
            "goodput_per_gpu": goodput / gpus,
            "utilization": float(self.busy.mean()) / span if span else 0.0,
            "peak_kv": int(self.peak_kv.max()),
        }
        for name in ("ttft", "tpot", "e2e"):
            values = getattr(self, name)
            values = values[~np.isnan(values)]
            told[f"mean_{name}"] = float(values.mean()) if len(values) else None
            for percent in (50, 90, 99):
                point = float(quantiles(values, percent / 100)) if len(values) else None
                told[f"p{percent}_{name}"] = point
        return told


@dataclass(frozen=True)
class LlmCapacity:
    """The fewest replicas that suffice.

    Attributes:
        replicas: how many; one fewer was simulated and does not suffice, unless it is 1.
        gpus: of them all.
        tried: P99 TTFT, s, of each number of replicas simulated.
        outcome: with so many replicas.
    """

    replicas: int
    gpus: int
    tried: dict[int, float]
    outcome: LlmOutcome


def simulate_llm(
    requests: RequestTrace, model: LlmModel, replicas: int = 1, dispatch: str = "least_loaded"
) -> LlmOutcome:
    """Serve recorded requests with continuous batching (Orca, OSDI'22), first come first served.

    An arriving request goes to the replica with the fewest requests waiting or running
    (``least_loaded``; ties to the lowest index) or in turn. Between iterations a replica admits
    waiting requests in order while the batch has room and prompt + output tokens of all admitted
    fit the KV memory; the first that does not fit stops it. An iteration prefills the admitted
    prompts whole and makes the next token of every other sequence; all its tokens come at its
    end. A sequence that has made g tokens reads prompt + g tokens of KV. At an instant iterations
    end first, then requests arrive, then iterations start. A request larger than the KV memory is
    refused; one without output tokens ends with its prefill.

    Raises:
        SpecError: no tokens in the trace, no requests, or a wrong setting.
    """
    if dispatch not in LLM_DISPATCH:
        raise SpecError.unknown("dispatch", dispatch, LLM_DISPATCH)
    if replicas < 1:
        raise SpecError("replicas", f"must be > 0, not {replicas}.")
    count = len(requests.arrival)
    if not count or len(requests.prompt_tokens) != count or len(requests.output_tokens) != count:
        raise SpecError(requests.name, "has no requests with prompt and output tokens.")
    replica, first, finish, busy, peak = kernels().generate(
        requests.arrival.astype(np.float64),
        requests.prompt_tokens.astype(np.int64),
        requests.output_tokens.astype(np.int64),
        replicas,
        model.costs,
        model.kv_limit,
        model.max_batch,
        LLM_DISPATCH.index(dispatch),
    )
    further = np.where(requests.output_tokens > 1, requests.output_tokens - 1.0, np.nan)
    ttft, e2e = first - requests.arrival, finish - requests.arrival
    tpot = (finish - first) / further
    return LlmOutcome(requests, model, replica, ttft, tpot, e2e, finish, busy, peak)


def goodput_by_rate(
    requests: RequestTrace,
    model: LlmModel,
    rates: Sequence[float],
    *,
    replicas: int = 1,
    dispatch: str = "least_loaded",
    ttft: float = math.inf,
    tpot: float = math.inf,
) -> list[dict[str, float | None]]:
    """Return `LlmOutcome.metrics` of the requests at other rates, each with its ``rate``.

    The same requests come faster or slower; all gaps are scaled alike.

    Args:
        requests: as recorded, over a span above 0.
        model: of each replica.
        rates: requests per second, > 0.
        replicas: how many.
        dispatch: as in `simulate_llm`.
        ttft: SLO, s.
        tpot: SLO, s.

    Raises:
        SpecError: a rate makes no sense, or the requests have no span.
    """
    rows = []
    for rate in rates:
        run = simulate_llm(requests.at_rate(rate), model, replicas, dispatch)
        rows.append({"rate": rate, **run.metrics(ttft, tpot)})
    return rows


def llm_capacity(
    requests: RequestTrace,
    model: LlmModel,
    ttft: float,
    dispatch: str = "least_loaded",
    max_replicas: int = 1024,
    *,
    on_done: Callable[[str], None] | None = None,
) -> LlmCapacity:
    """Search the fewest replicas with P99 TTFT <= ``ttft``, by doubling and bisection.

    The number found suffices and one fewer does not: both are simulated. That still fewer do not
    either is taken from P99 TTFT falling with replicas, which dispatch can break by a little.

    Raises:
        SpecError: a request is larger than the KV memory, or ``max_replicas`` do not suffice, as
            no number of them does where prompts alone take too long.
    """
    if not ttft > 0:
        raise SpecError("ttft", f"must be > 0, not {ttft!r}.")
    if max_replicas < 1:
        raise SpecError("max_replicas", f"must be > 0, not {max_replicas!r}.")
    alone = model.iteration_s + model.prefill_token_s * requests.prompt_tokens
    quickest = float(quantiles(alone, 0.99)) if len(alone) else 0.0
    if quickest > ttft:
        raise SpecError(
            "ttft",
            f"P99 is {quickest:.6g} s with any number of replicas: a prompt alone takes as long.",
        )
    tried: dict[int, float] = {}

    def suffices(replicas: int) -> LlmOutcome | None:
        outcome = simulate_llm(requests, model, replicas, dispatch)
        refused = int((outcome.replica < 0).sum())
        if refused:
            many = "request is" if refused == 1 else "requests are"
            raise SpecError("kv_limit", f"{refused} {many} larger than {model.kv_limit}.")
        tried[replicas] = float(quantiles(outcome.ttft, 0.99))
        if on_done is not None:
            on_done("replicas")
        return outcome if tried[replicas] <= ttft else None

    best = fewest(suffices, max_replicas)
    if best is None:
        p99 = tried[max_replicas]
        message = f"P99 is {p99:.6g} s with {max_replicas} replicas, wanted <= {ttft:.6g} s."
        raise SpecError("ttft", message)
    return LlmCapacity(best[0], best[0] * model.gpus, tried, best[1])
