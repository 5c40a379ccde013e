"""Policies of power on runs: caps and shifted starts, hand-worked and as properties."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.energy import LimitTable, PowerModel, Series, account, governed, read_series
from windtunnel.errors import SpecError
from windtunnel.sim.power.sources import PowerSources
from windtunnel.sim.slowdown import ShareFactor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.energy import Workload
    from windtunnel.sim.outcome import Outcome

HOUR = 3600.0
#: 0 W idle: what a job adds is its draw, and a cap is one on jobs.
PLAIN: dict[str, Any] = {"gpus": {"default": {"idle_w": 0, "active_w": 100}}}
TABLE = {
    "workload": "train",
    "limit_w": [300, 200, 100],
    "power_w": [250, 190, 105],
    "speed": [1.0, 0.9, 0.5],
}
RICH: dict[str, Any] = {
    "gpus": {"A": {"idle_w": 50, "active_w": 250}, "B": {"idle_w": 20, "active_w": 90}},
    "workloads": {"eval": 0.5},
    "host_w": 100,
    "asleep_w": 10,
    "pue": 1.25,
    "limits": [{**TABLE, "gpu_type": "A"}],
}
NODES = wt.ClusterSpec((wt.NodeType(2, 4, "A"), wt.NodeType(3, 4, "B")))
#: The draw of `NODES` idle: (5 hosts + 8 x 50 + 12 x 20) x 1.25.
IDLE_W = 1.25 * (500 + 400 + 240)


def lifo(now: float, queue: Any, cluster: Any) -> Any:
    """Start the newest job that fits; a policy that takes every decision itself (tier 3)."""
    for job in sorted(queue, key=lambda one: -one.number):
        where = cluster.fit(job)
        if where is not None:
            yield wt.Start(job, where)


def jumping(now: float, queue: Any, cluster: Any) -> Any:
    """Let a shorter job take a longer one's place, where that makes room and power for it."""
    for job in sorted(queue, key=lambda one: (one.duration, one.number)):
        if cluster.fit(job) is not None:
            yield wt.Start(job)
            continue
        for other in [one for one in cluster.running if one.duration > 2 * job.duration]:
            if cluster.fit(job, without=[other]) is not None:
                yield wt.Preempt(other)
                yield wt.Start(job)
                break


POLICIES: list[tuple[Any, str | None]] = [
    (lifo, None),
    (jumping, None),
    ("fifo", None),
    ("fifo", "skip"),
    ("sjf", "easy"),
    ("srtf", None),
    ("sjf-preemptive", "strict"),
    ("las:quantum=500", None),
    ("fair-share", None),
]


def integral(run: Outcome, model: PowerModel) -> tuple[dict[str, Any], float]:
    """Return the account's numbers and the integral of its power curve, J."""
    book = account(run, model)
    power = book.power
    widths = np.diff(np.append(power["time"].to_numpy(), book.span[1]))[: power.num_rows]
    return book.summary(), float((power["power_w"].to_numpy() * widths).sum())


def test_a_capped_queue_by_hand() -> None:
    # Room for 4, power for 2: the third starts when the first ends, though two GPUs are free.
    jobs = {"submit_time": [0, 0, 0], "duration": [10, 20, 5], "num_gpus": [1, 1, 1]}
    run = wt.simulate(jobs, "pool:4", "fifo", power=PLAIN, power_cap=200)
    assert run.table["start_time"].to_pylist() == [0, 0, 10]
    assert run.flight.power is not None
    assert run.flight.power.capped_time == 10
    assert (
        wt.simulate(jobs, "pool:4", "fifo", power=PLAIN, power_cap=300).metrics()["avg_wait"] == 0
    )


def test_skip_goes_past_a_job_that_lacks_power() -> None:
    jobs = {
        "submit_time": [0, 1, 2],
        "duration": [10, 10, 10],
        "num_gpus": [1, 1, 1],
        "workload": ["big", "big", "small"],
    }
    model = {**PLAIN, "workloads": {"big": 1.5, "small": 0.5}}
    cap: dict[str, Any] = {"power": model, "power_cap": 200}
    strict = wt.simulate(jobs, "pool:4", "fifo", **cap)
    assert strict.table["start_time"].to_pylist() == [0, 10, 10]
    skip = wt.simulate(jobs, "pool:4", "fifo", queueing="skip", **cap)
    assert skip.table["start_time"].to_pylist() == [0, 10, 2]


