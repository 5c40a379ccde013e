"""What must hold in every run, whatever is combined in it, found from what the run tells.

The observer knows nothing of the engine: it goes by the segments, the description of the run, and
the few sums that a flight states.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from admitted import kueue_quotas_are_kept, slurm_limits_are_kept
from own_rates import OptionRates, option_speeds, option_terms, table_speeds, table_terms
from rates import Account, Rates, Terms, accounts

import windtunnel as wt
from windtunnel.energy import PowerModel, Series, account
from windtunnel.sim.jobs import Jobs
from windtunnel.site.slurm import SlurmSite
from windtunnel.study.resume_costs import resume_costs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windtunnel.policies.kueue.manifests import Manifests

#: Sums of seconds are exact to this.
NEAR = 1e-6
#: By when all jobs of a run that nothing disrupts are over, s.
LONG = 1500.0


class Observed:
    """A run as the observer sees it.

    Args:
        out: the outcome.
        options: what `windtunnel.simulate` was given.
        own_rates: the policy gives its jobs rates or costs that nothing but itself tells; elastic
            jobs' are told by their options, those in Gavel's rounds by the throughputs.
        quotas: of its virtual clusters, as a run is given them; None = none.
        site: what says which limits there are, of policy ``slurm`` or ``kueue``; None = neither.

    Attributes:
        stays: each stay with its row, begin, end (the horizon where it lasts) and (node, GPUs,
            devices).
    """

    def __init__(
        self,
        out: Any,
        options: Mapping[str, Any],
        *,
        own_rates: bool = False,
        quotas: Mapping[str, Any] | None = None,
        site: SlurmSite | Manifests | None = None,
    ) -> None:
        self.out, self.flight, self.options = out, out.flight, options
        self.own_rates, self.quotas, self.site = own_rates, quotas, site
        self.until = out.settings["until"] if options.get("until") is not None else math.inf
        self.status = out.table["status"].to_pylist()
        self.stays = _stays(out)
        self.sizes = [kind.gpus for kind in out.cluster.node_types for _ in range(kind.count)]
        self.as_pool = out.settings["placement"] == "pool"

    def column(self, name: str) -> list[Any]:
        """Return a column of the jobs."""
        found: list[Any] = self.out.jobs[name].to_pylist()
        return found

    def costs(self) -> np.ndarray:
        """Return what resuming costs each job, s."""
        jobs = _Rows(self.out)
        total: np.ndarray = resume_costs("save_time", self.options.get("save_time", 0.0), jobs)  # type: ignore[arg-type] # as much as it asks for
        if "restore_time" in self.options:
            return total + resume_costs("restore_time", self.options["restore_time"], jobs)  # type: ignore[arg-type] # ditto
        if "restore_time" in self.out.jobs.column_names:
            total += np.nan_to_num(np.array(self.column("restore_time"), dtype=float))
        return total

    @property
    def is_elastic(self) -> bool:
        """Whether jobs run in options."""
        return self.flight.stretches is not None

    @property
    def is_shared(self) -> bool:
        """Whether jobs may run beside others, at rates that only their policy tells."""
        return self.flight.gpu_time is not None

    def rates(self) -> Rates:
        """Return the rates that where jobs are gives them."""
        model = wt.Slowdown.from_mapping(self.options.get("slowdown") or {})
        return OptionRates(self.out, model) if self.is_elastic else Rates(self.out, model)

    def terms(self, rates: Rates) -> list[Terms]:
        """Return what each job has to do and to pay."""
        if self.is_elastic:
            return option_terms(self.out, self.options)
        costs = self.costs().tolist()
        if table := self.options.get("throughputs"):
            return table_terms(rates, table, costs)
        return [
            Terms(float(work or 0), cost)
            for work, cost in zip(self.column("duration"), costs, strict=True)
        ]

    def speeds(self, rates: Rates) -> list[float]:
        """Return the speed that its policy gave each stay; 1 is what its work is counted at."""
        if self.is_elastic:
            return option_speeds(self.out)
        if table := self.options.get("throughputs"):
            return table_speeds(rates, table)
        return [1.0] * len(self.stays)


class _Rows:
    """All jobs of an outcome, as `resume_costs` asks for them."""

    def __init__(self, out: Any) -> None:
        self.jobs = Jobs(out.jobs)
        self.rows = np.arange(len(self.jobs))


def check(run: Observed) -> None:
    """Look at everything."""
    _everybody_is_accounted_for(run)
    _capacity_is_kept(run)
    _cores_and_memory_are_kept(run)
    _quotas_are_kept(run)
    _site_limits_are_kept(run)
    _time_adds_up(run)
    _work_is_the_integral_of_rates(run)
    _nobody_starts_where_nobody_may(run)
    _nobody_is_on_a_sleeping_node(run)
    _decisions_keep_to_their_interval(run)
    _the_cap_is_kept(run)


def _stays(out: Any) -> list[dict[str, Any]]:
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
                "number": number,
                "row": row,
                "start": float(flight.segment_start[number]),
                "end": float(until if math.isnan(end) else end),
                "lasts": math.isnan(end),
                "parts": list(parts),
            }
        )
    return found


def _everybody_is_accounted_for(run: Observed) -> None:
    stays: dict[int, list[dict[str, Any]]] = {}
    for stay in run.stays:
        stays.setdefault(stay["row"], []).append(stay)
    submitted = run.column("submit_time")
    for row, status in enumerate(run.status):
        own = stays.get(row, [])
        assert all(a["end"] <= b["start"] for a, b in pairwise(own))
        submit = submitted[row]
        assert all(submit <= stay["start"] <= stay["end"] <= run.until for stay in own)
        assert sum(stay["lasts"] for stay in own) == (status == "running")
        end = run.flight.end[row]
        assert math.isnan(end) == (status not in {"finished", "failed"})
        if status in {"finished", "failed"}:
            assert end == own[-1]["end"]
        if status == "rejected":
            assert not own
        else:
            assert (status == "not_submitted") == (submit > run.until)
        held = sum(stay["end"] - stay["start"] for stay in own)
        assert run.flight.run_time[row] == pytest.approx(held, abs=NEAR)
    if run.until >= LONG and run.flight.interruptions is None and run.flight.power is None:
        assert set(run.status) <= {"finished", "rejected"}


def _capacity_is_kept(run: Observed) -> None:  # noqa: C901 - nodes and devices, shared or not
    """No GPU is held twice but by jobs that share a whole place."""
    stays = [stay for stay in run.stays if stay["end"] > stay["start"]]
    asked = run.column("num_gpus")
    tasks = run.column("num_tasks")
    for now in sorted({stay["start"] for stay in stays}):
        there = [stay for stay in stays if stay["start"] <= now < stay["end"]]
        shared = run.flight.gpu_time is not None
        if run.as_pool:
            if not shared:
                assert sum(asked[stay["row"]] for stay in there) <= sum(run.sizes) + NEAR
            continue
        # Jobs that share a place have the same parts; what is theirs counts once.
        places: dict[Any, float] = {}
        for stay in there:
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
        one_each = all(count is None or count <= 1 for count in tasks)
        for key, held in places.items():
            if key[0] == "node":
                assert held <= run.sizes[key[1]] + NEAR
            elif key[0] == "device" and one_each:
                assert held <= 1 + NEAR


def _cores_and_memory_are_kept(run: Observed) -> None:
    """Jobs on one node alone hold no more of it than there is; parts of others are not known."""
    kinds = [kind for kind in run.out.cluster.node_types for _ in range(kind.count)]
    if run.as_pool or run.flight.stretches is not None or run.flight.gpu_time is not None:
        return
    if run.options.get("resources", "all") != "all":
        return
    for name, limits in (
        ("num_cpus", [kind.cpus for kind in kinds]),
        ("mem_gib", [kind.mem_gib for kind in kinds]),
    ):
        asked = run.column(name)
        for now in {stay["start"] for stay in run.stays}:
            held = [0.0] * len(kinds)
            for stay in run.stays:
                nodes = {part[0] for part in stay["parts"]}
                if len(nodes) == 1 and stay["start"] <= now < stay["end"]:
                    held[nodes.pop()] += asked[stay["row"]] or 0.0
            pairs = zip(held, limits, strict=True)
            assert all(limit is None or had <= limit + NEAR for had, limit in pairs)


def _quotas_are_kept(run: Observed) -> None:
    """No queue holds more than its quota and what it may borrow, at any instant, of any GPU type.

    The queues of a run are all of one cohort, and lend all that they have.
    """
    if run.quotas is None:
        return
    queues = {queue["vc"]: queue for queue in run.quotas["queues"]}
    types = [kind.gpu_type for kind in run.out.cluster.node_types for _ in range(kind.count)]
    whose = run.column("vc")
    for now in {stay["start"] for stay in run.stays}:
        there = [stay for stay in run.stays if stay["start"] <= now < stay["end"]]
        held: dict[tuple[str, str], float] = {}
        for stay in there:
            by_type = isinstance(queues[whose[stay["row"]]]["nominal_quota"], dict)
            names = {types[node] for node, _, _ in stay["parts"]} if by_type else {""}
            if not (gpus := _quota_asked(run, stay)) or not names:  # a pool does not tell its types
                continue
            assert len(names) == 1
            key = whose[stay["row"]], names.pop()
            held[key] = held.get(key, 0.0) + gpus
        for name in {name for _, name in held}:
            own = {vc: _of_type(queue["nominal_quota"], name) for vc, queue in queues.items()}
            assert sum(held.get((vc, name), 0.0) for vc in own) <= sum(own.values()) + NEAR
            for vc, queue in queues.items():
                most = own[vc] + queue.get("borrowing_limit", math.inf)
                assert held.get((vc, name), 0.0) <= most + NEAR


def _of_type(gpus: Any, name: str) -> float:
    return float(gpus[name] if isinstance(gpus, dict) else gpus)


def _quota_asked(run: Observed, stay: dict[str, Any]) -> float:
    """Return the GPUs of its quota that a stay uses: those asked for, or that it was resized to."""
    if run.flight.stretches is not None:
        return float(sum(gpus for _, gpus, _ in stay["parts"]))
    return float(run.column("num_gpus")[stay["row"]])


def _site_limits_are_kept(run: Observed) -> None:
    if isinstance(run.site, SlurmSite):
        slurm_limits_are_kept(run.out, run.site)
    elif run.site is not None:
        kueue_quotas_are_kept(run.out, run.site)


def _paid(run: Observed) -> list[float]:
    """Return the seconds that each stay paid for resuming, where stops alone made it so."""
    costs, seen, found = run.costs(), set[int](), []
    for stay in run.stays:
        row = stay["row"]
        held = stay["end"] - stay["start"]
        found.append(min(held, float(costs[row])) if row in seen else 0.0)
        seen.add(row)
    return found


def _time_adds_up(run: Observed) -> None:
    """Held = useful + overhead + lost + what slow-downs cost; who finished did all its work."""
    flight, parts = run.flight, run.flight.interruptions
    slowed = np.zeros(len(flight.start)) if flight.slowdown_time is None else flight.slowdown_time
    if parts is not None:
        total = parts.useful_time + parts.overhead_time + parts.lost_time + slowed
        np.testing.assert_allclose(total, flight.run_time, atol=NEAR)
        assert (parts.overhead_time >= -NEAR).all()
        assert (parts.lost_time >= -NEAR).all()
        assert (parts.checkpoint_time >= 0).all()
        assert (parts.checkpoint_time <= parts.overhead_time + NEAR).all()
        lost = np.bincount(parts.stop_row, weights=parts.stop_lost, minlength=len(total))
        # What a policy's preemptions undo is lost, too, and no outage's or failure's.
        kept = flight.preemptions == 0
        np.testing.assert_allclose(lost[kept], parts.lost_time[kept], atol=NEAR)
        assert (lost <= parts.lost_time + NEAR).all()
    elif flight.slowdown_time is None and (run.own_rates or run.is_shared):
        return
    if run.is_elastic or run.options.get("throughputs") is not None:
        return  # a job's work is iterations, or steps
    paid = np.zeros(len(flight.start))
    for stay, seconds in zip(run.stays, _paid(run), strict=True):
        paid[stay["row"]] += seconds
    useful = flight.run_time - paid - slowed if parts is None else parts.useful_time
    duration = run.column("duration")
    for row, status in enumerate(run.status):
        if status == "finished":
            assert useful[row] == pytest.approx(duration[row], abs=NEAR)


def _work_is_the_integral_of_rates(run: Observed) -> None:
    """What each job did with its time is what its rates, from where it was, make of it."""
    if not _is_told(run):
        return
    flight, disruptions = run.flight, run.options.get("disruptions", {})
    rates = run.rates()
    terms, own_speeds = run.terms(rates), run.speeds(rates)
    speeds = {
        stay["number"]: [(begin, end, level * own) for begin, end, level in _levels(run, stay)]
        for stay, own in zip(run.stays, own_speeds, strict=True)
    }
    found = accounts(rates, speeds, terms, disruptions, _stops(run))
    loses = isinstance(run.site, SlurmSite) and run.site.settings.preempt
    for row, own in found.items():
        if loses and flight.preemptions[row]:
            continue  # who is requeued begins anew, who waits for cheaper times does not
        work = terms[row].work
        if run.status[row] == "finished":
            assert own.useful == pytest.approx(work, abs=NEAR)
        else:
            assert own.useful <= work + NEAR
        if flight.slowdown_time is not None:
            assert own.slowed == pytest.approx(flight.slowdown_time[row], abs=NEAR)
        if flight.interruptions is not None:
            _is_booked(flight.interruptions, row, own)
        if run.is_elastic:
            _iterations_are_told(run, row, own)


def _is_told(run: Observed) -> bool:
    """Return whether a run tells how fast all its jobs were."""
    # When a node becomes slow, or errs unseen, no record tells; nor when a mate comes or goes.
    of_nodes = run.options.get("disruptions", {}).get("failure_models", [])
    if any({"speed", "found_after"} & set(of) for of in of_nodes):
        return False
    # A pool does not tell which type a job was given.
    types = len(run.out.cluster.gpu_types)
    hides_types = run.as_pool and types > 1 and run.options.get("throughputs") is not None
    return not (run.own_rates or run.is_shared or hides_types)


def _stops(run: Observed) -> list[tuple[int, float, float]]:
    """Return row, time and lost work of each stop by an outage or a failure, in order."""
    of = run.flight.interruptions
    if of is None:
        return []
    columns = (of.stop_row, of.stop_time, of.stop_lost)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _iterations_are_told(run: Observed, row: int, own: Account) -> None:
    """Check what an elastic run tells of a job's iterations and launches."""
    told = run.flight.stretches
    iterations = own.useful * told.promise[row]
    assert iterations == pytest.approx(told.iterations_done[row], abs=NEAR)
    launches = told.penalty_time[run.flight.segment_job == row].sum()
    assert own.overhead - own.checkpoints == pytest.approx(launches, abs=NEAR)


