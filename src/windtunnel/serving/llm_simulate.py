"""Serving a language model on replicas: one call from requests to what became of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.checked import checked_choice, checked_count
from windtunnel.errors import SpecError
from windtunnel.serving.compiled import kernels
from windtunnel.serving.llm_engine import LLM_DISPATCH, SCHEDULERS, UNIT_TOKENS
from windtunnel.serving.llm_outcome import LlmOutcome

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from windtunnel.serving.llm_model import LlmModel, Pool
    from windtunnel.serving.request_traces import RequestTrace


#: That a fleet may have.
MOST_REPLICAS = 65536


def simulate_llm(
    requests: RequestTrace, model: LlmModel, replicas: int = 1, dispatch: str = "least_loaded"
) -> LlmOutcome:
    """Serve recorded requests, iteration by iteration, as the model's engine schedules them.

    At an instant iterations and transfers end, then requests arrive and are sent to replicas in
    order, then replicas start iterations; all tokens of an iteration come at its end. A request
    that can never fit is refused.

    Args:
        requests: with prompt and output tokens.
        model: of each replica.
        replicas: how many; of a model whose pools lie apart, how often it is there.
        dispatch: which replica: ``least_loaded`` (fewest requests), ``round_robin``,
            ``least_waiting``, ``least_tokens`` or ``prefix_affinity``.

    Raises:
        SpecError: no tokens in the trace, no requests, a wrong setting, or an iteration is free.
    """
    checked_choice("dispatch", dispatch, LLM_DISPATCH)
    checked_count("replicas", replicas, most=MOST_REPLICAS)
    served = len(requests.arrival)
    if not served or len(requests.prompt_tokens) != served or len(requests.output_tokens) != served:
        raise SpecError(requests.name, "has no requests with prompt and output tokens.")
    pools = model.pools(replicas)
    settings = _settings(model, pools)
    given = _requests(requests, model, pools)
    fleet = kernels().LlmFleet(
        *(given, settings, model.pages.stages, pools[0].cost.kernel, pools[-1].cost.kernel)
    )
    units = int(given["units"].max(initial=-1)) + 1
    slack = model.pages.affinity_slack
    router = _router(dispatch, 0, pools[0].replicas, slack, units)
    refused = _refused(given, pools, exact=model.reserves_exactly)
    links = _links(model, pools, served, units)
    sent_to, costs_time = kernels().serve_llm(fleet, links, router, refused)
    if not costs_time:
        raise SpecError("cost", "an iteration takes no time; expected more than 0 s of each.")
    gpus = np.concatenate([np.full(pool.replicas, pool.gpus) for pool in pools])
    return LlmOutcome(requests=requests, model=model, replica=sent_to, gpus=gpus, **fleet.data())


def _settings(model: LlmModel, pools: list[Pool]) -> dict[str, np.ndarray]:
    """Return the engines' keys as the kernel takes them, a number a replica."""
    rows: dict[str, list[int]] = {}
    for index, (engine, _, number, _) in enumerate(pools):
        exact = model.reserves_exactly
        blocks = engine.num_blocks
        if exact:
            blocks = model.kv_limit or blocks * engine.block_size
        of_each = {
            "scheduler": SCHEDULERS.index(engine.scheduler),
            "token_budget": engine.token_budget,
            "max_num_seqs": engine.max_num_seqs,
            "block_size": 1 if exact else engine.block_size,
            "num_blocks": blocks,
            "watermark": int(engine.watermark * engine.num_blocks),
            "reserve_tokens": engine.reserve_tokens or 0,
            "prefix_caching": int(engine.prefix_caching),
            "reserve_prompt": int(engine.reserve_prompt),
            "pool": index,
        }
        for name, value in of_each.items():
            rows.setdefault(name, []).extend([value] * number)
    return {name: np.array(values, dtype=np.int64) for name, values in rows.items()}


def _requests(requests: RequestTrace, model: LlmModel, pools: list[Pool]) -> dict[str, np.ndarray]:
    prompt = requests.prompt_tokens.astype(np.int64)
    output = requests.output_tokens.astype(np.int64)
    if model.engine is not None:
        prompt, output = np.maximum(prompt, 1), np.maximum(output, 1)
    units, start = requests.units
    for engine, *_ in pools:
        if engine.prefix_caching and len(units) and UNIT_TOKENS % engine.block_size:
            raise SpecError(
                "block_size",
                f"found {engine.block_size}; prefix_caching with ids expects a divisor of "
                f"{UNIT_TOKENS}.",
            )
    return {
        "shared": np.minimum(requests.shared_units * UNIT_TOKENS, prompt),
        "arrival": requests.arrival.astype(np.float64),
        "prompt": prompt,
        "output": output,
        "units": units,
        "unit_start": start,
    }


def _refused(given: dict[str, np.ndarray], pools: list[Pool], *, exact: bool) -> np.ndarray:
    """Return which requests can never be served, shape (n,)."""
    whole = given["prompt"] + given["output"]
    refused = np.zeros(len(whole), dtype=bool)
    for engine, *_ in pools:
        blocks = -(-whole // engine.block_size)
        spare = int(engine.watermark * engine.num_blocks)
        if exact:
            refused |= whole > engine.num_blocks * engine.block_size
        elif engine.scheduler == "orca":
            reserved = engine.reserve_tokens or 0
            refused |= whole > reserved
            refused |= reserved // engine.block_size > engine.num_blocks
        elif engine.scheduler == "vllm_v1":
            refused |= blocks > engine.num_blocks
        else:
            refused |= blocks + spare > engine.num_blocks
            if engine.scheduler == "vllm_v0":
                refused |= whole > engine.token_budget
    return refused.astype(np.uint8)


def _router(rule: str, low: int, high: int, slack: int, units: int) -> Any:
    return kernels().LlmRouter(LLM_DISPATCH.index(rule), low, high, slack, units)


def _links(model: LlmModel, pools: list[Pool], count: int, units: int) -> Any:
    split, slack = model.split, model.pages.affinity_slack
    first, last = pools[0].replicas, sum(pool.replicas for pool in pools)
    if split is None:
        return kernels().LlmLinks(0, 0, 0.0, 0.0, _router("round_robin", 0, last, slack, 0))
    router = _router(split.decode_dispatch, first, last, slack, units)
    time = split.kv_bytes_per_token / split.bandwidth
    return kernels().LlmLinks(first, count, float(split.latency_s), time, router)


def goodput_by_rate(
    requests: RequestTrace,
    model: LlmModel,
    rates: Sequence[float],
    *,
    replicas: int = 1,
    dispatch: str = "least_loaded",
    ttft: float = math.inf,
    tpot: float = math.inf,
    e2e: float = math.inf,
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
        e2e: SLO, s.

    Raises:
        SpecError: a rate makes no sense, or the requests have no span.
    """
    rows = []
    for rate in rates:
        run = simulate_llm(requests.at_rate(rate), model, replicas, dispatch)
        rows.append({"rate": rate, **run.metrics(ttft, tpot, e2e)})
    return rows