def test_a_falling_cap_stops_the_newest() -> None:
    jobs = {"submit_time": [0, 1], "duration": [100, 100], "num_gpus": [1, 1]}
    cap = {"rows": [[0, 200], [50, 100], [80, 1000], [10_000, 1000]]}
    run = wt.simulate(jobs, "pool:4", "fifo", power=PLAIN, power_cap=cap)
    assert run.table["end_time"].to_pylist() == [100, 131]  # stopped for the 30 s
    assert run.metrics()["num_preemptions"] == 1
    assert run.flight.power is not None
    assert run.flight.power.num_cuts == 1
    assert run.flight.power.capped_time == 30


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_time_at_the_cap_by_hand(engine: str) -> None:
    # Power for three GPUs of four. From 2 to 30 the job of two lacks power alone; also once the
    # short one, which comes before it, has started at 6; not at 12, when another has its GPUs.
    jobs = {
        "submit_time": [0, 2, 6, 12],
        "duration": [30, 20, 3, 1],
        "num_gpus": [1, 2, 1, 2],
        "workload": ["big", None, None, "none"],
    }
    model = {**PLAIN, "workloads": {"big": 1.5, "none": 0.0}}
    given: dict[str, Any] = {"power": model, "power_cap": 300, "engine": engine}
    run = wt.simulate(jobs, "pool:4", "sjf", **given)
    assert run.table["start_time"].to_pylist() == [0, 30, 6, 12]
    assert run.flight.power is not None
    assert run.flight.power.capped_time == 27
    # One of three GPUs lacks power from 2 to the horizon, in its turn also as another starts at 3.
    jobs = {"submit_time": [0, 2, 3], "duration": [30, 9, 1], "num_gpus": [1, 3, 1]}
    jobs |= {"workload": ["big", None, "none"]}  # type: ignore[dict-item]
    given |= {"queueing": "skip", "until": 20}
    run = wt.simulate(jobs, "pool:4", "fifo", **given)
    assert run.flight.power is not None
    assert run.flight.power.capped_time == 18


def test_the_queue_order_has_the_say_over_power() -> None:
    # Shortest remaining first, power for one: the short job takes it over.
    jobs = {"submit_time": [0, 10], "duration": [100, 20], "num_gpus": [1, 1]}
    run = wt.simulate(jobs, "pool:4", "srtf", power=PLAIN, power_cap=100)
    assert run.table["end_time"].to_pylist() == [120, 30]


def test_easy_promises_power_to_the_head() -> None:
    # 4 GPUs, power for 3. j1 (3 GPUs) must wait for power until 10; j2 (1 GPU) fits at once, but
    # would take power that j1 is promised at 10; j3 is short enough.
    jobs = {
        "submit_time": [0, 1, 2, 3],
        "duration": [10, 10, 50, 5],
        "num_gpus": [1, 3, 1, 1],
    }
    run = wt.simulate(
        jobs, "pool:4", "fifo", queueing="easy", estimates="perfect", power=PLAIN, power_cap=300
    )
    assert run.table["start_time"].to_pylist() == [0, 10, 20, 3]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_promise_under_a_higher_cap_holds_up_nobody(engine: str) -> None:
    # j0 draws 200 W and is promised the time at which the cap rises from 100 to 300 W. j1 draws 100
    # and has them now; from 10 to 16 both draw 300.
    jobs = {"submit_time": [0, 1], "duration": [20, 15], "num_gpus": [2, 1]}
    cap = {"rows": [[0, 100], [10, 300], [1000, 300]]}
    given: dict[str, Any] = {"estimates": "perfect", "power": PLAIN, "power_cap": cap}
    run = wt.simulate(jobs, "pool:3", "fifo", queueing="conservative", engine=engine, **given)
    assert run.table["start_time"].to_pylist() == [10, 1]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_nobody_takes_the_power_of_a_promise_under_a_lower_cap(engine: str) -> None:
    # j1 is promised the two GPUs of j0 at 20 with 100 W, all that there is from 10 on. j2 has a GPU
    # and 300 W at 2, but would draw its 100 W until 32: it waits until j1 is over.
    jobs = {
        "submit_time": [0, 1, 2],
        "duration": [20, 10, 30],
        "num_gpus": [2, 2, 1],
        "workload": ["none", "half", None],
    }
    model = {**PLAIN, "workloads": {"none": 0.0, "half": 0.5}}
    cap = {"rows": [[0, 300], [10, 100], [1000, 100]]}
    given: dict[str, Any] = {"estimates": "perfect", "power": model, "power_cap": cap}
    run = wt.simulate(jobs, "pool:3", "fifo", queueing="conservative", engine=engine, **given)
    assert run.table["start_time"].to_pylist() == [0, 20, 30]


