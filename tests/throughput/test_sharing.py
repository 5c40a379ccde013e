"""Sharing GPUs among jobs: against exhaustive search."""

from __future__ import annotations

from itertools import accumulate, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.errors import SpecError
from windtunnel.throughput import training_model
from windtunnel.throughput.sharing import Envelope, equal_parts, share, steepest

SPEEDS = st.lists(st.floats(0, 1), min_size=8, max_size=8)


def best_sum(envelopes: list[Envelope], gpus: int) -> float:
    """The largest sum over every way to share."""
    return max(
        sum(envelope[size] for envelope, size in zip(envelopes, sizes, strict=True))
        for sizes in product(range(gpus + 1), repeat=len(envelopes))
        if sum(sizes) <= gpus
    )


def total(envelopes: list[Envelope], given_gpus: list[int]) -> float:
    return sum(e[size] for e, size in zip(envelopes, given_gpus, strict=True))


def test_published_example_by_exhaustive_search() -> None:
    """Of all ways to share 4 GPUs, 1 + 3 has the largest sum; 4 + 0, 0 + 4, 2 + 2 are far below."""
    models = [training_model("roberta"), training_model("t5_3B")]
    sums = {}
    for first in range(5):
        parts = []
        for model, gpus in zip(models, (first, 4 - first), strict=True):
            times = [
                o.iteration_time
                for o in model.options(node_gpus=8, node_cpus=96, num_nodes=1)
                if o.measured and o.num_gpus <= gpus
            ]
            whole = model.curve(4)[-1]
            assert whole is not None
            parts.append(whole.iteration_time / min(times) if times else 0.0)
        sums[first] = sum(parts)
    found = share(models, 4, "morphling")
    assert max(sums, key=lambda first: sums[first]) == 1 == found[0].num_gpus
    assert sum(one.normalised for one in found) == pytest.approx(sums[1])
    assert all(sums[1] > 1.3 * sums[other] for other in (0, 2, 4))


@pytest.mark.parametrize("gpus", [1, 2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("names", [("roberta", "t5_3B"), ("vit", "bert", "t5"), ("gpt2", "bert")])
def test_shares_reach_the_exhaustive_search(names: tuple[str, ...], gpus: int) -> None:
    models = [training_model(name) for name in names]
    envelopes = []
    for model in models:
        times = [o.iteration_time if o else float("inf") for o in model.curve(gpus)]
        envelopes.append((0.0, *accumulate((min(times) / time for time in times), max)))
    assert total(envelopes, steepest(envelopes, gpus)) == pytest.approx(best_sum(envelopes, gpus))


@given(st.lists(SPEEDS, min_size=1, max_size=3))
def test_concave_speeds_are_shared_best(gains: list[list[float]]) -> None:
    """Where each further GPU gains less, the steepest step is the best one."""
    envelopes = [(0.0, *accumulate(sorted(gain, reverse=True))) for gain in gains]
    found = steepest(envelopes, 8)
    assert sum(found) <= 8
    assert total(envelopes, found) == pytest.approx(best_sum(envelopes, 8))


@given(st.lists(SPEEDS, min_size=1, max_size=3))
def test_any_speeds_are_shared_within_the_gpus(rises: list[list[float]]) -> None:
    """Two jobs are always shared best: whatever is better is one exchange away."""
    envelopes = [(0.0, *accumulate(rise, max)) for rise in rises]
    found = steepest(envelopes, 8)
    assert sum(found) <= 8
    if len(envelopes) <= 2:
        assert total(envelopes, found) == pytest.approx(best_sum(envelopes, 8))
    left = 8 - sum(found)
    for envelope, size in zip(envelopes, found, strict=True):
        idle = envelope[min(8, size + left)]
        assert idle == pytest.approx(envelope[size])  # nothing idle would help


def test_equal_parts() -> None:
    assert equal_parts([(0.0,)] * 3, 8) == [2, 2, 4]


def test_a_job_that_fits_nowhere() -> None:
    with pytest.raises(SpecError, match="was not measured on 8 GPUs or fewer"):
        share([training_model("llama30")], 8, "simple")
    with pytest.raises(SpecError, match="Did you mean 'simple'"):
        share([training_model("bert")], 8, "simpel")
