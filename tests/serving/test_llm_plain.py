"""The compiled scheduler of vLLM, its cache and its eviction beside one written plainly."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from plain_vllm_v1 import serve_plainly

from windtunnel import serving
from windtunnel.serving.llm_costs import LinearCost

#: Times are sums of powers of two, so that instants meet exactly.
COST = LinearCost(0.25, 0.125, 0.0625, 2**-12, 2**-14)


@st.composite
def conversations(draw: st.DrawFn) -> serving.RequestTrace:
    """Draw requests whose prompts have common begins, of blocks of 512 tokens."""
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        units = draw(st.integers(1, 3))
        prompt = 512 * (units - 1) + draw(st.sampled_from([1, 60, 64, 130, 256, 300, 511, 512]))
        # The first ids are common; an id that is the same at two places is not the same block.
        ids = [draw(st.integers(0, 1)) for _ in range(units)]
        rows.append((draw(st.integers(0, 60)), prompt, draw(st.integers(1, 150)), ids))
    rows.sort(key=lambda row: row[0])
    return serving.RequestTrace(
        arrival=np.array([row[0] * 16.0 for row in rows]),
        prompt_tokens=np.array([row[1] for row in rows]),
        output_tokens=np.array([row[2] for row in rows]),
        blocks=[row[3][: draw(st.integers(0, 3))] for row in rows],
    )


engines = st.fixed_dictionaries(
    {
        "block_size": st.sampled_from([16, 64, 128, 512]),
        "max_num_seqs": st.integers(1, 6),
        "token_budget": st.sampled_from([64, 100, 128, 700, 4096]),
        "prefix_caching": st.booleans(),
        "reserve_prompt": st.booleans(),
    }
)


@given(conversations(), engines, st.integers(0, 60))
def test_as_written_plainly(trace: serving.RequestTrace, keys: dict[str, Any], spare: int) -> None:
    size = keys["block_size"]
    largest = int((-(-(trace.prompt_tokens + trace.output_tokens) // size)).max())
    engine = serving.Engine(num_blocks=largest + spare * 16 // size, **keys)
    model = serving.LlmModel(cost=COST, engine=engine)
    plain = serve_plainly(trace, model)
    run = serving.simulate_llm(trace, model)
    np.testing.assert_array_equal(run.first_token, [one.first for one in plain])
    np.testing.assert_array_equal(run.finish, [one.finish for one in plain])
    np.testing.assert_array_equal(run.restarts, [one.restarts for one in plain])
    np.testing.assert_array_equal(run.cached_tokens, [max(one.cached, 0) for one in plain])