@pytest.mark.parametrize(
    ("cap", "limits"),
    [
        (300, (100, 100, 100)),
        (375, (125, 100, 150)),
        (450, (150, 125, 175)),
        (525, (150, 175, 200)),
        (600, (200, 175, 225)),
        (675, (200, 225, 250)),
        (750, (250, 250, 250)),
    ],
)
def test_published_table_of_caps_in_a_run(
    measured: Callable[[str, str], Workload], cap: int, limits: tuple[int, ...]
) -> None:
    names = ("cifar100", "librispeech", "squad")
    loads = [measured("v100", name) for name in names]
    tables = tuple(
        LimitTable.from_sweep(load.sweeps[load.default_batch_size], workload=name)
        for name, load in zip(names, loads, strict=True)
    )
    model = PowerModel.from_mapping(PLAIN)
    model = PowerModel(model.gpus, limits=tables)
    jobs = {
        "submit_time": [0] * 3,
        "duration": [1000] * 3,
        "num_gpus": [1] * 3,
        "workload": names,
    }
    request = {"watts": cap, "limits": "optimised", "count": "limit"}
    run = wt.simulate(jobs, "pool:3", "fifo", power=model, power_cap=request)
    record = run.flight.power
    assert record is not None
    first = record.level[record.level_offset[:-1]]
    order = run.flight.segment_job.tolist()
    found = {order[s]: tables[order[s]].limit_w[first[s]] for s in range(3)}
    assert tuple(found[i] for i in range(3)) == limits
    even = wt.simulate(
        jobs, "pool:3", "fifo", power=model, power_cap={**request, "limits": "uniform"}
    )
    slow = [load.sweeps[load.default_batch_size] for load in loads]
    at = max(p for p in slow[0].power_limits if 3 * p <= cap)
    share = np.mean([s.epoch_time[s.power_limits.index(at)] / s.epoch_time[0] for s in slow])
    ends = even.table["end_time"].to_numpy()
    assert record is not None
    assert ends.min() <= 1000 * share * 1.7  # throttled, but not for ever
    assert even.flight.power is not None
    levels = even.flight.power.level[even.flight.power.level_offset[:-1]]
    assert [int(tables[0].limit_w[level]) for level in levels] == [at] * 3


def test_throttled_progress_by_hand() -> None:
    # Two jobs on A at 105 W each under 210 W, speed 0.5; alone at 190 W (0.9) from 20 s on.
    model = {"gpus": {"default": {"idle_w": 0, "active_w": 0}}, "limits": [TABLE]}
    jobs = {
        "submit_time": [0, 0],
        "duration": [10, 28],
        "num_gpus": [1, 1],
        "workload": ["train", "train"],
    }
    run = wt.simulate(jobs, "pool:2", "fifo", power=model, power_cap="210W,limits=optimised")
    assert run.table["end_time"].to_pylist() == pytest.approx([20, 40])
    book = account(run, PowerModel.from_mapping(model))
    assert book.energy_by_job.tolist() == pytest.approx([2100, 2100 + 20 * 190])
    assert run.metrics()["lost_to_slowdown"] == pytest.approx(10 + 12)


CASES = st.lists(
    st.tuples(
        st.integers(0, 5000),
        st.integers(1, 4000),
        st.sampled_from([1, 2, 3, 4, 8]),
        st.sampled_from(["A", "B", None]),
        st.sampled_from(["eval", "train", None]),
        st.sampled_from(["u", "w"]),
    ),
    min_size=1,
    max_size=14,
)


def table_of(cases: list[Any]) -> dict[str, Any]:
    """Return the cases as a jobs table; gangs of 8 take any type, which has 8 GPUs and more."""
    names = ("submit_time", "duration", "num_gpus", "gpu_type", "workload", "user")
    columns = dict(zip(names, map(list, zip(*cases, strict=True)), strict=True))
    return {**columns, "estimate": [2 * d for d in columns["duration"]]}


@pytest.mark.slow
@given(
    cases=CASES,
    caps=st.lists(st.floats(0, 2500), min_size=1, max_size=5),
    limits=st.sampled_from(["none", "uniform", "optimised"]),
    which=st.sampled_from([*POLICIES, ("quota", None)]),
    sleeps=st.booleans(),
)
def test_the_cap_is_never_exceeded(
    *, cases: list[Any], caps: list[float], limits: str, which: tuple[str, Any], sleeps: bool
) -> None:
    # The largest job is 8 GPUs of A at 250 W (200 W beyond idle): room for it at the last cap.
    rows = [[700.0 * i, IDLE_W + extra] for i, extra in enumerate([*caps, 2500.0])]
    policy, queueing = which
    if policy == "quota":  # keeps books: a constant cap
        rows = rows[-1:]
    model = PowerModel.from_mapping(RICH)
    run = wt.simulate(
        table_of(cases),
        NODES,
        policy,
        queueing=queueing,
        power=model,
        power_cap={"rows": rows, "limits": limits},
        node_sleep={"forecast": "last", "fut": 0, "buffer": 1, "wake_time": 40} if sleeps else None,
    )
    assert run.metrics()["num_finished"] == len(cases)
    series = Series(np.array(rows)[:, 0], np.array(rows)[:, 1])
    power = account(run, model).power
    times, watts = power["time"].to_numpy(), power["power_w"].to_numpy()
    assert (watts <= series.at(times) * (1 + 1e-8)).all()
    # Between two rows the cap may change: it must hold on the whole piece.
    changes = series.changes(times[0], account(run, model).span[1])
    held = watts[np.searchsorted(times, changes, side="right") - 1]
    assert (held <= series.at(changes) * (1 + 1e-8)).all()
    numbers, area = integral(run, model)
    assert numbers["energy_j"] == pytest.approx(area, rel=1e-9)
    parts = sum(numbers[f"{part}_j"] for part in ("jobs", "idle", "host", "overhead"))
    assert parts == pytest.approx(area, rel=1e-9)
    # Work is done in full, whatever the speed: run time less what slow limits cost.
    lost = run.flight.slowdown_time if limits != "none" else np.zeros(len(cases))
    assert lost is not None
    done = run.table["run_time"].to_numpy() - lost
    assert done == pytest.approx(np.array([case[1] for case in cases]), rel=1e-6)


