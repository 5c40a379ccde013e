"""How fast each job was, and what it did with its time: from where jobs were, by a second method.

Nothing here is the engine's: it goes by the stays of a run, by what the run was given, and by
docs/reference/slowdown.md and docs/guides/failures.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import windtunnel as wt

#: A checkpoint that is complete at a stop but for so many seconds may count as complete.
NEAR = 1e-7


class Rates:
    """The rates of a run's stays, instant by instant.

    Args:
        out: the outcome.
        model: of slow-downs.

    Attributes:
        stays: rows of `Outcome.segments`, those that last cut off at the horizon, s.
    """

    def __init__(self, out: wt.Outcome, model: wt.Slowdown) -> None:
        self.model = model
        self.racks = out.cluster.racks
        self.kinds = [kind for kind in out.cluster.node_types for _ in range(kind.count)]
        self.resources = out.settings["resources"]
        self.binds = _binding(out)
        self.jobs = out.jobs.to_pylist()
        until = out.settings["until"]
        self.stays = [
            {**stay, "end": until if stay["end"] is None else stay["end"]}
            for stay in out.segments.to_pylist()
        ]
        self.fewest: dict[int, tuple[int, int]] = {}

    def at(self, now: float) -> dict[int, float]:
        """Return the rate of each stay just after ``now`` (s), by its place in `stays`."""
        there = [
            number for number, stay in enumerate(self.stays) if stay["start"] <= now < stay["end"]
        ]
        shares = self._of_uplinks(there)
        return {
            number: self._locality(number) * self._pace(number, there) * shares[number]
            for number in there
        }

    def _locality(self, number: int) -> float:
        """Return the rate of a stay over more nodes, or more racks, than its job needs."""
        stay = self.stays[number]
        nodes, job = stay["nodes"], self.jobs[stay["row"]]
        if len(nodes) < 2:
            return 1.0
        fewest_nodes, fewest_racks = self._needs(stay)
        rate = 1.0
        if len(nodes) > fewest_nodes:
            table = {(f.job_type, f.num_gpus): f.factor for f in self.model.spread_by}
            rate *= table.get((job["workload"], job["num_gpus"]), self.model.spread)
        if self.racks and len({self.racks[node] for node in nodes}) > fewest_racks:
            rate *= self.model.rack
        return rate

    def _needs(self, stay: Mapping[str, Any]) -> tuple[int, int]:
        """Return over how many nodes, and racks, a stay goes at least."""
        row = stay["row"]
        if row not in self.fewest:
            self.fewest[row] = self._fewest(self.jobs[row])
        return self.fewest[row]

    def _fewest(self, job: Mapping[str, Any]) -> tuple[int, int]:
        """Return the nodes, and racks, of a job's tightest layout on the empty cluster."""
        tasks = _tasks(job)
        of_nodes = [self._most_tasks(job, kind) for kind in self.kinds]
        return count_of(of_nodes, tasks), count_of(self.by_rack(of_nodes), tasks)

    def by_rack(self, of_nodes: Sequence[int]) -> list[int]:
        """Return the sum of each rack of what there is of nodes; without racks, the sum of all."""
        of_racks: dict[Any, int] = {}
        for node, held in enumerate(of_nodes):
            rack = self.racks[node] if self.racks else 0
            of_racks[rack] = of_racks.get(rack, 0) + held
        return list(of_racks.values())

    def may_use(self, job: Mapping[str, Any], kind: wt.NodeType) -> bool:
        """Return whether a job accepts the GPUs of such a node."""
        accepted = {part.strip() for part in (job["gpu_type"] or "").split("|")} - {""}
        if self.binds is not None:
            accepted &= self.binds
        return not (accepted and job["num_gpus"]) or kind.gpu_type in accepted

    def _most_tasks(self, job: Mapping[str, Any], kind: wt.NodeType) -> int:
        """Count how many of the job's tasks fit one such node, adding them one by one."""
        tasks = _tasks(job)
        if not self.may_use(job, kind):
            return 0
        each = {name: (job[name] or 0) / tasks for name in ("num_gpus", "num_cpus", "mem_gib")}
        share = round(each["num_gpus"] * 1000)
        devices = [1000] * kind.gpus
        cpus = math.inf if kind.cpus is None else round(kind.cpus * 1000)
        mem = math.inf if kind.mem_gib is None else round(kind.mem_gib * 1024)
        if self.resources == "gpus":
            cpus = mem = math.inf
        fitted = 0
        while fitted < tasks:
            cpus -= round(each["num_cpus"] * 1000)
            mem -= round(each["mem_gib"] * 1024)
            wanted = [1000] * (share // 1000) if share >= 1000 else [share] * bool(share)
            for want in wanted:
                device = next((at for at, free in enumerate(devices) if free >= want), None)
                if device is None:
                    return fitted
                devices[device] -= want
            if cpus < 0 or mem < 0:
                return fitted
            fitted += 1
        return fitted

    def _pace(self, number: int, there: Sequence[int]) -> float:
        """Return the pace of the slowest of a stay's nodes, beside the others that are there."""
        stay = self.stays[number]
        others = [self.stays[other] for other in there if other != number]
        paces = [1.0] if not stay["nodes"] else []
        for at, node in enumerate(stay["nodes"]):
            pace, limit = 1.0, self.kinds[node].cpus
            if self.model.cpu and limit:
                held = sum(self._cores(other, node) for other in others) / limit
                pace -= self.model.cpu * min(held, 1.0)
            costs = [0.0]
            for device in stay["devices"][at] if "devices" in stay else ():
                beside = [
                    other["row"]
                    for other in others
                    for its, devices in zip(other["nodes"], other["devices"], strict=True)
                    if its == node and device in devices
                ]
                costs.append(sum(1 / self._pair(stay["row"], other) - 1 for other in beside))
            paces.append(pace / (1 + max(costs)))
        return min(paces)

    def _cores(self, stay: Mapping[str, Any], node: int) -> float:
        """Return the cores that a stay holds on a node, in whole thousandths."""
        job = self.jobs[stay["row"]]
        # Without devices a task is a GPU, or as many as the job's tasks have each.
        parts, tasks = stay["node_gpus"], job["num_gpus"]
        if "node_tasks" in stay:
            parts, tasks = stay["node_tasks"], sum(stay["node_tasks"])
        own = sum(part for its, part in zip(stay["nodes"], parts, strict=True) if its == node)
        return round((job["num_cpus"] or 0.0) * 1000 * own / tasks) / 1000 if tasks else 0.0

    def _pair(self, row: int, other: int) -> float:
        """Return the rate of a job with one other on its GPU."""
        names = (self.jobs[row]["workload"], self.jobs[other]["workload"])
        for factor in self.model.share_by:
            if names == (factor.job_type, factor.other):
                return factor.factor
            if names == (factor.other, factor.job_type):
                return factor.other_factor
        return self.model.share

    def _of_uplinks(self, there: Sequence[int]) -> dict[int, float]:
        """Return the part of its traffic that each stay gets, by progressive filling.

        All stays' parts grow together; those on an uplink that is full stop growing.
        """
        crossing = {number: self._crossed(self.stays[number]["nodes"]) for number in there}
        growing = {number for number in there if crossing[number]}
        parts = {number: 0.0 if number in growing else 1.0 for number in there}
        while growing:
            steps = [1.0 - parts[number] for number in growing]
            full: dict[Any, float] = {}
            for link, carries in self._links(crossing).items():
                users = [number for number in there if link in crossing[number]]
                active = len(growing.intersection(users))
                if active:
                    used = self.model.traffic * sum(parts[number] for number in users)
                    full[link] = (carries - used) / (self.model.traffic * active)
            step = min([*steps, *full.values()])
            for number in growing:
                parts[number] += step
            tight = {link for link, spare in full.items() if spare <= step + 1e-12}
            growing = {
                number
                for number in growing
                if parts[number] < 1.0 - 1e-12 and not tight.intersection(crossing[number])
            }
        return parts

    def _crossed(self, nodes: Sequence[int]) -> set[Any]:
        """Return the uplinks that a job on some nodes crosses: (level, domain)."""
        found = set()
        for level in self.model.links:
            own = {(level, node if level == "host" else self.racks[node]) for node in nodes}
            found |= own if len(own) > 1 else set()
        return found

    def _links(self, crossing: Mapping[int, set[Any]]) -> dict[Any, float]:
        """Return what each uplink in use carries, GB/s."""
        return {link: self.model.links[link[0]] for own in crossing.values() for link in own}


def _binding(out: wt.Outcome) -> set[str] | None:
    """Return the GPU types that jobs may bind themselves to, None = all."""
    if not out.cluster.gpu_types:
        return set()
    bound = out.settings["bind_types"]
    return None if bound is None else set(bound)


def _tasks(job: Mapping[str, Any]) -> int:
    """Return a job's tasks: as stated, else one a GPU."""
    return int(job["num_tasks"] or max(1, int(job["num_gpus"] or 0)))


def count_of(sizes: list[int], wanted: int) -> int:
    """Return how many of the largest add up to what is wanted; one more than all if none do."""
    sums = np.cumsum(sorted(sizes, reverse=True))
    return int(np.searchsorted(sums, wanted)) + 1


@dataclass
class Account:
    """What a job did with its time on GPUs, s: as `Flight` and `Interruptions` have it.

    Attributes:
        useful: work done and kept, s at rate 1.
        overhead: of it startups, restarts, what preemptions cost, and checkpoints.
        checkpoints: of the overhead what went into writing checkpoints.
        lost: work that failures undid.
        slowed: seconds worked, each times 1 - rate.
    """

    useful: float = 0.0
    overhead: float = 0.0
    checkpoints: float = 0.0
    lost: float = 0.0
    slowed: float = 0.0


@dataclass(frozen=True)
class Terms:
    """What a job has to do, and what it pays before it does, s.

    Attributes:
        work: in seconds at rate 1.
        resume: what going on after a preemption takes.
        launch: what each of its stays begins with besides.
    """

    work: float
    resume: float = 0.0
    launch: float = 0.0


class OneStay:
    """A stay of a job, followed piece by piece; a checkpoint is due after each interval of work.

    Args:
        overhead: what it pays before it works, s.
        work: that is left of its job, s at rate 1.
        interval, cost: of checkpoints: work between two, s; seconds that one takes.
    """

    def __init__(self, overhead: float, work: float, interval: float, cost: float) -> None:
        self.to_pay, self.work = overhead, work
        self.interval, self.cost = interval, cost
        self.done, self.written, self.writing = 0.0, 0, 0.0
        self.paid = self.wrote = self.slowed = 0.0

    def go(self, seconds: float, rate: float) -> None:
        """Let so many seconds pass at one rate."""
        paid = min(self.to_pay, seconds)
        self.to_pay, self.paid, seconds = self.to_pay - paid, self.paid + paid, seconds - paid
        while seconds > 0:
            if self.writing > 0:
                spent = min(self.writing, seconds)
                self.writing -= spent
                self.wrote += spent
                self.written += self.writing == 0
                seconds -= spent
                continue
            goal = min((self.written + 1) * self.interval, self.work)
            spent = min(max(goal - self.done, 0.0) / rate, seconds)
            reached = spent < seconds
            self.done = goal if reached else self.done + spent * rate
            self.slowed += spent * (1 - rate)
            seconds -= spent
            if reached and goal >= self.work - NEAR:
                self.done += seconds * rate  # more than there was to do: a fault, seen in the sum
                return
            if reached:
                self.writing = self.cost
                self.written += self.cost == 0

    def lost(self, booked: float) -> float:
        """Return the work that a failure now undoes.

        Where a checkpoint is complete at this very instant, or not, by a rounding, what was booked
        says which.
        """
        least, most = self.written, self.written
        if 0 < self.writing <= NEAR or (
            not self.cost and abs((self.written + 1) * self.interval - self.done) <= NEAR
        ):
            most += 1
        if self.written and abs(self.done - self.written * self.interval) <= NEAR:
            least -= 1
        can = [self.done - count * self.interval if count else self.done
               for count in range(least, most + 1)]  # fmt: skip
        return min(can, key=lambda lost: abs(lost - booked))


def accounts(
    rates: Rates,
    speeds: Mapping[int, Sequence[tuple[float, float, float]]],
    terms: Sequence[Terms],
    disruptions: Mapping[str, Any],
    stops: Sequence[tuple[int, float, float]],
) -> dict[int, Account]:
    """Follow every job through its stays, and return what it did with its time, by row.

    Args:
        rates: the run's.
        speeds: of stays under limits of power, or at a pace of their own: (begin, end, speed) of
            each piece; others go at 1.
        terms: of each job.
        disruptions: what was described of them.
        stops: row, time (s) and lost work (s) of each stop by an outage or a failure, in order.
    """
    saved = disruptions.get("checkpoint", {})
    drains = {
        held["start"]
        for name in ("maintenance", "reservations")
        for held in disruptions.get(name, [])
        if held["on_start"] == "checkpoint"
    }
    pieces = _pieces(rates, speeds)
    left = {row: job.work for row, job in enumerate(terms)}
    found: dict[int, Account] = {}
    next_pays: dict[int, float] = {}
    booked: dict[tuple[int, float], list[float]] = {}
    for row, time, lost in stops:
        booked.setdefault((row, time), []).append(lost)
    last = {(stay["row"], stay["end"]): number for number, stay in enumerate(rates.stays)}
    for number, stay in enumerate(rates.stays):
        row = stay["row"]
        own = found.setdefault(row, Account())
        at = OneStay(
            terms[row].launch + next_pays.get(row, saved.get("startup_cost", 0.0)),
            left[row],
            saved.get("interval", math.inf),
            saved.get("cost", 0.0),
        )
        for seconds, rate in pieces[number]:
            at.go(seconds, rate)
        next_pays[row], lost = terms[row].resume, 0.0
        if stops_here := booked.get((row, stay["end"])):
            is_drain = stay["end"] in drains and stops_here[0] == 0
            undone = 0.0 if is_drain else at.lost(stops_here[0])
            # Of stays that end at one instant others may have been preempted.
            if abs(undone - stops_here[0]) <= NEAR or number == last[row, stay["end"]]:
                stops_here.pop(0)
                next_pays[row], lost = saved.get("restart_cost", 0.0), undone
        left[row] -= at.done - lost
        own.useful += at.done - lost
        own.lost += lost
        own.overhead += at.paid + at.wrote
        own.checkpoints += at.wrote
        own.slowed += at.slowed
    return found


def _pieces(
    rates: Rates, speeds: Mapping[int, Sequence[tuple[float, float, float]]]
) -> list[list[tuple[float, float]]]:
    """Return how long each stay went at which rate: (seconds, rate) of each piece, in order."""
    stays = rates.stays
    times = sorted({time for stay in stays for time in (stay["start"], stay["end"])})
    found: list[list[tuple[float, float]]] = [[] for _ in stays]
    for low, high in pairwise(times):
        for number, rate in rates.at(low).items():
            for begin, end, speed in speeds.get(number, ((low, high, 1.0),)):
                seconds = min(end, high) - max(begin, low)
                if seconds > 0:
                    found[number].append((seconds, rate * speed))
    return found
