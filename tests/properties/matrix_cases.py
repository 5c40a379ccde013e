"""The matrix: every policy, queueing rule and placement with every feature, on tiny workloads.

A case is named by what it is made of, and random only in its numbers, which its seed decides.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from invariants import Observed

import windtunnel as wt
from windtunnel.placements.catalogue import PLACEMENTS, is_scored
from windtunnel.policies import resolve_policy
from windtunnel.policies.catalogue import POLICIES as NAMED
from windtunnel.policies.gavel.catalogue import POLICIES as ALLOCATIONS
from windtunnel.policies.kueue.manifests import STRATEGIES, Manifests
from windtunnel.policies.kueue.objects import (
    ClusterQueue,
    Flavor,
    FlavorQuotas,
    Preemption,
    ResourceGroup,
)
from windtunnel.policies.kueue.objects import Quota as Quota_
from windtunnel.policies.kueue.pods_ready import PodsReady
from windtunnel.policies.kueue.policy import Kueue
from windtunnel.policies.quota import Quota
from windtunnel.policies.shockwave.in_rounds import ALLOCATIONS as SHARED
from windtunnel.policies.slurm.policy import Slurm
from windtunnel.site.slurm import (
    SlurmAssociation,
    SlurmBounds,
    SlurmNode,
    SlurmPartition,
    SlurmPriority,
    SlurmQos,
    SlurmSettings,
    SlurmSite,
)

if TYPE_CHECKING:
    from collections.abc import Callable

RULES = ("strict", "skip", "easy", "easy_sjbf", "conservative")
#: W of each GPU idle and in use; speeds at power limits.
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
#: The same W everywhere, and no hosts: what can be stated of a cluster without nodes.
POOL_POWER: dict[str, Any] = {"gpus": {"default": {"idle_w": 10, "active_w": 110}}}
#: Quotas of the two virtual clusters, in one cohort of all there is.
QUOTAS: dict[str, Any] = {
    "queues": [
        {"vc": "x", "nominal_quota": 9, "cohort": "all", "borrowing_limit": 4},
        {"vc": "y", "nominal_quota": 7, "cohort": "all"},
    ]
}


class AgedKey(wt.Policy):
    """Tier 2: a key in Python that changes with time, asked again every few seconds."""

    name = "python key"
    every = 6.0

    def key(self, job: wt.JobView, now: float) -> float:
        """Order by GPUs, less what waiting is worth."""
        return job.num_gpus - (now - job.submit_time) / 20


class PreemptiveKey(wt.Policy):
    """Tier 2: many keys at once, and running jobs are ranked, too."""

    name = "python keys, preemptive"
    preemptive = True
    every = 9.0

    def key(self, jobs: Any, now: float) -> Any:
        """Order by what is left of the GPU time."""
        return jobs.remaining * jobs.num_gpus + 0 * now


class GreedyDecisions(wt.Policy):
    """Tier 3: whoever fits, smallest first; who has run for long gives way now and then."""

    name = "python decisions"

    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        """Start, and sometimes preempt, jobs."""
        waiting = sorted(queue, key=lambda job: (job.num_gpus, job.submit_time))
        if waiting and cluster.running and int(now) % 7 == 0:
            yield wt.Preempt(cluster.running[0])
        for job in waiting:
            if cluster.fit(job) is not None:
                yield wt.Start(job)


OWN = {kind.name: kind for kind in (AgedKey, PreemptiveKey, GreedyDecisions)}
#: How the policies are asked for here: short turns, so that tiny runs have many.
_SHORT = {
    "las": "las:quantum=7",
    "tiresias": "tiresias:quantum=5:bounds=40",
    "fair-share": "fair-share:every=20:half_life=60",
    "multifactor": "multifactor:every=15:size=500",
    "edf": "edf:slack=2",
    "qssf": "qssf:by=rolling",
    "reserving-packing": "reserving-packing:types=A/B",
    "decoupled-evaluation": "decoupled-evaluation:workload=eval:keep=20",
}
_BY_NAME = tuple(sorted(set(NAMED) - {"quota", "kueue", "slurm"}))
BOOKS: dict[str, dict[str, Any]] = {
    "quota": {},
    "quota, reclaimed": {"reclaim_within_cohort": "Any"},
    "quota, by priority": {
        "within_cluster_queue": "LowerPriority",
        "queueing_strategy": "StrictFIFO",
    },
    "quota, fair": {"fair_sharing": "yes", "reclaim_within_cohort": "LowerPriority"},
    "quota, timed out": {"gang_timeout": 9.0, "backoff": 5.0},
}
#: Kueue's manifests of the same quotas, by priority, with fair sharing, and with a time by which
#: pods have to be ready.
KUEUES: dict[str, dict[str, Any]] = {
    "kueue": {},
    "kueue, fair": {"fair": STRATEGIES},
    "kueue, timed out": {"pods_ready": PodsReady(timeout=9.0, base=5.0)},
}
#: Slurm with everything as by default, with limits and shares, with preemption, and with limits on
#: minutes that were used or may still be.
SLURMS = ("slurm", "slurm, limited", "slurm, preempting", "slurm, minutes")
GAVEL = (
    *(f"gavel:{name}" for name in ALLOCATIONS),
    "gavel:max_min_fairness_perf:mechanism=ideal",
    "gavel:max_min_fairness_perf:mechanism=published",
    *("gavel:max_min_fairness:fill=true", "gavel:max_min_fairness_packed:fill=all"),
    *("gavel:fifo_perf:fill=true", "gavel:gandiva:fill=true"),
)
SHOCKWAVE = (
    *(f"shockwave:{name}" for name in SHARED),
    *("shockwave:market:fill=true", "shockwave:isolated:fill=all"),
)
_SHORT |= {name: f"{name}:round=10" for name in SHOCKWAVE}
POLLUX = (
    *("pollux:tiresias", "pollux:optimus", "pollux:pollux", "pollux:sia"),
    *("pollux:tiresias:fill=true", "pollux:sia:fill=true"),
)
_SHORT |= {name: f"{name}:interval=10" for name in POLLUX}
#: Every policy by its name.
POLICIES = (*_BY_NAME, *BOOKS, *KUEUES, *SLURMS, *OWN, *SHOCKWAVE, *POLLUX, *GAVEL)


def manifests_of_quotas(**settings: Any) -> Manifests:
    """Return `QUOTAS` as Kueue's queues, whose workloads preempt, with settings of `Manifests`."""
    gpu = "nvidia.com/gpu"
    queues = []
    for of in QUOTAS["queues"]:
        quota = Quota_(of["nominal_quota"], of.get("borrowing_limit"))
        group = ResourceGroup((FlavorQuotas("any", {gpu: quota}),), (gpu,))
        rules = Preemption("LowerPriority", "Any")
        queues.append(ClusterQueue(of["vc"], "all", resource_groups=(group,), preemption=rules))
    return Manifests(queues=tuple(queues), flavors=(Flavor("any"),), **settings)