@pytest.mark.slow
@given(cases=CASES, which=st.sampled_from(POLICIES))
def test_a_cap_out_of_reach_changes_nothing(
    cases: list[Any], which: tuple[Any, str | None]
) -> None:
    policy, queueing = which
    jobs = table_of(cases)
    plain = wt.simulate(jobs, NODES, policy, queueing=queueing, engine="reference")
    for limits in ("none", "uniform", "optimised"):
        capped = wt.simulate(
            jobs, NODES, policy, queueing=queueing, power=RICH, power_cap=f"1MW,limits={limits}"
        )
        for column in ("start_time", "end_time", "num_preemptions", "nodes", "status"):
            assert capped.table[column].to_pylist() == plain.table[column].to_pylist()


def test_what_cannot_be_capped_is_refused() -> None:
    jobs = {"submit_time": [0], "duration": [10], "num_gpus": [4]}
    with pytest.raises(SpecError, match="never fit under it"):
        wt.simulate(jobs, "pool:4", "fifo", power=PLAIN, power_cap=399)
    with pytest.raises(SpecError, match="draws 1,425 W already"):
        wt.simulate(jobs, NODES, "fifo", power=RICH, power_cap=1424)
    with pytest.raises(SpecError, match="model of power"):
        wt.simulate(jobs, "pool:4", "fifo", power_cap=400)
    with pytest.raises(SpecError, match="limits"):
        wt.simulate(jobs, "pool:4", "fifo", power=PLAIN, power_cap="400,limit=uniform")
    with pytest.raises(SpecError, match="uniform"):
        wt.simulate(jobs, "pool:4", "fifo", power=PLAIN, power_cap="400,limits=unifrom")
    mixed = {"gpus": {"A": {"idle_w": 0, "active_w": 1}, "B": {"idle_w": 0, "active_w": 2}}}
    with pytest.raises(SpecError, match="several GPU types"):
        wt.simulate(jobs, NODES, "fifo", placement="pool", power=mixed, power_cap=400)


HOURLY = [[HOUR * hour, value] for hour, value in enumerate([400, 100, 300, 100, 350, 100])]


def test_shifted_starts_by_hand() -> None:
    # Zeus' check (spec 4.2): 200 W for 3 h; 160 g at once, 100 g from hour 1, 60 g in pieces.
    jobs = {"submit_time": [0], "duration": [3 * HOUR], "num_gpus": [1]}
    model = PowerModel.from_mapping({"gpus": {"default": {"idle_w": 0, "active_w": 200}}})
    rows = np.array(HOURLY)
    carbon = Series(rows[:, 0], rows[:, 1])
    found = {}
    for name, request in (
        ("now", None),
        ("shifted", {"rows": HOURLY, "max_delay": "3h"}),
        ("hourly", {"rows": HOURLY, "max_delay": "3h", "every": "1h"}),
        ("pieces", {"rows": HOURLY, "max_delay": "3h", "interruptible": True}),
    ):
        run = wt.simulate(jobs, "pool:1", "fifo", shift=request)
        kilograms = account(run, model, carbon=carbon).summary()["carbon_kg"]
        found[name] = (1000 * (kilograms or 0), run.table["end_time"].to_pylist())
    assert found["now"] == (pytest.approx(160), [3 * HOUR])
    assert found["shifted"] == found["hourly"] == (pytest.approx(100), [4 * HOUR])
    assert found["pieces"] == (pytest.approx(60), [6 * HOUR])


