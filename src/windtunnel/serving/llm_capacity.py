"""How many replicas of a language model keep the promises, and which set-up does so cheapest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windtunnel.checked import checked_choice, checked_count
from windtunnel.errors import SpecError
from windtunnel.serving.fewest import fewest
from windtunnel.serving.llm_engine import LLM_DISPATCH
from windtunnel.serving.llm_limits import AT_MOST, Alone, Limits
from windtunnel.serving.llm_simulate import MOST_REPLICAS, simulate_llm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from windtunnel.serving.llm_model import LlmModel
    from windtunnel.serving.llm_outcome import Intensity, LlmOutcome
    from windtunnel.serving.request_traces import RequestTrace

#: What choices are ordered by.
CHEAPEST = ("gpus", "kwh", "carbon", "money")


@dataclass(frozen=True)
class LlmCapacity:
    """The fewest replicas that keep all limits.

    Attributes:
        replicas: how many; one fewer was simulated and does not suffice, unless it is 1.
        gpus: of them all.
        tried: the limited figures of each number of replicas simulated.
        met: whether it suffices, by the same numbers.
        outcome: with so many replicas.
    """

    replicas: int
    gpus: int
    tried: dict[int, dict[str, float | None]]
    met: dict[int, bool]
    outcome: LlmOutcome


def llm_capacity(
    requests: RequestTrace,
    model: LlmModel,
    limits: Limits | Mapping[str, float] | float,
    dispatch: str = "least_loaded",
    max_replicas: int = 1024,
    *,
    start: int = 1,
    alone: Alone | None = None,
    on_done: Callable[[str], None] | None = None,
) -> LlmCapacity:
    """Search the fewest replicas that keep limits with nobody refused.

    The number is doubled, then bisected: the one found suffices and one fewer does not; both are
    simulated. That still fewer do not either is taken from latencies falling with replicas, which
    dispatch can break by a little.

    Args:
        requests: all of which count.
        model: of each replica; pools that lie apart grow together by their ratio.
        limits: figure -> bound, such as ``{"p99_ttft": 1.0, "p90_tpot": 0.05}``: latencies at
            most, s, ``slo_attainment``, ``goodput`` and ``output_tokens_per_s`` at least; a number
            is P99 TTFT.
        dispatch: as in `windtunnel.serving.simulate_llm`.
        max_replicas: given up beyond.
        start: the number tried first.
        alone: the same requests, each on a replica of its own, where that was asked before.
        on_done: called after each number.

    Raises:
        SpecError: an unknown figure, a request that no replica can serve, or ``max_replicas`` do
            not suffice, as no number of them does where a request alone takes too long, or where
            twice as many change nothing.
    """
    asked = _limits(limits)
    checked_count("max_replicas", max_replicas, most=MOST_REPLICAS)
    asked.check_reachable(alone or Alone(requests), model)
    tried: dict[int, dict[str, float | None]] = {}
    met: dict[int, bool] = {}

    def suffices(replicas: int) -> LlmOutcome | None:
        outcome = simulate_llm(requests, model, replicas, dispatch)
        _check_refused(outcome, model)
        tried[replicas] = asked.figures(outcome)
        met[replicas] = not asked.broken(tried[replicas])
        half = (tried[n] for n in tried if 2 * n <= replicas)
        if not met[replicas] and tried[replicas] in half:
            # Twice as many are of no use: whoever waits does not wait for a replica.
            raise _out_of_reach(asked, tried[replicas], replicas)
        if on_done is not None:
            on_done("replicas")
        return outcome if met[replicas] else None

    best = fewest(suffices, max_replicas, start)
    if best is None:
        raise _out_of_reach(asked, tried[max_replicas], max_replicas)
    return LlmCapacity(best[0], int(best[1].gpus.sum()), tried, met, best[1])


def _limits(given: Limits | Mapping[str, float] | float) -> Limits:
    if isinstance(given, Limits):
        return given
    if isinstance(given, int | float):
        return Limits({"p99_ttft": given})
    return Limits(dict(given))


def _check_refused(outcome: LlmOutcome, model: LlmModel) -> None:
    refused = int((outcome.replica < 0).sum())
    if refused:
        many = "request is" if refused == 1 else "requests are"
        where, limit = "kv_limit", str(model.kv_limit)
        if model.engine is not None:
            engine = model.engine
            where, limit = "num_blocks", f"{engine.num_blocks} blocks of {engine.block_size} tokens"
        raise SpecError(where, f"{refused} {many} larger than {limit}.")


def _out_of_reach(asked: Limits, figures: Mapping[str, float | None], most: int) -> SpecError:
    name = asked.broken(figures)[0]
    value, bound = figures[name], asked.bounds[name]
    if name in AT_MOST:
        point, _, latency = name.partition("_")
        words = f"{point.upper()} is {value:.6g} s with {most} replicas, wanted <= {bound:.6g} s."
        return SpecError(latency, words)
    return SpecError(name, f"is {value:.6g} with {most} replicas, wanted >= {bound:.6g}.")


@dataclass(frozen=True)
class LlmSetup:
    """A set-up that may be chosen: its name, the model, and how requests are dispatched.

    Raises:
        SpecError: an unknown rule of dispatch.
    """

    name: str
    model: LlmModel
    dispatch: str = "least_loaded"

    def __post_init__(self) -> None:
        checked_choice("dispatch", self.dispatch, LLM_DISPATCH)

    @property
    def title(self) -> str:
        """Its name, and how requests are dispatched."""
        return f"{self.name}, {self.dispatch}"


@dataclass(frozen=True)
class LlmChoice:
    """A set-up with as many replicas as it needs.

    Attributes:
        setup: what was searched.
        found: None where no number of replicas keeps the limits; ``reason`` says why.
        figures: of the outcome; empty where nothing was found.
        reason: why nothing was found.
    """

    setup: LlmSetup
    found: LlmCapacity | None
    figures: Mapping[str, float | None]
    reason: str | None = None

    def price(self, of: str) -> float:
        """Return what it costs in GPUs, ``kwh``, ``carbon`` or ``money``; infinite if unknown."""
        key = {"gpus": "gpus", "kwh": "energy_kwh", "carbon": "carbon_kg", "money": "money"}[of]
        value = self.figures.get(key)
        return float("inf") if value is None else value


def llm_choices(
    requests: RequestTrace,
    setups: Iterable[LlmSetup],
    limits: Limits | Mapping[str, float] | float,
    *,
    cheapest: str = "gpus",
    max_replicas: int = 1024,
    carbon: float | Intensity | None = None,
    price: float | None = None,
    tariff: float | Intensity | None = None,
    on_done: Callable[[str], None] | None = None,
) -> list[LlmChoice]:
    """Search the fewest replicas of each of several set-ups, and return the cheapest first.

    A search begins where the last one of as many GPUs ended, so that most of them take a few
    simulations.

    Args:
        requests: all of which count.
        setups: models and rules of dispatch.
        limits: as in `llm_capacity`.
        cheapest: ``gpus``, ``kwh``, ``carbon`` or ``money``; ties stay as they were given.
        max_replicas: given up beyond.
        carbon: g/kWh, or how it changes over the trace's time.
        price: of a GPU for an hour.
        tariff: of a kWh, or how it changes over the trace's time.
        on_done: called after each simulation.

    Raises:
        SpecError: an unknown figure or order, or no set-up suffices.
    """
    checked_choice("cheapest", cheapest, CHEAPEST)
    known = {"carbon": carbon is not None, "money": price is not None or tariff is not None}
    if not known.get(cheapest, True):
        raise SpecError("cheapest", f"found {cheapest!a} without a price of it; expected one.")
    asked = _limits(limits)
    choices: list[LlmChoice] = []
    last: LlmCapacity | None = None
    alone = Alone(requests)
    for setup in setups:
        start = 1 if last is None else max(1, round(last.gpus / setup.model.gpus_together))
        try:
            last = llm_capacity(
                *(requests, setup.model, asked, setup.dispatch, max_replicas),
                start=min(start, max_replicas), alone=alone, on_done=on_done,
            )  # fmt: skip
        except SpecError as error:
            choices.append(LlmChoice(setup, None, {}, str(error)))
            continue
        figures = last.outcome.metrics(
            asked.ttft, asked.tpot, asked.e2e, carbon, price, tariff=tariff
        )
        choices.append(LlmChoice(setup, last, figures))
    if all(choice.found is None for choice in choices):
        raise SpecError("limits", " ".join(dict.fromkeys(str(one.reason) for one in choices)))
    return sorted(choices, key=lambda one: (one.found is None, one.price(cheapest)))