def limited_slurm() -> SlurmSite:
    """Return the cells' cluster with limits of accounts and users, and shares."""
    nodes = tuple(SlurmNode(f"n{at}", 4, gpus={"aabb"[at]: 4}) for at in range(4))
    names = tuple(node.name for node in nodes)
    accounts = (SlurmAssociation("x", parent="root", bounds=SlurmBounds(group={"gpu": 9})),
                SlurmAssociation("y", parent="root", shares=3))  # fmt: skip
    users = tuple(
        SlurmAssociation(account, user, bounds=SlurmBounds(jobs=2))
        for account in "xy"
        for user in ("ann", "bob", "eve")
    )
    return SlurmSite(
        nodes=nodes,
        partitions=(SlurmPartition("all", names, is_default=True),),
        qos=(SlurmQos("normal"),),
        associations=(SlurmAssociation("root"), *accounts, *users),
        settings=SlurmSettings(
            select=frozenset({"CR_CORE"}),
            enforce=frozenset({"limits"}),
            priority=SlurmPriority(multifactor=True, period=60, fair_share=1000, age=10),
        ),
    )


def preempting_slurm() -> SlurmSite:
    """Return the cells' cluster with QOS of accounts, of which one preempts the other."""
    site = limited_slurm()
    users = tuple(
        SlurmAssociation(account, user, default_qos="high" if account == "x" else "normal")
        for account in "xy"
        for user in ("ann", "bob", "eve")
    )
    return msgspec.structs.replace(
        site,
        qos=(SlurmQos("normal"), SlurmQos("high", preempts=frozenset({"normal"}))),
        associations=(SlurmAssociation("root"), *users),
        settings=SlurmSettings(
            select=frozenset({"CR_CORE"}), preempt="qos", preempt_mode="REQUEUE"
        ),
    )