def test_who_is_shifted() -> None:
    jobs = {
        "submit_time": [0, 0, 0, 0],
        "duration": [HOUR] * 4,
        "num_gpus": [1] * 4,
        "workload": ["train", "serve", "train", "train"],
        "deadline": [None, None, HOUR * 1.5, None],
        "estimate": [HOUR, HOUR, HOUR, None],
    }
    request: dict[str, Any] = {
        "rows": HOURLY,
        "max_delay": HOUR,
        "deadlines": True,
        "workloads": ["train"],
        "lengths": "recorded",
    }
    run = wt.simulate(jobs, "pool:4", "fifo", shift=request)
    # No requested wall time: not shifted; half an hour of slack: to its end; another kind: at once.
    assert run.table["start_time"].to_pylist() == [HOUR, 0, HOUR / 2, 0]
    with pytest.raises(SpecError, match="deadline"):
        wt.simulate({"submit_time": [0], "duration": [1], "num_gpus": [1]}, "pool:1",
                    shift={"rows": HOURLY, "deadlines": True})  # fmt: skip
    with pytest.raises(SpecError, match="max_delay"):
        wt.simulate(jobs, "pool:4", "fifo", shift={"rows": HOURLY})


@pytest.mark.parametrize("words", ["max_delay=5m", {"max_delay": "5m"}, "a file"])
@pytest.mark.parametrize("name", ["carbon", "tariff"])
@pytest.mark.parametrize("as_object", [False, True])
def test_shifts_go_by_the_carbon_or_tariff_of_the_site(
    tmp_path: Path, words: Any, name: str, *, as_object: bool
) -> None:
    file = tmp_path / "series.csv"
    file.write_text("time,value\n0,500\n200,100\n")
    (tmp_path / "shift.toml").write_text('max_delay = "5m"')
    shift = str(tmp_path / "shift.toml") if words == "a file" else words
    series = read_series(file) if as_object else str(file)
    jobs = {"submit_time": [0, 0], "duration": [100, 100], "num_gpus": [4, 4]}
    run = wt.simulate(jobs, "1x4", "fifo", shift=shift, **{name: series})
    assert run.table["start_time"].to_pylist() == [200, 300]
    with pytest.raises(SpecError, match="needs a model of power"):
        wt.simulate(jobs, "1x4", "fifo", **{name: series})


def test_a_shift_takes_a_series_itself() -> None:
    jobs = {"submit_time": [0], "duration": [100], "num_gpus": [4]}
    series = Series(np.array([0.0, 200.0]), np.array([500.0, 100.0]))
    run = wt.simulate(jobs, "1x4", "fifo", shift={"series": series, "max_delay": "5m"})
    assert run.table["start_time"].to_pylist() == [200]
    with pytest.raises(SpecError, match=r"series.*expected a number, a CSV file or a Series"):
        wt.simulate(jobs, "1x4", "fifo", shift={"series": [500, 100], "max_delay": "5m"})
    with pytest.raises(SpecError, match=r"carbon.*expected a number, a CSV file or a Series"):
        wt.simulate(jobs, "1x4", "fifo", power=PLAIN, carbon=[500, 100])


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_work_that_a_failure_undid_is_planned_for_again(engine: str) -> None:
    """At 5.5 s the first job waits with all of its 9 s to do, though it had run for 5."""
    jobs = {
        "submit_time": [0, 0, 5.5],
        "duration": [9, 6, 2],
        "num_gpus": [1, 2, 1],
        "workload": ["x", "x", "late"],
    }
    shift = {"max_delay": 20, "workloads": ["late"], "fill": 0.34, "rows": [(0, 1)]}
    run = wt.simulate(
        jobs, "3x1", "fifo", shift=shift, engine=engine, power=PLAIN,
        disruptions={"node_failures": [{"node": 0, "time": 5, "until": 100}]},
    )  # fmt: skip
    # One GPU at a time is to be planned for: the first job's is until 14.5 s.
    assert run.table["start_time"].to_pylist() == [0, 0, 14.5]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("save_time", "stays"),
    [
        (10, [(0, 20)]),  # 20 s at a price of 2 are dearer than 10 s at 3
        (4, [(0, 10), (30, 44)]),  # 14 s at 2 are not
    ],
)
def test_a_job_is_stopped_where_that_costs_less_in_all(
    save_time: float, stays: list[tuple[float, float]], engine: Any
) -> None:
    jobs = {"submit_time": [0], "duration": [20], "num_gpus": [1]}
    shift = {"rows": [[0, 1], [10, 3], [30, 2]], "max_delay": 30, "interruptible": True}
    run = wt.simulate(jobs, "pool:1", "fifo", shift=shift, save_time=save_time, engine=engine)
    ends = run.segments["end"].to_pylist()
    assert list(zip(run.segments["start"].to_pylist(), ends, strict=True)) == stays


def test_shifted_jobs_spread_over_hours() -> None:
    jobs = {"submit_time": [0, 0, 0, 0], "duration": [HOUR] * 4, "num_gpus": [1, 1, 1, 2]}
    rows = [[HOUR * hour, value] for hour, value in enumerate([400, 100, 300, 200, 500, 500])]
    request: dict[str, Any] = {"rows": rows, "max_delay": "4h"}
    starts = {}
    ways = {"blind": {"blind": True}, "full": {"fill": 1.0}, "half": {"fill": 0.5}}
    for name, more in ways.items():
        run = wt.simulate(jobs, "pool:2", "fifo", shift={**request, **more})
        starts[name] = [start / HOUR for start in run.table["start_time"].to_pylist()]
    assert starts["blind"] == [1, 1, 2, 3]  # all four came for hour 1
    assert starts["full"] == [1, 1, 3, 2]
    # One GPU at a time is planned for; a job of more than that has the cluster to itself.
    assert starts["half"] == [1, 3, 2, 0]