def _is_booked(booked: Any, row: int, own: Account) -> None:
    """Check that what a run with disruptions books of a job is what was found."""
    assert own.useful == pytest.approx(booked.useful_time[row], abs=NEAR)
    assert own.overhead == pytest.approx(booked.overhead_time[row], abs=NEAR)
    assert own.checkpoints == pytest.approx(booked.checkpoint_time[row], abs=NEAR)
    assert own.lost == pytest.approx(booked.lost_time[row], abs=NEAR)


def _levels(run: Observed, stay: dict[str, Any]) -> list[tuple[float, float, float]]:
    """Return how fast its power limits let a stay be: begin, end and speed of each piece."""
    record = run.flight.power
    if record is None or not len(record.level) or "power_cap" not in run.options:
        return [(stay["start"], stay["end"], 1.0)]
    low, high = record.level_offset[stay["number"] : stay["number"] + 2]
    starts = [*record.level_start[low:high].tolist(), stay["end"]]
    speeds = _speeds(run, stay)
    return [
        (starts[at], starts[at + 1], speeds[level])
        for at, level in enumerate(record.level[low:high].tolist())
    ]


def _speeds(run: Observed, stay: dict[str, Any]) -> list[float]:
    """Return the speed of a stay at each of its job's power limits."""
    kinds = [kind.gpu_type for kind in run.out.cluster.node_types for _ in range(kind.count)]
    workload = run.column("workload")[stay["row"]]
    types = {kinds[node] for node, _, _ in stay["parts"]}
    for table in run.options["power"].get("limits", []):
        if table["workload"] == workload and table["gpu_type"] in types:
            speeds: list[float] = table["speed"]
            return speeds
    return [1.0]