def minutes_of_slurm() -> SlurmSite:
    """Return the cells' cluster with minutes of accounts and QOS, which decay within a run."""
    site = limited_slurm()
    bounds = {
        "x": SlurmBounds(group_minutes={"gpu": 2}),
        "y": SlurmBounds(group_run_minutes={"gpu": 40}),
    }
    priority = SlurmPriority(multifactor=True, period=10, half_life=60, fair_share=1000)
    return msgspec.structs.replace(
        site,
        qos=(SlurmQos("normal", usage_factor=0.5, bounds=SlurmBounds(group_minutes={"cpu": 60})),),
        associations=(
            SlurmAssociation("root"),
            *(SlurmAssociation(name, parent="root", bounds=of) for name, of in bounds.items()),
            *(SlurmAssociation(name, user) for name in bounds for user in ("ann", "bob", "eve")),
        ),
        settings=msgspec.structs.replace(site.settings, priority=priority),
    )


SLURM_SITES = {
    "slurm, limited": limited_slurm,
    "slurm, preempting": preempting_slurm,
    "slurm, minutes": minutes_of_slurm,
}


def made(policy: str, *, types: int = 2) -> Any:
    """Return the policy of a name, as `windtunnel.simulate` takes it, for so many GPU types."""
    if policy in OWN:
        return OWN[policy]()
    if policy in BOOKS:
        return Quota(QUOTAS, **BOOKS[policy])
    if policy in SLURM_SITES:
        return Slurm(SLURM_SITES[policy]())
    if policy in KUEUES:
        return Kueue(manifests_of_quotas(**KUEUES[policy]))
    if policy.startswith("gavel:"):
        more = ":weights=1/2:by=vc" if "hierarchical" in policy else ""
        more += (":prices=3", ":prices=3/1")[types - 1] if "by_cost" in policy else ""
        return f"{policy}:round=10{more}"
    return _SHORT.get(policy, policy)


@cache
def kind_of(policy: str) -> Any:
    """Return the policy of a name as an object."""
    return resolve_policy(made(policy))


#: Placements: on a cluster that has no nodes, on one whose nodes are not distinguished, on nodes.
NO_NODES = "no nodes"
PLACED = (
    NO_NODES,
    *PLACEMENTS,
    "best_fit:gang=fill:topology=rack",
    "spread:topology=rack-only",
    "tree:least-free",
    "tree:balanced",
    "fgd:ties=random:topology=rack",
    "lowest_utilization:scores=float:gang=fill",
)


#: Set to a seed's state by each run; to make a generator anew costs as much as all else of it.
_CHANCE = random.Random()  # noqa: S311 - a test's own chance