@pytest.mark.parametrize("interruptible", [False, True])
def test_shifts_that_look_at_capacity_meet_their_deadlines(*, interruptible: bool) -> None:
    random = np.random.default_rng(3)
    number, day = 250, 24 * HOUR
    jobs = {
        "submit_time": np.sort(random.uniform(0, 3 * day, number)),
        "duration": random.uniform(0.5 * HOUR, 6 * HOUR, number),
        "num_gpus": random.choice([1.0, 2.0, 4.0], number),
    }
    rows = [[HOUR * hour, 400 + 300 * math.cos(hour / 12 * math.pi)] for hour in range(24)]
    series = Series(np.array(rows)[:, 0], np.array(rows)[:, 1])
    model = PowerModel.from_mapping({"gpus": {"default": {"idle_w": 0, "active_w": 300}}})
    request = {"rows": rows, "max_delay": "12h", "interruptible": interruptible}
    late, carbon = [], []
    for shift in (None, {**request, "blind": True}, request):
        book = account(wt.simulate(jobs, "6x8", "fifo", shift=shift), model, carbon=series)
        late.append(governed(book).get("num_late", 0))
        carbon.append(float(book.amount_by_job(series).sum()))
    assert late[1] > 10 * late[2]
    assert late[2] == 0
    # What is given up for it is little of what there is to save.
    assert carbon[0] - carbon[2] > 0.75 * (carbon[0] - carbon[1]) > 0


#: Of two jobs that share a GPU the first may be paused in a dear time.
PAUSED: dict[str, Any] = {
    "rows": [[0, 1], [100, 5], [200, 1]],
    "max_delay": 150,
    "interruptible": True,
    "workloads": "a",
    "fill": 1,
}


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_slow_job_is_not_paused_beyond_its_deadline(engine: str) -> None:
    # The other job halves its speed. At 60 it has 30 s of work to go, which take 60 s: until 100,
    # when the dear time begins, 10 s of that, and from 200 until its deadline, 210. So it is paused
    # from 110 on.
    slowdown = wt.Slowdown(share_by=(ShareFactor("a", "b", 0.5, 0.5),))
    jobs = {
        "submit_time": [0, 0],
        "duration": [60, 1000],
        "num_gpus": [0.5, 0.5],
        "workload": ["a", "b"],
    }
    run = wt.simulate(jobs, "1x1", "fifo", slowdown=slowdown, shift=PAUSED, engine=engine)
    mine = run.flight.segment_job == 0
    assert run.flight.segment_start[mine].tolist() == [0, 200]
    assert run.flight.segment_end[mine].tolist() == [110, 210]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("believed", "stays"), [(60, [(0, 110), (200, 220)]), (70, [(0, 120), (200, 210)])]
)
def test_what_is_left_of_a_believed_length_is_counted_at_the_jobs_speed(
    engine: str, believed: float, stays: list[tuple[float, float]]
) -> None:
    # As above, of 65 s, believed to be 60 or 70: at that time half of them are done, and the rest
    # takes as long as they are. Of these 60 s (70) there are 40 (30) until 100 and 10 (20) from 200
    # until the deadline; the other 10 (20) are dear. It was stopped at 100 already.
    slowdown = wt.Slowdown(share_by=(ShareFactor("a", "b", 0.5, 0.5),))
    jobs = {
        "submit_time": [0, 0],
        "duration": [65, 1000],
        "estimate": [believed, 1000],
        "num_gpus": [0.5, 0.5],
        "workload": ["a", "b"],
    }
    shift = PAUSED | {"lengths": "recorded"}
    run = wt.simulate(jobs, "1x1", "fifo", slowdown=slowdown, shift=shift, engine=engine)
    flight, mine = run.flight, run.flight.segment_job == 0
    found = zip(flight.segment_start[mine], flight.segment_end[mine], strict=True)
    assert list(found) == stays


def test_forecast_errors_are_seeded() -> None:
    jobs = {"submit_time": [0.0], "duration": [HOUR], "num_gpus": [1]}
    rows = [[HOUR * hour, 100 + hour % 5] for hour in range(48)]
    request = {"rows": rows, "max_delay": "40h", "forecast_error": 0.5}
    starts = [
        wt.simulate(jobs, "pool:1", shift=request, seed=seed).table["start_time"].to_pylist()
        for seed in (1, 1, 2, 3)
    ]
    assert starts[0] == starts[1]
    assert len({tuple(start) for start in starts}) > 1


