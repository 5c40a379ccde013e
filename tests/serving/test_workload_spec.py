"""Workloads in words: every key does what the function behind it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from windtunnel import serving
from windtunnel.errors import SpecError, TraceError
from windtunnel.serving import (
    Deterministic,
    Gamma,
    MarkovModulated,
    Workload,
    WorkloadSpec,
    read_requests,
    read_workload,
)
from windtunnel.serving.refit import from_minutes, refit, replay

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = serving.synthetic_profile()
CALLS = "app,func,end_timestamp,duration\n" + "".join(
    f"a,f{i % 3},{10 + i * 2.5 + (i % 4) * 0.2},{i % 3}\n" for i in range(40)
)


def same(found: Workload, expected: Workload) -> None:
    assert found.models == expected.models
    np.testing.assert_array_equal(found.arrival, expected.arrival)
    np.testing.assert_array_equal(found.model, expected.model)
    np.testing.assert_array_equal(found.slo, expected.slo)


def test_a_file_asks_for_what_generate_draws(tmp_path: Path) -> None:
    file = tmp_path / "w.toml"
    file.write_text(
        'models = ["small", "large"]\nnum_models = 5\nrate = 12\nrates = [4, 1, 1, 1, 1]\n'
        "cv = 2.5\nduration = 50\nslo_scale = 3\nseed = 7\ncompress = 2\nrepeat = 2\n"
    )
    spec = read_workload(file)
    models = ["small", "large", "small", "large", "small"]
    drawn = serving.generate(
        models,
        duration=50.0,
        rate=12.0,
        rates=[4, 1, 1, 1, 1],
        cv=2.5,
        slo=serving.slos(models, PROFILE, 3.0),
        seed=7,
    )
    same(spec.draw(PROFILE), drawn.compress(2.0).thin(1.0, 7).repeat(2))
    same(spec.but(compress=1.0, repeat=1).draw(spec.read_profile()), drawn)


def test_kinds_of_arrivals() -> None:
    even = WorkloadSpec(models=("small",), rate=4.0, duration=10.0, arrivals="deterministic")
    np.testing.assert_array_equal(even.draw(PROFILE).arrival, Deterministic(4.0).arrivals(10.0))
    np.testing.assert_array_equal(even.but(arrivals="gamma", cv=0.0).draw(PROFILE).arrival,
                                  Deterministic(4.0).arrivals(10.0))  # fmt: skip
    bursts = even.but(arrivals="mmpp", sojourns=(3.0, 1.0), intensities=(1.0, 5.0), duration=500.0)
    # Mean intensity (3 x 1 + 1 x 5) / 4 = 2, so that 4 requests/s are rates 2 and 10.
    expected = MarkovModulated((3.0, 1.0), (2.0, 10.0)).arrivals(500.0, 0)
    np.testing.assert_array_equal(bursts.draw(PROFILE).arrival, np.sort(expected))
    assert len(expected) == 2000
    for changes in ({"intensities": (0.0, 0.0)}, {"sojourns": (1.0,)}, {"arrivals": "poison"}):
        with pytest.raises(SpecError):
            bursts.but(**changes).draw(PROFILE)


def test_recorded_requests_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "calls.csv").write_text(CALLS)
    file = tmp_path / "w.toml"
    file.write_text('requests = "calls.csv"\nmodels = ["small", "large"]\nslice = [20, 80]\n')
    spec = read_workload(file)
    trace = read_requests(tmp_path / "calls.csv")
    assert isinstance(trace, serving.RequestTrace)
    plain = replay(trace.window(20.0, 80.0), ["small", "large"])
    same(spec.draw(PROFILE), plain)
    again = spec.but(refit=30.0, rate_scale=2.0, cv_scale=1.5, seed=4)
    expected = refit(plain, window=30.0, duration=60.0, rate_scale=2.0, cv_scale=1.5, seed=4)
    assert len(expected) > 20
    same(again.draw(PROFILE), expected)
    with pytest.raises(SpecError, match="expected a window"):
        spec.but(rate_scale=2.0).draw(PROFILE)
    with pytest.raises(SpecError, match="no requests from 900"):
        spec.but(slice=(900.0, 901.0)).draw(PROFILE)
    with pytest.raises(SpecError, match="from < until"):
        spec.but(slice=(3.0, 2.0)).draw(PROFILE)
    # All of the file: the last arrival belongs to the last window.
    whole = spec.but(slice=(), refit=1000.0).draw(PROFILE)
    assert set(whole.model.tolist()) == {0, 1}


def test_calls_by_minute(tmp_path: Path) -> None:
    minutes = ",".join(str(minute) for minute in range(1, 1441))
    counts = ["0"] * 1440
    counts[1], counts[3] = "600", "60"
    rows = f"HashOwner,HashApp,HashFunction,Trigger,{minutes}\no,a,f,http,{','.join(counts)}\n"
    file = tmp_path / "day.csv"
    file.write_text(rows)
    spec = WorkloadSpec(requests=str(file), models=("small",), slice=(60.0, 180.0), cv_scale=2.0)
    day = read_requests(file)
    assert isinstance(day, serving.MinuteCounts)
    same(spec.draw(PROFILE), from_minutes(day.window(1, 3), ["small"], cv=2.0))
    np.testing.assert_array_equal(
        spec.draw(PROFILE).arrival, Gamma(10.0, 2.0).arrivals(60.0, 0, 0.0)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate = \n", "cannot be read as TOML"),
        ("rat = 3\n", "Did you mean 'rate'"),
        ('rate = "fast"\n', "rate"),
        ("models = 3\n", "models"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "w.toml"
    file.write_text(text)
    with pytest.raises(SpecError, match=message):
        read_workload(file)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rate": float("nan")}, "total_rate"),
        ({"rate": -1.0}, "total_rate"),
        ({"rates": (1.0, float("nan"), 1.0)}, "rates"),
        ({"duration": 0.0}, "duration"),
        ({"slo_scale": 0.0}, "slo_scale"),
        ({"models": ("smal",)}, "Did you mean 'small'"),
        ({"num_models": -2}, "num_models"),
        ({"thin": float("nan")}, "share"),
        ({"compress": 0.0}, "factor"),
        ({"repeat": 0}, "times"),
        ({"seed": -1}, "seed"),
    ],
)
def test_values_that_make_no_sense(changes: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        WorkloadSpec().but(**changes).draw(PROFILE)
    with pytest.raises(SpecError, match="Did you mean 'rate'"):
        WorkloadSpec().but(rat=3)


def test_missing_files(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        WorkloadSpec(requests=str(tmp_path / "nowhere.csv")).draw(PROFILE)
    (tmp_path / "p.csv").write_text("model\nm\n")
    with pytest.raises(TraceError, match="a column 'dp'"):
        WorkloadSpec(profile=str(tmp_path / "p.csv")).read_profile()