@dataclass
class Cell:
    """A run: what it is made of, and what that means for `windtunnel.simulate`.

    Attributes:
        policy, rule, placement: by name; rule None = the policy's own.
        features: of `FEATURES`.
        seed: of its numbers.
        types: GPU types of the cluster, two nodes each.
        jobs, options: what is flown, on `cluster`.
    """

    policy: str
    rule: str | None
    placement: str
    features: tuple[str, ...]
    seed: int
    jobs: dict[str, list[Any]] = field(default_factory=dict, repr=False)
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    types: str = field(default="AB", repr=False)
    has_cores: bool = field(default=False, repr=False)
    has_racks: bool = field(default=True, repr=False)

    def __post_init__(self) -> None:
        """Draw the jobs, and let every feature add to the options."""
        jobs, state = _drawn(self.seed)
        self.jobs = {name: [*column] for name, column in jobs.items()}
        pick = _CHANCE
        pick.setstate(state)
        if self.policy in SHOCKWAVE:  # of one GPU type
            self.types, self.jobs["gpu_type"] = "AA", [None] * len(self.jobs["gpu_type"])
        self.options |= {"queueing": self.rule, "seed": self.seed}
        if self.placement != NO_NODES:
            self.options["placement"] = self.placement
        if kind_of(self.policy).elastic:
            self.options["penalty"] = 3.0
        for name, give in FEATURES.items():
            if name in self.features:
                give(pick, self)

    @property
    def cluster(self) -> str | wt.ClusterSpec:
        """Four nodes of 4 GPUs, or 12 GPUs without nodes; most runs are only looked up."""
        if self.placement == NO_NODES:
            return "pool:12"
        details: dict[str, Any] = {"cpus": 16.0, "mem_gib": 64.0} if self.has_cores else {}
        details |= {"nodes_per_rack": 2} if self.has_racks else {}
        return wt.ClusterSpec(tuple(wt.NodeType(2, 4, name, **details) for name in self.types))

    @property
    def as_pool(self) -> bool:
        """Whether nodes are not distinguished."""
        return self.placement in (NO_NODES, "pool")

    @property
    def kind(self) -> Any:
        """The policy as an object."""
        return kind_of(self.policy)

    def fly(self, engine: str = "compiled") -> wt.Outcome:
        """Fly it."""
        policy = made(self.policy, types=1 if self.placement == NO_NODES else 2)
        return wt.simulate(self.jobs, self.cluster, policy, engine=engine, **self.options)

    @property
    def scored(self) -> bool:
        """Whether the placement is one that scores nodes."""
        return is_scored(self.options.get("placement"))

    def holds(self, pick: random.Random, *, single: bool = False) -> dict[str, Any]:
        """Return whom an outage takes: a node, or GPUs of the pool."""
        if self.placement == NO_NODES:
            return {"gpus": pick.choice((1, 2, 4))}
        node = pick.randrange(4)
        return {"node": node} if single else {"nodes": [node]}

    def disrupt(self, **more: Any) -> None:
        """Add to what disrupts the run."""
        self.options.setdefault("disruptions", {}).update(more)

    def slow(self, **more: Any) -> None:
        """Add to the model of slow-downs."""
        self.options.setdefault("slowdown", {}).update(more)

    def cap(self, pick: random.Random, limits: str, *, by_type: bool = False) -> None:
        """Cap the cluster's power; by type, GPUs draw unlike W also where nodes are none."""
        pool = self.as_pool and not by_type
        watts = {name: POWER["gpus"][name] for name in self.types}
        self.options["power"] = POOL_POWER if pool else POWER | {"gpus": watts}
        gpus = sum(8 * POWER["gpus"][name]["idle_w"] for name in self.types)
        idle = 160.0 if pool else 1.25 * (4 * 100 + gpus)
        most = 1600.0 if pool else 2500.0
        levels = [idle + pick.choice((0.3, 0.6, 1.0)) * most for _ in range(3)]
        rows = [[40.0 * at, level] for at, level in enumerate([*levels, idle + most])]
        self.options["power_cap"] = {"rows": rows, "limits": limits}

    def shift(self, pick: random.Random, *, pauses: bool) -> None:
        """Let starts wait for cheaper times."""
        prices = [[20.0 * at, pick.choice((1.0, 2.0, 5.0))] for at in range(12)]
        self.options["shift"] = {"rows": prices, "max_delay": 40, "interruptible": pauses}
        self.options["shift"] |= {"blind": pick.random() < 0.3, "fill": pick.choice((0.5, 1.0))}