ORDERS = [which for which in POLICIES if which[0] not in (lifo, jumping)]


@pytest.mark.slow
@given(
    cases=CASES,
    values=st.lists(st.integers(1, 9), min_size=2, max_size=6),
    interruptible=st.booleans(),
    delay=st.integers(0, 20_000),
    which=st.sampled_from([*ORDERS, ("conservative", None)]),
)
def test_shifting_on_an_empty_cluster(
    *, cases: list[Any], values: list[int], interruptible: bool, delay: int, which: tuple[str, Any]
) -> None:
    """With room for everybody every job meets its deadline, and nobody's carbon rises."""
    rows = [[1000.0 * i, float(v)] for i, v in enumerate(values)]
    series = Series(np.array(rows)[:, 0], np.array(rows)[:, 1])
    large = wt.ClusterSpec((wt.NodeType(40, 8, "A"), wt.NodeType(40, 8, "B")))
    policy, queueing = which
    model = PowerModel.from_mapping(RICH)
    request = {"rows": rows, "max_delay": delay, "interruptible": interruptible}
    options: dict[str, Any] = {"queueing": queueing, "engine": "reference"}
    jobs = table_of(cases)
    # A job of any type might go on elsewhere after a pause, at another power than before.
    jobs["gpu_type"] = [asked or "A" for asked in jobs["gpu_type"]]
    plain = wt.simulate(jobs, large, policy, **options)
    run = wt.simulate(jobs, large, policy, shift=request, **options)
    ends = np.array([case[0] + case[1] + delay for case in cases])
    assert (run.table["end_time"].to_numpy() <= ends + 1e-6).all()
    assert run.table["run_time"].to_numpy() == pytest.approx([case[1] for case in cases])
    before = account(plain, model).amount_by_job(series)
    after = account(run, model).amount_by_job(series)
    assert account(run, model).energy_by_job == pytest.approx(account(plain, model).energy_by_job)
    assert (after <= before * (1 + 1e-9) + 1e-12).all()


@pytest.mark.slow
@given(cases=CASES, which=st.sampled_from([*ORDERS, ("conservative", None)]))
def test_shifted_jobs_are_accounted_for_in_a_full_cluster(
    cases: list[Any], which: tuple[Any, str | None]
) -> None:
    policy, queueing = which
    request = {"rows": HOURLY, "max_delay": 9000, "interruptible": True}
    run = wt.simulate(
        *(table_of(cases), NODES, policy), queueing=queueing, shift=request, save_time=5
    )
    assert run.metrics()["num_finished"] == len(cases)
    flight = run.flight
    record = flight.power
    assert record is not None
    submit = np.array([case[0] for case in cases])
    assert (record.held_until >= submit).all()
    assert (run.table["start_time"].to_numpy() >= record.held_until).all()
    extra = run.table["run_time"].to_numpy() - np.array([case[1] for case in cases])
    stays = zip(flight.segment_job, flight.segment_end - flight.segment_start, strict=True)
    # Who is stopped while it still pays for going on pays anew.
    paid, began = np.zeros(len(cases)), set()
    for job, length in stays:
        paid[job] += min(5.0, length) if job in began else 0.0
        began.add(job)
    assert extra == pytest.approx(paid, abs=1e-6)


@pytest.mark.slow
@given(
    cases=st.lists(
        st.tuples(
            st.integers(0, 900),
            st.integers(1, 900),
            st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]),
            st.sampled_from(["train", "eval"]),
        ),
        min_size=1,
        max_size=14,
    ),
    cap=st.floats(500, 1500),
    where=st.sampled_from(["pool:4", "2x2"]),
    sharing=st.sampled_from([None, "pooled"]),
    limits=st.sampled_from(["none", "uniform", "optimised"]),
)
def test_parts_of_gpus_are_capped(
    cases: list[Any], cap: float, where: str, sharing: str | None, limits: str
) -> None:
    model = PowerModel.from_mapping(
        {"gpus": {"default": {"idle_w": 50, "active_w": 250}}, "limits": [TABLE]}
    )
    names = ("submit_time", "duration", "num_gpus", "workload")
    jobs = dict(zip(names, map(list, zip(*cases, strict=True)), strict=True))
    cap = max(cap, 200 + 2 * 200.0)  # two whole GPUs beyond idle
    run = wt.simulate(
        *(jobs, where, "fifo"),
        queueing="skip",
        sharing=sharing if where == "2x2" else None,
        power=model,
        power_cap={"watts": cap, "limits": limits},
    )
    assert run.metrics()["num_finished"] == len(cases)
    power = account(run, model).power["power_w"].to_numpy()
    assert (power <= cap * (1 + 1e-8)).all()
    numbers, area = integral(run, model)
    assert numbers["energy_j"] == pytest.approx(area, rel=1e-9)


