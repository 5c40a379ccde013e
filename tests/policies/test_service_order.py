"""Orders by service on cases worked by hand, and Gittins' index against its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.policies import resolve_policy
from windtunnel.policies.service_order import Gittins, Las, Srsf, Tiresias
from windtunnel.sim.contract import Levels

ENGINES = ("reference", "compiled")
TWO = {"submit_time": [0.0, 0.0], "duration": [3.0, 3.0], "num_gpus": [1.0, 1.0]}


def ends(policy: Any, engine: str, jobs: dict[str, Any] = TWO, cluster: str = "pool:1") -> Any:
    out = wt.simulate(jobs, cluster, policy, engine=engine)
    assert out.settings["engine"] == engine
    table = out.table
    return table["end_time"].to_pylist(), table["num_preemptions"].to_pylist()


@pytest.mark.parametrize("engine", ENGINES)
def test_las_lets_equals_take_turns(engine: str) -> None:
    # 0 runs 0-1, 2-3 and 4-5; 1 runs 1-2, 3-4 and 5-6.
    assert ends(Las(1.0), engine) == ([5.0, 6.0], [2, 2])


@pytest.mark.parametrize("engine", ENGINES)
def test_tiresias_changes_over_at_its_bounds_only(engine: str) -> None:
    # 0 leaves the first level after 2 s, 1 after 2 s more; then in order of arrival.
    assert ends(Tiresias(1.0, 2.0), engine) == ([5.0, 6.0], [1, 1])


@pytest.mark.parametrize("engine", ENGINES)
def test_srsf_counts_gpus(engine: str) -> None:
    jobs = {"submit_time": [0.0, 1.0], "duration": [3.0, 2.5], "num_gpus": [2.0, 1.0]}
    # At 1 s the first has 4 GPU-seconds left, the second 2.5: by time alone it would be 2 to 2.5.
    assert ends("srsf", engine, jobs, "pool:2") == ([5.5, 3.5], [1, 0])
    assert ends("srtf", engine, jobs, "pool:2") == ([3.0, 5.5], [0, 0])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bound_is_reached_whatever_rounding_makes_of_it(engine: str) -> None:
    jobs = {"submit_time": [0.0, 50.0], "duration": [200.0, 100.0], "num_gpus": [0.29, 1.0]}
    # At 100 s the first has had 29 GPU-seconds, though 100 * 0.29 is 28.999999999999996.
    assert ends(Tiresias(100.0, 29.0), engine, jobs, "1x1") == ([300.0, 200.0], [1, 0])


@pytest.mark.parametrize("engine", ENGINES)
def test_equal_service_of_parts_of_a_gpu_goes_by_arrival(engine: str) -> None:
    jobs = {"submit_time": [0.0, 14.0], "duration": [20.0, 5.0], "num_gpus": [0.07, 0.98]}
    # At 15 s both have had 0.98 GPU-seconds: 14 * 0.07 is 0.9800000000000001.
    assert ends(Las(1.0), engine, jobs, "1x1") == ([22.0, 25.0], [2, 2])
    jobs = {"submit_time": [0.0] * 3, "duration": [0.5, 14.0, 1.0], "num_gpus": [1.0, 0.07, 0.98]}
    # At 0.5 s both that wait have 0.98 GPU-seconds left.
    assert ends("srsf", engine, jobs, "1x1") == ([0.5, 14.5, 15.5], [0, 0, 0])


@pytest.mark.parametrize("engine", ENGINES)
def test_gittins_prefers_those_who_may_end_soon(engine: str) -> None:
    jobs = {"submit_time": [0.0, 2.0], "duration": [10.0, 1.0], "num_gpus": [1.0, 1.0]}
    # Half of the sample ends at 1: who is past that is expected to take up to 10.
    assert ends(Gittins([1.0, 10.0], 1.0), engine, jobs) == ([11.0, 3.0], [1, 0])


@given(
    st.lists(st.integers(1, 40).map(float), min_size=1, max_size=12),
    st.integers(0, 45).map(float),
)
@settings(max_examples=200, deadline=None)
def test_the_index_is_the_best_ratio_of_ends_to_service(sample: list[float], a: float) -> None:
    points = sorted(set(sample))
    at = max([0.0, *(p for p in points if p <= a)])  # it holds until the next point
    left = [s - at for s in sample if s > at]
    ratios = [sum(x <= d for x in left) / sum(min(x, d) for x in left) for d in left]
    expected = -max(ratios, default=0.0)
    assert Gittins(sample).levels.key(a) == pytest.approx(expected, rel=1e-12)


def test_what_cannot_be_an_order_is_refused() -> None:
    for bad in ((5.0, 5.0), (-1.0,), (float("nan"),)):
        with pytest.raises(wt.SpecError):
            Levels(bad)
    with pytest.raises(wt.SpecError):
        Las(0.0)
    for sample in ([], [-1.0], [float("inf")]):
        with pytest.raises(wt.SpecError):
            Gittins(sample)


def test_turns_in_which_nobody_gets_on_are_refused() -> None:
    with pytest.raises(wt.SpecError, match="none would get on"):
        wt.simulate(TWO, "pool:1", Las(1.0), save_time=0.5, restore_time=0.5)


def test_parameters_behind_a_name() -> None:
    las = resolve_policy("las:quantum=30")
    assert (las.label, las.every) == ("las:quantum=30", 30.0)
    tiresias = resolve_policy("tiresias:bounds=600/6000:quantum=10")
    assert tiresias.levels is not None
    assert (tiresias.levels.bounds, tiresias.every) == ((600.0, 6000.0), 10.0)
    assert [resolve_policy(f"las:quantum={span}").every for span in ("30m", "2h")] == [1800, 7200]
    runs = wt.compare(TWO, "pool:1", ["las:quantum=1", "las:quantum=3", "las"])
    jcts = [runs[name].metrics()["avg_jct"] for name in runs.outcomes]
    assert list(runs.outcomes) == ["las:quantum=1", "las:quantum=3", "las"]
    assert jcts == [5.5, 4.5, 4.5]
    for bad, message in (
        ("las:quantm=30", "quantum"),
        ("fifo:quantum=30", "takes none"),
        ("las:quantum=fast", "found 'fast'; expected seconds > 0"),
        ("las:quantum=-1", "expected seconds > 0"),
        ("tiresias:bounds=fast", "found 'fast'; expected GPU-seconds that rise"),
        ("lass:quantum=1", "las"),
    ):
        with pytest.raises(wt.SpecError, match=message):
            resolve_policy(bad)


def test_srsf_is_by_true_service() -> None:
    jobs = {"submit_time": [0.0], "duration": [3.0], "num_gpus": [2.0]}
    view = wt.JobView(wt.Jobs(wt.simulate(jobs, "pool:2", Srsf()).jobs), 0)
    assert np.isclose(Srsf().key(view, 0.0), 6.0)
