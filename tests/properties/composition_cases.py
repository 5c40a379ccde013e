"""Random runs in which every feature of the simulator may meet every other, from a seed alone."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import windtunnel as wt

#: Jobs on GPUs of two types; W of each GPU idle and in use; speeds at power limits.
POWER: dict[str, Any] = {
    "gpus": {"A": {"idle_w": 50, "active_w": 250}, "B": {"idle_w": 20, "active_w": 90}},
    "workloads": {"eval": 0.5},
    "host_w": 100,
    "asleep_w": 10,
    "pue": 1.25,
    "limits": [
        {
            "workload": "train",
            "gpu_type": "A",
            "limit_w": [300, 200, 100],
            "power_w": [250, 190, 105],
            "speed": [1.0, 0.9, 0.5],
        }
    ],
}
#: The same W everywhere: a pool of several types does not tell which a job was given.
POOL_POWER: dict[str, Any] = {"gpus": {"default": {"idle_w": 10, "active_w": 110}}}
USERS = ("ann", "bob", "eve")
STATIC = ("fifo", "sjf", "sjf-estimate", "priority", "edf:slack=2")
PREEMPTIVE = (
    *("srtf", "srsf", "sjf-preemptive", "priority-preemptive", "las:quantum=7"),
    "tiresias:quantum=5:bounds=40",
)
USAGE = ("fair-share:every=20:half_life=60", "multifactor:every=15:size=500")
QUOTAS = ("quota", "quota:reclaim_within_cohort=Any", "quota:within_cluster_queue=LowerPriority")
RULES = ("strict", "skip", "easy", "easy_sjbf", "conservative")


@dataclass
class Composed:
    """A run: jobs, cluster, and whatever `windtunnel.simulate` takes besides."""

    seed: int
    jobs: dict[str, list[Any]]
    cluster: Any
    policy: Any
    options: dict[str, Any] = field(default_factory=dict)

    def fly(self, engine: str = "reference") -> wt.Outcome:
        """Fly it."""
        return wt.simulate(
            self.jobs, self.cluster, self.policy, engine=engine, oversize="reject", **self.options
        )


class Whims(wt.Policy):
    """A tier-3 policy that does whatever may be done, by chance but the same in every run.

    Args:
        seed: of the chance.
        shares: jobs may run beside others.
    """

    name = "whims"

    def __init__(self, seed: int, *, shares: bool, every: float | None = None) -> None:
        self.seed, self.shares, self.every = seed, shares, every

    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        """Start, preempt, move and hurry jobs."""
        chance = random.Random(f"{self.seed} {now} {len(queue)} {len(cluster.running)}")  # noqa: S311
        running = cluster.running
        if running and chance.random() < 0.2:
            yield wt.Preempt(chance.choice(running))
        if running and chance.random() < 0.2:
            job = chance.choice(running)
            if job.running:
                yield wt.Rerate(job, chance.choice((0.5, 1.0, 2.0)))
        if running and chance.random() < 0.2:
            job = chance.choice(running)
            where = cluster.fit(job, without=[job])
            if job.running and where is not None:
                yield wt.Move(job, where)
        for job in queue:
            if cluster.fit(job) is not None:
                yield wt.Start(job, rate=chance.choice((1.0, 1.0, 0.5)))
                continue
            same = [
                other
                for other in cluster.running
                if self.shares
                and other.num_gpus > 0
                and other.user == job.user
                and cluster.may_share(job, other)
            ]
            if same and chance.random() < 0.3:
                yield wt.Start(job, beside=same[0], rate=0.5)
        if len(queue) and self.every is None:
            yield wt.Wake(now + 5)


def composed(seed: int) -> Composed:
    """Return the run of a seed."""
    pick = random.Random(seed)  # noqa: S311 - a test's own chance
    resources = pick.choice(("pool", "nodes", "nodes", "nodes", "devices"))
    jobs = _jobs(pick, shares=resources == "devices")
    cluster: Any = "pool:12"
    if resources != "pool":
        cores = 16.0 if resources == "devices" else None
        cluster = wt.ClusterSpec(
            (
                wt.NodeType(2, 4, "A", cores, nodes_per_rack=2),
                wt.NodeType(3, 4, "B", cores, nodes_per_rack=2),
            )
        )
    has_power = pick.random() < 0.4
    case = Composed(seed, jobs, cluster, _policy(pick, resources, seed))
    options = case.options
    if case.policy in (*STATIC, *PREEMPTIVE, *USAGE):
        options["queueing"] = pick.choice(RULES)
        if case.policy in PREEMPTIVE and options["queueing"] in RULES[:2] and pick.random() < 0.3:
            options["preemption"] = "quota_walk"
    if resources == "nodes":
        options["placement"] = pick.choice(("best_fit", "spread"))
    if resources == "devices":
        options["placement"] = pick.choice(("best_fit", "random", "least_idle", "fgd"))
    if pick.random() < 0.5:
        options["disruptions"] = _disruptions(pick, resources)
    if resources != "pool" and pick.random() < 0.5:
        options["slowdown"] = _slowdown(pick, resources)
    if has_power:
        _power(pick, resources, options)
    options["events"] = pick.choice(("batch", "batch", "submissions_first", "completions_first"))
    if pick.random() < 0.25:
        options["decide_every"] = pick.choice((4.0, 10.0))
    cost: Any = pick.choice((0.0, 1.0, {1: 1.0, 4: 3.0}, {"train": 2.0, "*": 0.5}))
    options["restore_time"] = 1.0 if str(case.policy).startswith(("las", "tiresias")) else cost
    options["until"] = pick.choice((None, None, 60.0, 300.0))
    options["seed"] = seed
    return case


def _jobs(pick: random.Random, *, shares: bool) -> dict[str, list[Any]]:
    count = pick.choice((4, 10, 25))
    time, rows = 0.0, []
    for _ in range(count):
        time += pick.choice((0, 0, 1, 2, 5, 10))
        length = pick.choice((0.0, 1.0, 4.0, 10.0, 30.0, 90.0))
        gpus = float(pick.choice((0, 1, 1, 2, 2, 3, 4, 8)))
        if shares:
            gpus = pick.choice((gpus, 0.25, 0.5))
        rows.append(
            {
                "submit_time": time,
                "duration": length,
                "estimate": max(1.0, length * pick.choice((0.5, 1, 1, 2, 3))),
                "num_gpus": gpus,
                "num_cpus": pick.choice((None, 1.0, 4.0)),
                "gpu_type": pick.choice((None, None, "A", "B")),
                "priority": float(pick.choice((0, 1, 2))),
                "user": pick.choice(USERS),
                "vc": pick.choice(("x", "y")),
                "workload": pick.choice((None, "train", "eval")),
                "status": pick.choice(("completed", "failed")),
            }
        )
    return {name: [row[name] for row in rows] for name in rows[0]}


def _policy(pick: random.Random, resources: str, seed: int) -> Any:
    kind = pick.random()
    if kind < 0.2:
        every = pick.choice((None, None, 8.0))
        return Whims(seed, shares=resources == "nodes", every=every)
    if kind < 0.3:
        return pick.choice(QUOTAS)
    if kind < 0.4:
        return pick.choice(USAGE)
    return pick.choice(STATIC) if kind < 0.65 else pick.choice(PREEMPTIVE)


def _disruptions(pick: random.Random, resources: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def where(name: str = "nodes") -> dict[str, Any]:
        if resources == "pool":
            return {"gpus": pick.choice((1, 2, 4))}
        node = pick.randrange(5)
        return {name: node if name == "node" else [node]}

    def at(low: int, high: int) -> float:
        return float(pick.randint(low, high))

    if pick.random() < 0.5:
        time = at(0, 60)
        found["node_failures"] = [{"time": time, "until": time + at(1, 50), **where("node")}]
    if pick.random() < 0.5:
        start = at(5, 60)
        how = pick.choice(("wait", "checkpoint", "kill"))
        found["maintenance"] = [
            {"start": start, "end": start + at(5, 40), "drain_before": 5.0, "on_start": how}
            | where()
        ]
    if pick.random() < 0.4 and resources != "pool":
        start = at(0, 60)
        found["reservations"] = [
            {"start": start, "end": start + at(5, 80), "users": ["ann"], "on_start": "checkpoint"}
            | where()
        ]
    return found | _failing(pick, resources)


def _failing(pick: random.Random, resources: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if pick.random() < 0.5:
        found["checkpoint"] = {
            "interval": pick.choice((2.0, 5.0, 20.0)),
            "cost": pick.choice((0.0, 1.0)),
            "restart_cost": pick.choice((0.0, 3.0)),
        }
    if pick.random() < 0.4:
        found["job_failures"] = {"rate": pick.choice((1.0, 20.0)), "statuses": ["failed"]}
    if pick.random() < 0.3 and resources != "pool":
        found["failure_models"] = [{"mtbf": pick.choice((100.0, 300.0)), "mttr": 15.0}]
    if pick.random() < 0.3:
        found["on_failure"] = "end"
    return found


def _slowdown(pick: random.Random, resources: str) -> dict[str, Any]:
    model: dict[str, Any] = {"spread": pick.choice((0.5, 0.8, 1.0))}
    if pick.random() < 0.4:
        model["rack"] = 0.75
    if resources == "devices":
        model["share"] = 0.5
        model["cpu"] = 0.25
    return model


def _power(pick: random.Random, resources: str, options: dict[str, Any]) -> None:
    options["power"] = POOL_POWER if resources == "pool" else POWER
    idle = 150.0 if resources == "pool" else 1.25 * (5 * 100 + 8 * 50 + 12 * 20)
    most = 1200.0 if resources == "pool" else 2500.0
    if pick.random() < 0.7:
        levels = [idle + pick.choice((0.1, 0.3, 0.6, 1.0)) * most for _ in range(3)]
        rows = [[40.0 * at, watts] for at, watts in enumerate([*levels, idle + most])]
        limits = pick.choice(("none", "uniform", "optimised"))
        options["power_cap"] = {"rows": rows, "limits": limits}
    if resources != "pool" and pick.random() < 0.4:
        options["node_sleep"] = {
            "forecast": "last", "fut": 0, "buffer": 1, "wake_time": 6, "step": 10,
        }  # fmt: skip
    if pick.random() < 0.4:
        prices = [[20.0 * at, pick.choice((1.0, 2.0, 5.0))] for at in range(12)]
        options["shift"] = {
            "rows": prices, "max_delay": 40, "interruptible": pick.random() < 0.5,
        }  # fmt: skip