def test_policies_of_power_go_together() -> None:
    """A cap, sleeping nodes and shifted jobs at once, on measured tables and a slow-down model."""
    cases = [(700 * i % 9000, 600 + 97 * i % 3000, 1 + i % 4, "A", "train", "u") for i in range(40)]
    model = PowerModel.from_mapping(RICH)
    run = wt.simulate(
        table_of(cases),
        NODES,
        "sjf",
        queueing="skip",
        power=model,
        power_cap={"watts": IDLE_W + 700, "limits": "uniform"},
        shift={"rows": HOURLY, "max_delay": "2h"},
        node_sleep={"forecast": "last", "fut": 0, "buffer": 0, "keep": 1},
        slowdown="spread=0.5",
    )
    assert run.metrics()["num_finished"] == len(cases)
    numbers, area = integral(run, model)
    assert numbers["energy_j"] == pytest.approx(area, rel=1e-9)
    assert account(run, model).power["power_w"].to_numpy().max() <= (IDLE_W + 700) * (1 + 1e-8)
    record = run.flight.power
    assert record is not None
    assert record.num_wakes > 0
    assert record.level.max() > 0
    again = wt.simulate(
        *(table_of(cases), NODES, "sjf"),
        **{k: v for k, v in run.settings.items() if k not in _NOT_OPTIONS},
    )
    assert again.table.equals(run.table)


#: Settings that are reported, and are no options of `windtunnel.simulate`, or name the same policy.
_NOT_OPTIONS = ("policy", "parameters", "order_by")


def test_a_job_goes_where_there_is_power_for_it() -> None:
    # Best fit takes the first node, of A, where the job would draw 200 W more; B draws 70 more.
    jobs = {"submit_time": [0], "duration": [10], "num_gpus": [1]}
    model = {**RICH, "limits": []}
    plain = wt.simulate(jobs, NODES, "fifo", power=model)
    assert plain.table["nodes"].to_pylist() == [[0]]
    for queueing in ("strict", "easy"):
        run = wt.simulate(
            *(jobs, NODES, "fifo"),
            queueing=queueing,
            estimates="perfect" if queueing == "easy" else None,
            power=model,
            power_cap=IDLE_W + 100,
        )
        assert run.table["nodes"].to_pylist() == [[2]]
        assert run.table["start_time"].to_pylist() == [0]
    # 13 GPUs fit on neither type alone: they may need up to the draw of 13 of A.
    gang = {"submit_time": [0], "duration": [10], "num_gpus": [13]}
    with pytest.raises(SpecError, match="never fit"):
        wt.simulate(gang, NODES, "fifo", power=model, power_cap=IDLE_W + 1000)


def test_jobs_that_never_fit_may_be_rejected() -> None:
    jobs = {"submit_time": [0, 0, 1], "duration": [10, 10, 10], "num_gpus": [4, 2, 1]}
    for policy in ("fifo", "quota", "srtf"):
        run = wt.simulate(
            *(jobs, "1x4", policy), power=PLAIN, power_cap=300, oversize="reject", node_sleep={}
        )
        assert run.table["status"].to_pylist() == ["rejected", "finished", "finished"]
        assert "400 W; the highest cap is 300 W" in run.table["reason"].to_pylist()[0]
        assert run.table["start_time"].to_pylist()[1:] == [0, 1]


def test_a_gang_that_no_type_holds_may_run_on_several() -> None:
    # Four GPUs of 100 W and two of 300: 1,000 W.
    power = {"gpus": {"A": {"idle_w": 0, "active_w": 100}, "B": {"idle_w": 0, "active_w": 300}}}
    jobs = {"submit_time": [0], "duration": [10], "num_gpus": [6]}
    run = wt.simulate(jobs, "1x4:A,1x4:B", "fifo", power=power, power_cap=1000)
    assert run.table["start_time"].to_pylist() == [0]
    with pytest.raises(SpecError, match="takes the cluster to 1,000 W; the highest cap is 999 W"):
        wt.simulate(jobs, "1x4:A,1x4:B", "fifo", power=power, power_cap=999)


def test_rounds_ask_nobody_where_nobody_can_be_stopped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A job that waits for a better hour costs nothing once it has been let in."""
    asked: list[float] = []
    monkeypatch.setattr(PowerSources, "after_decisions", lambda _, now: asked.append(now))
    (tmp_path / "prices.csv").write_text("time,value\n0,2\n3600,1\n")
    jobs = {"submit_time": [0.0, 5.0], "duration": [600.0, 900.0], "num_gpus": [1.0, 1.0]}
    shift = f"series={tmp_path}/prices.csv,max_delay=2h"
    flown = wt.simulate(jobs, "1x4", "las:quantum=1", shift=shift)
    assert flown.metrics()["max_wait"] == 3600
    assert not asked