def _nobody_starts_where_nobody_may(run: Observed) -> None:
    given = run.options.get("disruptions", {})
    closed = [
        (failure.get("node"), failure["time"], failure["until"], (), True)
        for failure in given.get("node_failures", [])
    ]
    for window in given.get("maintenance", []):
        begin = window["start"] - window["drain_before"]
        closed += [(node, begin, window["end"], (), False) for node in window.get("nodes", [])]
    for held in given.get("reservations", []):
        closed += [
            (node, held["start"], held["end"], held["users"], False) for node in held["nodes"]
        ]
    for change in given.get("capacity_changes", []):
        taken, added = change.get("remove", []), change.get("add", [])
        closed += [(node, change["time"], math.inf, (), False) for node in taken]
        closed += [(node, -math.inf, change["time"], (), False) for node in added]
    if run.as_pool:
        return
    users = run.column("user")
    swaps = given.get("on_failure") == "swap"
    before = {(stay["row"], stay["end"]): stay["parts"] for stay in run.stays if swaps}
    for stay in run.stays:
        user = users[stay["row"]]
        kept = {part[0] for part in before.get((stay["row"], stay["start"]), ())}
        for node, begin, end, allowed, kills in closed:
            if user in allowed or node not in [part[0] for part in stay["parts"]]:
                continue
            # One event at a time, decisions of the instant come before the hold begins.
            early = stay["start"] == begin and run.options.get("events", "batch") != "batch"
            # A gang of which a failed node is replaced stays on the others.
            stays_on = node in kept and begin <= stay["start"]
            assert early or stays_on or not begin <= stay["start"] < end
            if kills and stay["end"] > stay["start"]:
                assert not (stay["start"] < begin < stay["end"])


