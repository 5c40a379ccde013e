"""How many replicas of a language model keep the promises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.errors import SpecError
from windtunnel.quantiles import quantiles
from windtunnel.serving.fewest import fewest
from windtunnel.serving.llm_simulate import simulate_llm

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.serving.llm_model import LlmModel
    from windtunnel.serving.llm_outcome import LlmOutcome
    from windtunnel.serving.request_traces import RequestTrace


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
    alone = model.costs[0] + model.costs[1] * requests.prompt_tokens
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
            raise SpecError("kv_limit", f"{refused} {many} larger than the KV memory.")
        tried[replicas] = float(quantiles(outcome.ttft, 0.99))
        if on_done is not None:
            on_done("replicas")
        return outcome if tried[replicas] <= ttft else None

    best = fewest(suffices, max_replicas)
    if best is None:
        p99 = tried[max_replicas]
        message = f"P99 is {p99:.6g} s with {max_replicas} replicas, wanted <= {ttft:.6g} s."
        raise SpecError("ttft", message)
    return LlmCapacity(best[0], int(best[1].gpus.sum()), tried, best[1])