@lru_cache(64)
def _drawn(seed: int) -> tuple[dict[str, list[Any]], tuple[Any, ...]]:
    """Return the jobs of a seed, and how its chance goes on from there."""
    pick = random.Random(seed)  # noqa: S311 - a test's own chance
    time, rows = 0.0, []
    for _ in range(12):
        time += pick.choice((0, 0, 1, 2, 5, 10))
        length = pick.choice((0.0, 1.0, 4.0, 10.0, 30.0, 90.0))
        rows.append(
            {
                "submit_time": time,
                "duration": length,
                "estimate": max(1.0, length * pick.choice((0.5, 1, 1, 2, 3))),
                "deadline": time + pick.choice((20.0, 60.0, 200.0)),
                "num_gpus": float(pick.choice((1, 1, 2, 2, 3, 4, 8))),
                "gpu_type": pick.choice((None, None, "A", "B")),
                "priority": float(pick.choice((1, 2, 3))),
                "user": pick.choice(("ann", "bob", "eve")),
                "vc": pick.choice(("x", "y")),
                "workload": pick.choice((None, "train", "eval")),
                "status": pick.choice(("completed", "failed")),
            }
        )
    rows[0]["vc"], rows[1]["vc"] = "x", "y"
    return {name: [row[name] for row in rows] for name in rows[0]}, pick.getstate()


# What may come to a run.


#: Kinds of failures besides those that take a node down at once.
_KINDS: tuple[dict[str, float], ...] = (
    {"speed": 0.5, "mtbf": 150.0},
    {"found_after": 8.0, "lemons": 0.1},
)


def _node_failures(pick: random.Random, cell: Cell) -> None:
    time = float(pick.randint(0, 60))
    one = {"time": time, "until": time + pick.randint(1, 50)} | cell.holds(pick, single=True)
    cell.disrupt(node_failures=[one], on_failure=pick.choice(("restart", "restart", "end")))
    if cell.placement != NO_NODES:
        causes = {"lemons": 0.3, "lemon_factor": 3.0, "causes": {"GPU": 2.0, "network": 1.0}}
        models: list[dict[str, Any]] = [{"mtbf": 150.0, "mttr": 15.0} | causes]
        if "no racks or cores" not in cell.features:
            models.append({"mtbf": 400.0, "mttr": 10.0, "level": "rack"})
        # Stragglers, errors that are found late, a node that stands in: by a number drawn above.
        # A third of the runs has neither of the first two, which no record tells of.
        if not cell.as_pool and cell.seed % 3 != 1:
            models.append({"mtbf": 1_000.0, "mttr": 20.0} | _KINDS[int(time) % len(_KINDS)])
        if not cell.as_pool:
            cell.disrupt(spares=int(time) % 2)
        cell.disrupt(failure_models=models, repair_crews=1)


def _hot_swap(pick: random.Random, cell: Cell) -> None:
    _node_failures(pick, cell)
    cell.disrupt(on_failure="swap")
    if cell.placement != NO_NODES:
        cell.disrupt(failure_models=[{"mtbf": 100.0, "mttr": 9.0}])


def _job_failures(pick: random.Random, cell: Cell) -> None:
    cell.disrupt(job_failures={"rate": pick.choice((1.0, 20.0)), "statuses": ["failed"]})


def _checkpoints(pick: random.Random, cell: Cell) -> None:
    cost = {"cost": pick.choice((0.0, 1.0)), "restart_cost": pick.choice((0.0, 3.0))}
    cost["startup_cost"] = pick.choice((0.0, 2.0))
    cell.disrupt(checkpoint={"interval": pick.choice((2.0, 5.0, 20.0))} | cost)


def _maintenance(pick: random.Random, cell: Cell) -> None:
    start = float(pick.randint(5, 60))
    one = {"start": start, "end": start + pick.randint(5, 40), "drain_before": 5.0}
    one["on_start"] = pick.choice(("wait", "checkpoint", "kill"))
    cell.disrupt(maintenance=[one | cell.holds(pick)])


def _reservations(pick: random.Random, cell: Cell) -> None:
    start = float(pick.randint(0, 60))
    one = {"start": start, "end": start + pick.randint(5, 80), "users": ["ann"]}
    one["on_start"] = pick.choice(("wait", "checkpoint", "kill"))
    cell.disrupt(reservations=[one | cell.holds(pick)])


def _capacity_changes(pick: random.Random, cell: Cell) -> None:
    taken, given = cell.holds(pick), cell.holds(pick)
    at, back = float(pick.randint(5, 30)), float(pick.randint(31, 80))
    taken, given = ({"remove" + k: v for k, v in h.items()} for h in (taken, given))
    changes = []
    for time, held in ((at, taken), (back, given)):
        verb = "remove" if time == at else "add"
        names = {"removenodes": verb, "removegpus": f"{verb}_gpus"}
        changes.append({"time": time} | {names[key]: value for key, value in held.items()})
    cell.disrupt(capacity_changes=changes)