def _nobody_is_on_a_sleeping_node(run: Observed) -> None:
    record = run.flight.power
    if record is None or not len(record.asleep_node):
        return
    wake_time = run.options["node_sleep"]["wake_time"]
    for node, begin, called in zip(
        record.asleep_node, record.asleep_start, record.asleep_end, strict=True
    ):
        ready = math.inf if math.isnan(called) else called + wake_time
        for stay in run.stays:
            if node in [part[0] for part in stay["parts"]] and stay["end"] > stay["start"]:
                assert stay["end"] <= begin or stay["start"] >= ready


def _decisions_keep_to_their_interval(run: Observed) -> None:
    interval = run.options.get("decide_every")
    if interval is None:
        return
    swaps = run.options.get("disruptions", {}).get("on_failure") == "swap"
    ends = {(stay["row"], stay["end"]) for stay in run.stays}
    for stay in run.stays:
        # A gang of which a failed node is replaced goes on at once: nobody decides that.
        if not (swaps and (stay["row"], stay["start"]) in ends):
            assert stay["start"] % interval == 0


def _the_cap_is_kept(run: Observed) -> None:
    cap = run.options.get("power_cap")
    if cap is None or run.flight.gpu_time is not None:
        return
    rows = np.array(cap["rows"])
    series = Series(rows[:, 0], rows[:, 1])
    power = account(run.out, PowerModel.from_mapping(run.options["power"])).power
    times, watts = power["time"].to_numpy(), power["power_w"].to_numpy()
    assert (watts <= series.at(times) * (1 + 1e-6)).all()
