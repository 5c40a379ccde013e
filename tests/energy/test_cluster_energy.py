"""Energy, carbon and cost of runs of a cluster: exact checks, hand-worked runs, conservation."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.energy import (
    PowerModel,
    Series,
    Sweep,
    account,
    best_limits,
    parse_series,
    read_series,
    shift,
    uniform_limits,
)
from windtunnel.energy.series_files import CARBON
from windtunnel.errors import SpecError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.energy import Workload

HOUR = 3600.0
HOURLY = Series(np.arange(6) * HOUR, np.array([400.0, 100, 300, 100, 350, 100]))
MODEL = PowerModel.from_mapping(
    {
        "gpus": {"A": {"idle_w": 50, "active_w": 250}, "default": {"idle_w": 10, "active_w": 100}},
        "workloads": {"eval": 0.5},
        "host_w": 100,
        "pue": 1.5,
    }
)
JOBS = {
    "submit_time": [0, 10],
    "duration": [100, 50],
    "num_gpus": [2, 1],
    "workload": ["train", "eval"],
    "user": ["u", "w"],
}


def test_units() -> None:
    one = Series.constant(1.0).of_energy(28477.86, 0, 1)
    assert one == pytest.approx(0.00791052, abs=5e-9)
    assert Series.constant(400.0).of_energy(28477.86, 7, 8) == pytest.approx(3.16421, abs=5e-6)


def test_shifting() -> None:
    assert HOURLY.of_energy(200, 0, 3 * HOUR) == pytest.approx(160, rel=1e-12)
    asked: dict[str, Any] = {"watts": 200, "duration": 3 * HOUR, "deadline": 6 * HOUR}
    for every in (HOUR, None):
        best = shift(HOURLY, **asked, every=every)
        assert best.start == HOUR
        assert best.amount == pytest.approx(100, rel=1e-12)
    split = shift(HOURLY, **asked, interruptible=True)
    assert split.amount == pytest.approx(60, rel=1e-12)
    assert split.pieces == tuple((h * HOUR, (h + 1) * HOUR) for h in (1, 3, 5))
    with pytest.raises(SpecError, match="later deadline"):
        shift(HOURLY, watts=1, duration=10, deadline=9)


@given(
    values=st.lists(st.integers(0, 50), min_size=1, max_size=8),
    hours=st.integers(1, 6),
    slack=st.integers(0, 9),
    first=st.integers(-3, 9),
)
def test_shifting_against_every_whole_hour(
    values: list[int], hours: int, slack: int, first: int
) -> None:
    series = Series(np.arange(len(values)) * HOUR, np.array(values, dtype=float))
    window = [values[h % len(values)] for h in range(first, first + hours + slack)]
    asked: dict[str, Any] = {
        "watts": 1000,
        "duration": hours * HOUR,
        "earliest": first * HOUR,
        "deadline": (first + hours + slack) * HOUR,
    }
    contiguous = min(sum(window[h : h + hours]) for h in range(slack + 1))
    assert shift(series, **asked).amount == pytest.approx(contiguous, rel=1e-9, abs=1e-9)
    split = shift(series, **asked, interruptible=True)
    assert split.amount == pytest.approx(sum(sorted(window)[:hours]), rel=1e-9, abs=1e-9)
    assert sum(end - start for start, end in split.pieces) == pytest.approx(hours * HOUR)


@pytest.mark.parametrize(
    ("cap", "limits", "slowdown", "uniform"),
    [
        (300, (100, 100, 100), 1.640020, 1.640020),
        (375, (125, 100, 150), 1.287844, 1.326401),
        (450, (150, 125, 175), 1.141781, 1.168153),
        (525, (150, 175, 200), 1.078639, 1.084861),
        (600, (200, 175, 225), 1.037319, 1.040446),
        (675, (200, 225, 250), 1.011014, 1.011687),
        (750, (250, 250, 250), 1.000000, 1.000000),
    ],
)
def test_power_cap(
    measured: Callable[[str, str], Workload],
    cap: int,
    limits: tuple[int, ...],
    slowdown: float,
    uniform: float,
) -> None:
    jobs = [measured("v100", name) for name in ("cifar100", "librispeech", "squad")]
    sweeps = [job.sweeps[job.default_batch_size] for job in jobs]
    found = best_limits(sweeps, cap)
    assert found.limits == limits
    assert found.mean_slowdown == pytest.approx(slowdown, abs=5e-7)
    assert uniform_limits(sweeps, cap).mean_slowdown == pytest.approx(uniform, abs=5e-7)


def test_power_cap_too_low() -> None:
    sweep = Sweep((200, 100), (1.0, 3.0), (150.0, 90.0))
    assert best_limits([sweep, sweep], 300).limits == (200, 100)
    assert uniform_limits([sweep, sweep], 300).mean_slowdown == 3.0
    for choose in (best_limits, uniform_limits):
        with pytest.raises(SpecError, match="cap"):
            choose([sweep, sweep], 199)


def test_uniform_limits_as_published_or_the_fastest() -> None:
    slower_above = Sweep((250, 200, 100), (1.0, 2.0, 1.5), (240.0, 190.0, 95.0))
    assert uniform_limits([slower_above], 220).limits == (200,)
    found = uniform_limits([slower_above], 220, by="fastest")
    assert (found.limits, found.mean_slowdown) == ((100,), 1.5)
    with pytest.raises(SpecError, match="fastest"):
        uniform_limits([slower_above], 220, by="fast")


def test_a_run_by_hand() -> None:
    # 1 node of 4 GPUs: train holds 2 from 0 to 100 at 250 W, eval 1 from 10 to 60 at 150 W.
    book = account(
        wt.simulate(JOBS, "1x4:A", "fifo"),
        MODEL,
        carbon=Series(np.array([0.0, 60.0]), np.array([0.0, 360.0])),
        tariff=Series.constant(0.36),
    )
    assert book.energy_by_job.tolist() == [50_000, 7_500]
    numbers = book.summary()
    idle = 50 * (2 * 10 + 1 * 50 + 2 * 40)
    assert numbers["jobs_j"] == 57_500
    assert numbers["idle_j"] == pytest.approx(idle)
    assert numbers["host_j"] == 10_000
    assert numbers["overhead_j"] == pytest.approx((57_500 + idle + 10_000) / 2)
    assert numbers["energy_j"] == pytest.approx(1.5 * (67_500 + idle))
    assert numbers["peak_power_w"] == 1.5 * (500 + 150 + 50 + 100)
    # After 60 s: 500 W of jobs, 100 W idle, 100 W host, times PUE, 40 s, at 360 g/kWh = 1e-4 g/J.
    assert numbers["carbon_kg"] == pytest.approx(700 * 1.5 * 40 * 1e-4 / 1000)
    assert numbers["cost"] == pytest.approx(1.5 * (67_500 + idle) * 1e-7)
    assert book.power["time"].to_pylist() == [0, 10, 60]
    assert book.by("user").select(["user", "energy_j"]).to_pylist() == [
        {"user": "u", "energy_j": 50_000},
        {"user": "w", "energy_j": 7_500},
    ]
    assert not book.notes()  # the second row holds from 60 to 120
    assert book.by("user")["carbon_kg"].to_pylist() == pytest.approx([500 * 40 * 1e-7, 0])


def test_work_that_no_job_has_is_noted() -> None:
    limits = {"workload": "rain", "limit_w": [300], "power_w": [290], "speed": [1]}
    gpus = {"default": {"idle_w": 1, "active_w": 2}}
    model = PowerModel.from_mapping(
        {"gpus": gpus, "workloads": {"Eval": 0.5, "train": 1}, "limits": [limits]}
    )
    assert account(wt.simulate(JOBS, "1x4", "fifo"), model).notes() == (
        "The power model names the kind of work 'Eval', which no job has. Did you mean 'eval'?",
        "The power model names the kind of work 'rain', which no job has. Did you mean 'train'?",
    )


def test_half_a_gpu_idles() -> None:
    jobs = {"submit_time": [0], "duration": [10], "num_gpus": [0.5]}
    model = PowerModel.from_mapping({"gpus": {"default": {"idle_w": 10, "active_w": 100}}})
    numbers = account(wt.simulate(jobs, "pool:1", "fifo"), model).summary()
    assert (numbers["jobs_j"], numbers["idle_j"]) == (500, 50)


def test_what_cannot_be_known_is_refused() -> None:
    pool = wt.simulate(JOBS, "pool:4", "fifo")
    with pytest.raises(SpecError, match="host"):
        account(pool, MODEL)
    only = PowerModel.from_mapping({"gpus": {"V100": {"idle_w": 1, "active_w": 2}}})
    other = wt.simulate(JOBS, "1x4:A100", "fifo")
    with pytest.raises(SpecError, match="A100"):
        account(other, only)
    mixed = wt.ClusterSpec((wt.NodeType(1, 2, "A"), wt.NodeType(1, 2, "B")))
    run = wt.simulate(JOBS, mixed, "fifo", placement="pool")
    with pytest.raises(SpecError, match="several GPU types"):
        account(run, MODEL)
    alike = {"gpus": {"default": {"idle_w": 10, "active_w": 100}}}
    limits = [{"gpu_type": "A", "limit_w": [90], "power_w": [80], "speed": [1.0]}]
    with pytest.raises(SpecError, match="several GPU types"):
        account(run, PowerModel.from_mapping({**alike, "limits": limits}))


def test_energy_by_type_where_a_pool_does_not_tell_the_type() -> None:
    jobs = {
        "submit_time": [0, 0],
        "duration": [10, 10],
        "num_gpus": [3, 1],
        "gpu_type": [None, "B"],
    }
    mixed = wt.ClusterSpec((wt.NodeType(1, 4, "A"), wt.NodeType(1, 2, "B")))
    model = PowerModel.from_mapping({"gpus": {"default": {"idle_w": 10, "active_w": 100}}})
    book = account(wt.simulate(jobs, mixed, "fifo", placement="pool"), model)
    assert book.by_type().to_pydict() == {
        "gpu_type": ["A", "B", "(any)"],
        "jobs_j": [0, 1000, 3000],
        "idle_j": [None, None, 200],
    }


@pytest.mark.slow
@given(
    jobs=st.lists(
        st.tuples(
            st.floats(0, 1e6),
            st.floats(1, 1e5),
            st.sampled_from([0.25, 0.5, 1, 2, 3, 4]),
            st.sampled_from(["A", "B", "A|B", None]),
            st.sampled_from(["eval", "train", None]),
        ),
        min_size=1,
        max_size=12,
    ),
    values=st.lists(st.floats(0, 900), min_size=1, max_size=6),
    until=st.sampled_from([None, 5e5]),
)
def test_energy_is_conserved(jobs: list[Any], values: list[float], until: float | None) -> None:
    names = ("submit_time", "duration", "num_gpus", "gpu_type", "workload")
    cluster = wt.ClusterSpec((wt.NodeType(1, 4, "A"), wt.NodeType(2, 4, "B")))
    table = dict(zip(names, map(list, zip(*jobs, strict=True)), strict=True))
    run = wt.simulate(table, cluster, "fifo", until=until, engine="reference")
    series = Series(np.arange(len(values)) * 7777.0, np.array(values))
    book = account(run, MODEL, carbon=series, tariff=Series.constant(3.6e6))
    numbers = book.summary()
    power = book.power
    edges = np.append(power["time"].to_numpy(), book.span[1])
    widths = np.diff(edges)[: power.num_rows]
    integral = float((power["power_w"].to_numpy() * widths).sum())
    assert numbers["energy_j"] == pytest.approx(integral, rel=1e-9)
    assert numbers["cost"] == pytest.approx(integral, rel=1e-9)
    for part in ("jobs", "idle", "host", "overhead"):
        found = float((power[f"{part}_w"].to_numpy() * widths).sum())
        assert numbers[f"{part}_j"] == pytest.approx(found, rel=1e-9, abs=1e-9 * integral)
    for column in ("user", "vc", "workload", "size"):
        assert book.by(column)["energy_j"].to_numpy().sum() == pytest.approx(numbers["jobs_j"])


def test_series_repeat_and_integrate() -> None:
    assert HOURLY.integral(13 * HOUR) == pytest.approx((2 * 1350 + 400) * HOUR)
    assert HOURLY.at(np.array([-1.0, 0.0, 6 * HOUR])).tolist() == [100, 400, 400]
    assert not HOURLY.covers(0, 6 * HOUR + 1)
    assert HOURLY.covers(0, 6 * HOUR)


@given(
    lengths=st.lists(st.integers(1, 5000), min_size=1, max_size=6),
    start=st.integers(-40_000, 40_000),
)
def test_rows_from_any_time(lengths: list[int], start: int) -> None:
    """The rows from a time on are what holds at it, and every change after it, for ever."""
    times = np.cumsum([7, *lengths]).astype(float)
    series = Series(times, np.arange(len(times), dtype=float))
    rows = list(islice(series.rows_from(float(start)), 20))
    assert rows[0] == (start, float(series.at(float(start))))
    when = [time for time, _ in rows]
    assert when == sorted(set(when))
    assert [value for _, value in rows] == series.at(np.array(when)).tolist()
    assert when[1:] == series.changes(float(start), when[-1] + 0.5).tolist()
    only = Series.constant(5.0)
    assert list(only.rows_from(3.0)) == [(3.0, 5.0)]


def test_reading_series(tmp_path: Path) -> None:
    file = tmp_path / "ci.csv"
    file.write_text(
        "Time,Carbon Intensity\n2020-01-01 00:00:00,10\n2020-01-01 00:30:00,20.5\n", "utf-8"
    )
    series = read_series(file)
    assert (series.time.tolist(), series.values.tolist()) == ([0, 1800], [10, 20.5])
    assert parse_series("400").values.tolist() == [400]
    for text, line in (("time,g\n0,1\n0,2\n", 3), ("time,g\n0,-1\n", 2), ("time,g\n0,x\n", 2)):
        file.write_text(text, "utf-8")
        with pytest.raises(TraceError) as caught:
            read_series(file, CARBON)
        assert caught.value.row == line
    with pytest.raises(SpecError):
        read_series(tmp_path / "none.csv")


def test_models_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "power.toml"
    file.write_text("pue = 1.2\n[gpus.A]\nidle_w = 1\nactive_w = 2\n", "utf-8")
    assert PowerModel.from_toml(file).pue == 1.2
    gpus = {"A": {"idle_w": 1, "active_w": 2}}
    for wrong, word in (
        ({"gpus": gpus, "peu": 1.2}, "pue"),
        ({"gpus": gpus, "pue": 0.9}, "at least 1"),
        ({"gpus": {"A": {"idle_w": 3, "active_w": 2}}}, "idle_w"),
        ({"gpus": {"A": {"idle": 3, "active_w": 2}}}, "idle"),
        ({"gpus": {}}, "at least one"),
    ):
        with pytest.raises(SpecError, match=word):
            PowerModel.from_mapping(wrong)


def test_metrics_of_a_run_with_a_model_of_power_have_its_energy() -> None:
    jobs = {"submit_time": [0, 0], "duration": [3600, 1800], "num_gpus": [2, 1]}
    draws = {"gpus": {"default": {"idle_w": 50, "active_w": 250}}}

    @wt.metric("grams-a-job")
    def grams_a_job(outcome: wt.Outcome) -> float:
        return 1000 * outcome.metrics()["carbon_kg"] / 2

    run = wt.simulate(jobs, "1x4", power=draws, carbon=400, metrics="grams-a-job")
    found = run.metrics()
    # 3 GPUs at 250 W and 1 idle for half an hour, 2 and 2 for the other: 2.52 MJ, 0.7 kWh.
    assert (found["energy_j"], found["carbon_kg"], found["cost"]) == (2_520_000, 0.28, None)
    assert found["grams-a-job"] == 140
    assert "energy_j" not in wt.simulate(jobs, "1x4").metrics()
    with pytest.raises(SpecError, match="H100"):
        wt.simulate(jobs, "1x4:A100", power={"gpus": {"H100": draws["gpus"]["default"]}})


def test_compared_runs_have_their_energy_until_one_instant(tmp_path: Path) -> None:
    jobs = {"submit_time": [0, 10, 20], "duration": [100, 60, 40], "num_gpus": [1, 2, 1]}
    draws = {"gpus": {"default": {"idle_w": 100, "active_w": 100}}}
    both = wt.compare(jobs, "1x2", ["fifo", "sjf"], power=draws, tariff=3.6e5)
    # sjf ends at 160, fifo at 200; two GPUs draw 200 W, also where nobody is there any more.
    assert both.table["makespan"].to_pylist() == [200, 160]
    assert both.table["energy_j"].to_pylist() == [40_000, 40_000]
    assert both.table["cost"].to_pylist() == [4_000, 4_000]
    both.save(tmp_path / "both")
    assert wt.Comparison.load(tmp_path / "both").table.equals(both.table)