def _cores(pick: random.Random, cell: Cell) -> None:
    count = len(cell.jobs["num_gpus"])
    cell.has_cores = True
    cell.jobs["num_cpus"] = [pick.choice((None, 1.0, 4.0, 6.0)) for _ in range(count)]
    cell.jobs["mem_gib"] = [pick.choice((None, 4.0, 20.0)) for _ in range(count)]


def _slow_cores(pick: random.Random, cell: Cell) -> None:
    _cores(pick, cell)
    cell.slow(cpu=0.25)


def _slow_uplinks(_: random.Random, cell: Cell) -> None:
    # Less than one job sends: few runs have two jobs on several nodes at a time.
    racks = {} if "no racks or cores" in cell.features else {"rack": 3.0}
    cell.slow(traffic=4.0, links={"host": 3.0} | racks)


def _shares(pick: random.Random, cell: Cell) -> None:
    whole = cell.jobs["num_gpus"]
    cell.jobs["num_gpus"] = [pick.choice((gpus, 0.25, 0.5)) for gpus in whole]


def _rejected(pick: random.Random, cell: Cell) -> None:
    cell.jobs["num_gpus"][pick.randrange(12)] = 64.0
    cell.jobs["duration"][pick.randrange(12)] = None  # type: ignore[call-overload] # as in a trace
    cell.options |= {"oversize": "reject", "incomplete": "reject"}


def _bare(_: random.Random, cell: Cell) -> None:
    cell.has_cores = cell.has_racks = False
    cell.jobs.pop("topology", None)


def _asks_of_levels(pick: random.Random, cell: Cell) -> None:
    words = ("required:rack", "preferred:rack", "unconstrained", "required:host", None)
    sliced = ("slice=rack/2", "slice=host/1/apart", "preferred:rack+slice=host/1")
    # Slices are of pods of one size, which an elastic job's pieces are not.
    for_two = (*words[:3], *(() if cell.kind.elastic else sliced), None)
    if cell.placement.startswith("tree"):  # for policy kueue words are of its flavors' topologies
        cell.jobs["topology"] = [
            pick.choice(for_two if gpus == 8 else words) for gpus in cell.jobs["num_gpus"]
        ]


def _trace_costs(pick: random.Random, cell: Cell) -> None:
    count = len(cell.jobs["num_gpus"])
    cell.jobs["restore_time"] = [pick.choice((None, 0.5, 3.0)) for _ in range(count)]


def _as_pai(_: random.Random, cell: Cell) -> None:
    cell.jobs["num_tasks"] = [max(1, int(gpus)) for gpus in cell.jobs["num_gpus"]]
    cell.options["compat"] = "pai"


def _sparse(_: random.Random, cell: Cell) -> None:
    for name in ("estimate", "deadline"):
        del cell.jobs[name]


def _option(name: str, *values: Any) -> Callable[[random.Random, Cell], None]:
    def give(pick: random.Random, cell: Cell) -> None:
        cell.options[name] = pick.choice(values)

    return give


def _quotas_by_type(pick: random.Random, cell: Cell) -> None:
    """Quotas of the two virtual clusters by GPU type, all there is; without types `QUOTAS`."""
    if cell.placement == NO_NODES or cell.policy in BOOKS:  # those have quotas that know no types
        cell.options["quotas"] = QUOTAS
        return
    kinds = sorted(set(cell.types), reverse=pick.random() < 0.5)
    whole = 16 // len(kinds)
    own = {name: pick.choice((2, 5)) for name in kinds}
    rest = {name: whole - gpus for name, gpus in own.items()}
    cell.options["quotas"] = {
        "queues": [
            {"vc": "x", "nominal_quota": own, "cohort": "all"},
            {"vc": "y", "nominal_quota": rest, "cohort": "all"},
        ]
    }


def _eligible_later(pick: random.Random, cell: Cell) -> None:
    submit = cell.jobs["submit_time"]
    cell.jobs["eligible_time"] = [pick.choice((None, at, at + 2.0, at + 15.0)) for at in submit]


