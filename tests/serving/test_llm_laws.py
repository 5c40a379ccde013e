"""Laws of language-model serving, on drawn requests and engines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel import serving
from windtunnel.energy.intensity import Series
from windtunnel.serving.llm_costs import LinearCost
from windtunnel.serving.llm_limits import Alone

COST = LinearCost(0.25, 0.125, 0.0625, 0.03125, 0.015625)
POWER = serving.Power(90.0, 650.0, 420.0)
SCHEDULERS = ("vllm_v1", "sarathi", "vllm_v0", "orca")

lengths = st.tuples(st.integers(0, 24), st.integers(1, 40), st.integers(1, 12))
traces = st.lists(lengths, min_size=1, max_size=25).map(
    lambda rows: serving.RequestTrace(
        arrival=np.sort([row[0] / 2 for row in rows]),
        prompt_tokens=np.array([row[1] for row in rows]),
        output_tokens=np.array([row[2] for row in rows]),
        blocks=[(row[1] % 3, 10 + row[1]) for row in rows],
    )
)


def _model(scheduler: str, **engine: Any) -> serving.LlmModel:
    keys: dict[str, Any] = {"num_blocks": 1000, "block_size": 4, "token_budget": 4096}
    if scheduler == "orca":
        keys["reserve_tokens"] = 56
    return serving.LlmModel(
        cost=COST, engine=serving.Engine(scheduler, **{**keys, **engine}), power=POWER
    )


@given(traces, st.sampled_from(SCHEDULERS), st.integers(14, 40), st.integers(1, 6))
def test_nothing_is_lost_under_memory_pressure(
    trace: serving.RequestTrace, scheduler: str, blocks: int, most: int
) -> None:
    model = _model(scheduler, num_blocks=blocks, max_num_seqs=most)
    run = serving.simulate_llm(trace, model, 2)
    served = run.replica >= 0
    assert (np.isfinite(run.finish) == served).all()
    assert run.peak_blocks.max(initial=0) <= blocks
    assert (run.ttft[served] > 0).all()
    assert (run.ttft[served] <= run.e2e[served]).all()
    # Each request made exactly its tokens: all but the first came after a gap.
    assert run.gap_counts.sum() == (trace.output_tokens[served] - 1).sum()
    whole = (run.finish - run.first_token)[served].sum()
    assert run.gap_total == pytest.approx(whole)
    assert float(run.gaps @ run.gap_counts) == pytest.approx(whole)
    # What is not evicted is prefilled once.
    if not run.restarts.any():
        assert run.prefill_tokens == trace.prompt_tokens[served].sum()
    else:
        assert run.prefill_tokens > trace.prompt_tokens[served].sum()


@given(traces, st.sampled_from(SCHEDULERS))
def test_first_come_first_served_without_eviction(
    trace: serving.RequestTrace, scheduler: str
) -> None:
    run = serving.simulate_llm(trace, _model(scheduler, num_blocks=60, max_num_seqs=3))
    served = run.replica >= 0
    if not run.restarts.any():
        assert (np.diff(run.first_token[served]) >= 0).all()
    if served.any():
        busy = run.busy.sum()
        watts = POWER.prefill_w * run.prefilling.sum() + POWER.decode_w * (
            busy - run.prefilling.sum()
        )
        assert run.joules == pytest.approx(watts + POWER.idle_w * (run.span - busy))
        # Little: the mean number in the system is throughput x mean time in it.
        events = np.concatenate([trace.arrival[served], run.finish[served]])
        signs = np.repeat([1, -1], served.sum())
        order = np.argsort(events, kind="stable")
        inside = np.cumsum(signs[order])[:-1]
        area = float(inside @ np.diff(events[order]))
        assert area == pytest.approx(run.e2e[served].sum())


@given(traces)
def test_ample_memory_makes_schedulers_agree(trace: serving.RequestTrace) -> None:
    runs = [serving.simulate_llm(trace, _model(name)) for name in ("vllm_v1", "sarathi", "orca")]
    for run in runs[1:]:
        np.testing.assert_array_equal(run.first_token, runs[0].first_token)
        np.testing.assert_array_equal(run.finish, runs[0].finish)
    exact = serving.LlmModel(cost=COST, kv_limit=10**6, max_batch=10**4)
    np.testing.assert_array_equal(serving.simulate_llm(trace, exact).finish, runs[0].finish)
    assert not any(run.restarts.any() for run in runs)


@given(traces, st.integers(14, 60))
def test_a_cache_computes_no_more(trace: serving.RequestTrace, blocks: int) -> None:
    plain = serving.simulate_llm(trace, _model("vllm_v1", prefix_caching=False))
    cached = serving.simulate_llm(trace, _model("vllm_v1", prefix_caching=True))
    assert cached.prefill_tokens == plain.prefill_tokens - cached.cached_tokens.sum()
    tight = serving.simulate_llm(trace, _model("vllm_v1", prefix_caching=True, num_blocks=blocks))
    served = tight.replica >= 0
    assert tight.gap_counts.sum() == (trace.output_tokens[served] - 1).sum()
    assert tight.peak_blocks[0] <= blocks


@given(traces)
def test_pools_apart_over_an_endless_link(trace: serving.RequestTrace) -> None:
    split = serving.Split(1, 1, 1.0, float("inf"))
    apart = serving.simulate_llm(trace, replace(_model("vllm_v1"), split=split))
    one = replace(trace, output_tokens=np.ones_like(trace.output_tokens))
    alone = serving.simulate_llm(one, _model("vllm_v1"))
    np.testing.assert_array_equal(apart.first_token, alone.first_token)
    assert (apart.finish >= apart.first_token).all()
    assert apart.gap_counts.sum() == (trace.output_tokens - 1).sum()


@given(st.integers(1, 40), st.integers(1, 12), st.integers(1, 4))
def test_one_request_in_a_pipeline(prompt: int, output: int, stages: int) -> None:
    trace = serving.RequestTrace(arrival=[0.0], prompt_tokens=[prompt], output_tokens=[output])
    whole = serving.simulate_llm(trace, _model("sarathi"))
    piped = serving.simulate_llm(trace, _model("sarathi", stages=stages))
    np.testing.assert_allclose(piped.finish, whole.finish, rtol=1e-12)
    np.testing.assert_allclose(piped.busy * stages, whole.busy, rtol=1e-12)


@given(traces, st.sampled_from(["least_tokens", "least_waiting", "prefix_affinity"]))
def test_every_rule_serves_all(trace: serving.RequestTrace, rule: str) -> None:
    run = serving.simulate_llm(trace, _model("vllm_v1", prefix_caching=True), 3, rule)
    assert (run.replica >= 0).all()
    assert np.isfinite(run.finish).all()
    again = serving.simulate_llm(trace, _model("vllm_v1", prefix_caching=True), 3, rule)
    np.testing.assert_array_equal(run.finish, again.finish)


@given(trace=traces, blocks=st.integers(14, 60), caching=st.booleans())
def test_other_requests_only_slow_but_for_what_a_cache_holds(
    trace: serving.RequestTrace, blocks: int, *, caching: bool
) -> None:
    model = _model("vllm_v1", num_blocks=blocks, prefix_caching=caching, token_budget=16)
    run = serving.simulate_llm(trace, model, 2)
    served = run.replica >= 0
    least = Alone(trace).latencies(model)
    assert least is not None
    for name, values in least.items():
        known = served & ~np.isnan(values)
        assert (getattr(run, name)[known] >= values[known] * (1 - 1e-12)).all()


def test_lone_requests_are_served_once_for_pools_that_differ_in_size_alone() -> None:
    trace = serving.RequestTrace(
        arrival=np.zeros(2), prompt_tokens=np.array([9, 5]), output_tokens=np.array([3, 1])
    )
    split = serving.Split(1, 1, 1.0, 1e9)
    model = replace(_model("vllm_v1"), split=split)
    alone = Alone(trace)
    first = alone.latencies(model)
    assert alone.latencies(replace(model, split=replace(split, decode_replicas=3))) is first
    assert alone.latencies(replace(model, split=replace(split, latency_s=1.0))) is not first


@given(
    trace=traces,
    scheduler=st.sampled_from(SCHEDULERS),
    replicas=st.integers(1, 3),
    apart=st.booleans(),
)
def test_energy_is_the_sum_of_power_and_time(
    *, trace: serving.RequestTrace, scheduler: str, replicas: int, apart: bool
) -> None:
    model = _model(scheduler, max_num_seqs=3)
    if apart and scheduler == "vllm_v1":
        model = replace(model, split=serving.Split(1, 2, 1.0, 64.0))
    run = serving.simulate_llm(trace, model, replicas)
    if not (run.replica >= 0).any():
        return
    np.testing.assert_allclose(run.minutes.sum(), run.busy.sum())
    np.testing.assert_allclose(run.minutes[:, [0, 2]].sum(), run.prefilling.sum())
    watts = np.array([POWER.prefill_w, POWER.decode_w] * 2)
    idle = POWER.idle_w * (len(run.gpus) * run.span - run.busy.sum())
    assert run.joules == pytest.approx(run.minutes.sum(axis=0) @ watts + idle)
    assert run.emitted(2.0) == pytest.approx(run.emitted(Series.constant(2.0)))
    # Twice as dear from the middle on: between once and twice.
    middle = float(trace.arrival[0]) + run.span / 2
    steps = Series(np.array([-1e6, middle, 1e6]), np.array([1.0, 2.0, 2.0]))
    kwh = (run.joules or 0) / 3.6e6
    assert kwh <= (run.emitted(steps) or 0) <= 2 * kwh


@pytest.mark.parametrize("iteration_s", [0.5, 6e5, 1e15])
def test_gaps_of_any_length_are_counted(iteration_s: float) -> None:
    """A table that counts in parts of a second counts weeks, too."""
    engine = serving.Engine(num_blocks=100)
    model = serving.LlmModel(iteration_s, 0.0, 0.0, 0.0, engine=engine)
    trace = serving.RequestTrace(arrival=[0, 0], prompt_tokens=[5, 6], output_tokens=[4, 9])
    run = serving.simulate_llm(trace, model)
    assert run.gap_counts.sum() == 3 + 8
    assert run.figure("p99_itl") == pytest.approx(iteration_s)
