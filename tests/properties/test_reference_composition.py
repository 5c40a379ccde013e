"""Every feature with every other on the reference: what must hold, found from what a run tells.

The observer knows nothing of the engine: it goes by the segments, the description of the run, and
the few sums that a flight states.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from composition_cases import Composed, composed
from flight_cases import draws

from windtunnel.energy import PowerModel, Series, account
from windtunnel.study.resume_costs import resume_costs

SEEDS = range(draws(400))
#: Sums of seconds are exact to this.
NEAR = 1e-6


@pytest.mark.parametrize("first", range(0, len(SEEDS), 20))
def test_what_holds_in_every_run(first: int) -> None:
    for seed in SEEDS[first : first + 20]:
        check(composed(seed))


def check(case: Composed) -> None:
    """Fly a case and look at everything."""
    out = case.fly()
    try:
        _everybody_is_accounted_for(case, out)
        _capacity_is_kept(out)
        _time_adds_up(case, out)
        _work_is_the_integral_of_rates(case, out)
        _nobody_starts_where_nobody_may(case, out)
        _nobody_is_on_a_sleeping_node(case, out)
        _decisions_keep_to_their_interval(case, out)
        _the_cap_is_kept(case, out)
        again = case.fly()
        np.testing.assert_array_equal(out.flight.segment_start, again.flight.segment_start)
    except AssertionError as error:
        raise AssertionError(f"seed {case.seed}: {case}") from error


def _segments(out: Any) -> list[dict[str, Any]]:
    """Each stay with its row, begin, end (the horizon where it lasts) and (node, GPUs, devices)."""
    flight, until = out.flight, out.settings["until"]
    found = []
    for number, row in enumerate(flight.segment_job.tolist()):
        low, high = flight.node_offset[number : number + 2]
        end = flight.segment_end[number]
        devices = flight.devices[low:high].tolist() if len(flight.devices) else [0] * (high - low)
        parts = zip(
            flight.nodes[low:high].tolist(), flight.node_gpus[low:high].tolist(), devices,
            strict=True,
        )  # fmt: skip
        found.append(
            {
                "row": row,
                "start": float(flight.segment_start[number]),
                "end": float(until if math.isnan(end) else end),
                "lasts": math.isnan(end),
                "parts": list(parts),
            }
        )
    return found


def _everybody_is_accounted_for(case: Composed, out: Any) -> None:
    until = math.inf if case.options["until"] is None else case.options["until"]
    stays: dict[int, list[dict[str, Any]]] = {}
    for stay in _segments(out):
        stays.setdefault(stay["row"], []).append(stay)
    for row, status in enumerate(out.table["status"].to_pylist()):
        own = stays.get(row, [])
        assert all(a["end"] <= b["start"] for a, b in zip(own, own[1:], strict=False))
        submit = case.jobs["submit_time"][row]
        assert all(submit <= stay["start"] <= stay["end"] <= until for stay in own)
        assert sum(stay["lasts"] for stay in own) == (status == "running")
        end = out.flight.end[row]
        assert math.isnan(end) == (status not in {"finished", "failed"})
        if status in {"finished", "failed"}:
            assert end == own[-1]["end"]
        if status == "rejected":
            assert not own
        assert (status == "not_submitted") == (submit > until and status != "rejected")
        held = sum(stay["end"] - stay["start"] for stay in own)
        assert out.flight.run_time[row] == pytest.approx(held, abs=NEAR)
    if until == math.inf and out.flight.interruptions is None and out.flight.power is None:
        assert set(out.table["status"].to_pylist()) <= {"finished", "rejected"}


def _capacity_is_kept(out: Any) -> None:
    """No GPU is held twice but by jobs that share a whole place."""
    stays = [stay for stay in _segments(out) if stay["end"] > stay["start"]]
    sizes = [kind.gpus for kind in out.cluster.node_types for _ in range(kind.count)]
    asked = out.jobs["num_gpus"].to_pylist()
    for now in sorted({stay["start"] for stay in stays}):
        there = [stay for stay in stays if stay["start"] <= now < stay["end"]]
        if out.settings["placement"] == "pool":
            places: dict[Any, float] = {}
            held = sum(asked[stay["row"]] for stay in there)
            if out.flight.gpu_time is None:
                assert held <= sum(sizes) + NEAR
            continue
        # Jobs that share a place have the same parts; what is theirs counts once.
        places = {}
        for stay in there:
            shared = out.flight.gpu_time is not None
            key = ("place", *stay["parts"]) if shared else ("stay", stay["row"], stay["start"])
            if key not in places:
                places[key] = 0.0
                for node, gpus, devices in stay["parts"]:
                    places["node", node] = places.get(("node", node), 0.0) + gpus
                    share = gpus / max(devices.bit_count(), 1)
                    for device in range(62):
                        if devices >> device & 1:
                            name = ("device", node, device)
                            places[name] = places.get(name, 0.0) + min(share, 1.0)
        for key, held in places.items():
            if key[0] == "node":
                assert held <= sizes[key[1]] + NEAR
            elif key[0] == "device" and _one_share_each(out):
                assert held <= 1 + NEAR


def _one_share_each(out: Any) -> bool:
    return all(tasks is None or tasks <= 1 for tasks in out.jobs["num_tasks"].to_pylist())


def _paid(case: Composed, out: Any) -> dict[int, float]:
    """Seconds of resuming, where nothing but stops by the policy, the cap and shifts made it so."""
    costs = resume_costs("restore_time", case.options["restore_time"], _AsProblem(out))
    paid: dict[int, float] = {}
    seen: set[int] = set()
    for stay in _segments(out):
        row = stay["row"]
        held = stay["end"] - stay["start"]
        paid[row] = paid.get(row, 0.0) + (min(held, float(costs[row])) if row in seen else 0.0)
        seen.add(row)
    return paid


class _AsProblem:
    """The jobs of an outcome, as `resume_costs` asks for them."""

    def __init__(self, out: Any) -> None:
        from windtunnel.sim.jobs import Jobs

        self.jobs = Jobs(out.jobs)
        self.rows = np.arange(len(self.jobs))


def _time_adds_up(case: Composed, out: Any) -> None:
    flight, told = out.flight, out.flight.interruptions
    slowed = np.zeros(len(flight.start)) if flight.slowdown_time is None else flight.slowdown_time
    if told is not None:
        parts = told.useful_time + told.overhead_time + told.lost_time + slowed
        np.testing.assert_allclose(parts, flight.run_time, atol=NEAR)
        assert (told.overhead_time >= -NEAR).all()
        assert (told.lost_time >= -NEAR).all()
        for row, status in enumerate(out.table["status"].to_pylist()):
            if status == "finished":
                duration = case.jobs["duration"][row]
                assert told.useful_time[row] == pytest.approx(duration, abs=NEAR)
        return
    if type(case.policy).__name__ == "Whims" and flight.slowdown_time is None:
        return  # it gives jobs rates of its own
    paid = _paid(case, out)
    for row, status in enumerate(out.table["status"].to_pylist()):
        if status == "finished":
            work = flight.run_time[row] - paid[row] - slowed[row]
            assert work == pytest.approx(case.jobs["duration"][row], abs=NEAR)


def _work_is_the_integral_of_rates(case: Composed, out: Any) -> None:
    """Where locality alone decides on rates they are known from the segments."""
    model = case.options.get("slowdown")
    plain = model and set(model) <= {"spread"} and out.flight.interruptions is None
    if not plain or out.settings["sharing"] is not None or "power_cap" in case.options:
        return
    if type(case.policy).__name__ == "Whims":
        return
    costs = resume_costs("restore_time", case.options["restore_time"], _AsProblem(out))
    done: dict[int, float] = {}
    seen: set[int] = set()
    for stay in _segments(out):
        row = stay["row"]
        spread = len(stay["parts"]) > math.ceil(case.jobs["num_gpus"][row] / 4)
        held = stay["end"] - stay["start"]
        worked = held - (min(held, float(costs[row])) if row in seen else 0.0)
        done[row] = done.get(row, 0.0) + worked * (model["spread"] if spread else 1.0)
        seen.add(row)
    for row, status in enumerate(out.table["status"].to_pylist()):
        if status == "finished":
            assert done[row] == pytest.approx(case.jobs["duration"][row], abs=NEAR)
        elif row in done:
            assert done[row] <= case.jobs["duration"][row] + NEAR


def _nobody_starts_where_nobody_may(case: Composed, out: Any) -> None:
    given = case.options.get("disruptions", {})
    closed = []
    for failure in given.get("node_failures", []):
        closed.append((failure.get("node"), failure["time"], failure["until"], (), True))
    for window in given.get("maintenance", []):
        begin = window["start"] - window["drain_before"]
        closed += [(node, begin, window["end"], (), False) for node in window.get("nodes", [])]
    for held in given.get("reservations", []):
        closed += [
            (node, held["start"], held["end"], held["users"], False) for node in held["nodes"]
        ]
    if out.settings["placement"] == "pool":
        return
    for stay in _segments(out):
        user = case.jobs["user"][stay["row"]]
        for node, begin, end, users, kills in closed:
            if user in users or node not in [part[0] for part in stay["parts"]]:
                continue
            # One event at a time, decisions of the instant come before the hold begins.
            early = stay["start"] == begin and case.options["events"] != "batch"
            assert early or not begin <= stay["start"] < end
            if kills and stay["end"] > stay["start"]:
                assert not (stay["start"] < begin < stay["end"])


def _nobody_is_on_a_sleeping_node(case: Composed, out: Any) -> None:
    record = out.flight.power
    if record is None or not len(record.asleep_node):
        return
    wake_time = case.options["node_sleep"]["wake_time"]
    for node, begin, called in zip(
        record.asleep_node, record.asleep_start, record.asleep_end, strict=True
    ):
        ready = math.inf if math.isnan(called) else called + wake_time
        for stay in _segments(out):
            if node in [part[0] for part in stay["parts"]] and stay["end"] > stay["start"]:
                assert stay["end"] <= begin or stay["start"] >= ready


def _decisions_keep_to_their_interval(case: Composed, out: Any) -> None:
    interval = case.options.get("decide_every")
    if interval is not None:
        assert all(stay["start"] % interval == 0 for stay in _segments(out))


def _the_cap_is_kept(case: Composed, out: Any) -> None:
    cap = case.options.get("power_cap")
    if cap is None or out.flight.gpu_time is not None:
        return
    rows = np.array(cap["rows"])
    series = Series(rows[:, 0], rows[:, 1])
    power = account(out, PowerModel.from_mapping(case.options["power"])).power
    times, watts = power["time"].to_numpy(), power["power_w"].to_numpy()
    assert (watts <= series.at(times) * (1 + 1e-6)).all()