def _blocking_quotas(_: random.Random, cell: Cell) -> None:
    cell.options |= {"quotas": QUOTAS, "blocking_limits": True}


FEATURES: dict[str, Callable[[random.Random, Cell], None]] = {
    "node failures": _node_failures,
    "hot swap": _hot_swap,
    "job failures": _job_failures,
    "checkpoints": _checkpoints,
    "maintenance": _maintenance,
    "reservations": _reservations,
    "capacity changes": _capacity_changes,
    "slower where spread": lambda pick, cell: cell.slow(spread=pick.choice((0.5, 0.8))),
    "slower across racks": lambda _, cell: cell.slow(rack=0.75),
    "slower beside others": lambda _, cell: cell.slow(share=0.5),
    "slower without cores": _slow_cores,
    "slower over uplinks": _slow_uplinks,
    "power cap": lambda pick, cell: cell.cap(pick, "none"),
    "uniform power limits": lambda pick, cell: cell.cap(pick, "uniform"),
    "optimised power limits": lambda pick, cell: cell.cap(pick, "optimised"),
    "shift": lambda pick, cell: cell.shift(pick, pauses=False),
    "shift with pauses": lambda pick, cell: cell.shift(pick, pauses=True),
    "node sleep": lambda _, cell: cell.options.update(
        node_sleep={"forecast": "last", "fut": 0, "buffer": 1, "wake_time": 6, "step": 10}
    ),
    "submissions first": _option("events", "submissions_first"),
    "completions first": _option("events", "completions_first"),
    "horizon": _option("until", 25.0, 60.0),
    "decision interval": _option("decide_every", 4.0, 10.0),
    "quotas": _option("quotas", QUOTAS),
    "quotas by type": _quotas_by_type,
    "quotas that block": _blocking_quotas,
    "unlike watts": lambda pick, cell: cell.cap(pick, "none", by_type=True),
    "quota walk": _option("preemption", "quota_walk"),
    "resume costs": _option("restore_time", {1: 1.0, 4: 3.0}, {"train": 2.0, "*": 0.5}),
    "long resume costs": _option("save_time", 50.0),
    "resume costs of the trace": _trace_costs,
    "estimates": _option("estimates", "perfect", "rolling"),
    "bound types": _option("bind_types", ("A",), ()),
    "cores and memory": _cores,
    "GPU shares": _shares,
    "pooled GPUs": _option("sharing", "pooled"),
    "other arrivals": _option("arrivals", "4/10"),
    "eligible later": _eligible_later,
    "closed loop": _option("arrivals", "closed:30", "closed"),
    "rejected jobs": _rejected,
    "as PAI": _as_pai,
    "no estimates": _sparse,
    "asks of levels": _asks_of_levels,
    # The last: it takes away what others gave.
    "no racks or cores": _bare,
}
#: Features that are values of one option: of each group a run has one at most.
CHOICES = (
    ("power cap", "uniform power limits", "optimised power limits", "unlike watts"),
    ("shift", "shift with pauses"),
    ("node failures", "hot swap"),
    ("submissions first", "completions first"),
    ("resume costs", "long resume costs", "resume costs of the trace"),
    ("estimates", "no estimates"),
    ("cores and memory", "slower without cores"),
    ("other arrivals", "closed loop"),
    ("quotas", "quotas by type", "quotas that block"),
)


def excluded(one: str, two: str) -> bool:
    """Return whether two features are values of one option."""
    return any(one in group and two in group for group in CHOICES)


def observed(cell: Cell, out: wt.Outcome) -> Observed:
    """Return a flown run as the invariants look at it."""
    site: Any = None
    if cell.policy in SLURM_SITES:
        site = SLURM_SITES[cell.policy]()
    elif cell.policy in KUEUES:
        site = manifests_of_quotas(**KUEUES[cell.policy])
    # Gavel's mechanisms of their own are not on the engines.
    gives_rates = "mechanism=" in cell.policy or cell.policy == "decoupled-evaluation"
    return Observed(
        out,
        cell.options,
        own_rates=gives_rates,
        quotas=cell.options.get("quotas", QUOTAS if cell.policy in BOOKS else None),
        site=site,
    )
