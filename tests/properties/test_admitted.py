"""Slurm's limits and Kueue's quotas at every instant, of random sites with random jobs."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from admitted import kueue_quotas_are_kept, slurm_limits_are_kept
from flight_cases import draws

import windtunnel as wt
from windtunnel.policies.kueue.manifests import STRATEGIES, Manifests
from windtunnel.policies.kueue.objects import (
    ClusterQueue,
    Cohort,
    Flavor,
    FlavorQuotas,
    Preemption,
    Quota,
    ResourceGroup,
)
from windtunnel.policies.kueue.policy import Kueue
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
    from collections.abc import Sequence

GPU = "nvidia.com/gpu"
ENGINES = ("compiled", "reference")


def _bounds(pick: random.Random, kinds: Sequence[str]) -> SlurmBounds:
    """Return one or two limits of some kinds, or none."""
    amounts = {"gpu": (4, 6, 8), "node": (1, 2, 3), "cpu": (4, 8)}
    found: dict[str, Any] = {}
    for kind in pick.sample(kinds, pick.choice((0, 1, 1, 2))):
        if kind == "group_run_minutes":
            found[kind] = {"gpu": pick.choice((8, 16, 30))}
        elif "jobs" in kind:
            found[kind] = pick.choice((1, 2, 3))
        else:
            tres = pick.choice(("gpu", "gpu", "node") if kind != "job" else ("gpu", "cpu"))
            found[kind] = {tres: pick.choice(amounts[tres])}
    return SlurmBounds(**found)


def random_site(seed: int) -> SlurmSite:
    """Return 4 nodes of 4 GPUs in two partitions, with limits of every kind."""
    pick = random.Random(seed)  # noqa: S311 - a test's own chance
    nodes = tuple(SlurmNode(f"n{at}", 8, gpus={"a": 4}) for at in range(4))
    names = tuple(node.name for node in nodes)
    of_qos = ("group", "group_jobs", "group_run_minutes", "job", "user", "user_jobs", "account",
              "account_jobs")  # fmt: skip
    of_group = ("group", "group_jobs", "group_run_minutes", "jobs", "job")
    qos = tuple(
        SlurmQos(
            name,
            flags=frozenset({"OverPartQOS"} if pick.random() < 0.3 else ()),
            bounds=_bounds(pick, of_qos),
        )
        for name in ("normal", "long", "part")
    )
    accounts = [SlurmAssociation("root", bounds=_bounds(pick, of_group))]
    accounts += [
        SlurmAssociation(name, parent=above, bounds=_bounds(pick, of_group),
                         default_qos=pick.choice(("", "long")))
        for name, above in (("x", "root"), ("x1", "x"), ("y", "root"))
    ]  # fmt: skip
    users = [
        SlurmAssociation(account, user, bounds=_bounds(pick, ("jobs", "group", "job")))
        for account in ("x", "x1", "y")
        for user in ("ann", "bob")
    ]
    return SlurmSite(
        nodes=nodes,
        partitions=(
            SlurmPartition("all", names, is_default=True, qos=pick.choice(("", "part"))),
            SlurmPartition(
                "few", names[:2], max_nodes=1, max_time=600, qos=pick.choice(("", "part")),
                exclusive=pick.random() < 0.3, denied_accounts=frozenset(pick.choice(((), ("y",)))),
            ),
        ),
        qos=qos,
        associations=(*accounts, *users),
        settings=SlurmSettings(
            select=frozenset({"CR_CORE"}),
            enforce=frozenset({"limits"}),
            licenses={"matlab": 2},
            priority=SlurmPriority(multifactor=pick.random() < 0.5, period=60, age=10),
        ),
    )  # fmt: skip


def random_jobs(seed: int, count: int = 30) -> dict[str, list[Any]]:
    """Return jobs for it, some of them tasks of throttled arrays."""
    pick = random.Random(seed)  # noqa: S311 - a test's own chance
    time, rows = 0.0, []
    for at in range(count):
        time += pick.choice((0, 0, 2, 10, 40))
        length = pick.choice((5.0, 30.0, 100.0, 300.0))
        rows.append(
            {
                "job_id": f"{1000 + at // 8}_{at % 8}" if at % 16 < 8 else str(5000 + at),
                "array_limit": 2.0 if at % 16 < 8 else 0.0,
                "submit_time": time,
                "duration": length,
                "estimate": length * pick.choice((0.5, 1, 2)),
                "num_gpus": float(pick.choice((1, 1, 2, 4, 8))),
                "num_cpus": float(pick.choice((1, 2, 4))),
                "user": pick.choice(("ann", "bob")),
                "account": pick.choice(("x", "x1", "y")),
                "qos": pick.choice((None, None, "normal", "long")),
                "partition": pick.choice(("all", "all", "few")),
                "licenses": pick.choice((None, None, None, "matlab", "matlab:2")),
                "exclusive": pick.choice((None, None, None, "yes")),
            }
        )
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize("seed", range(draws(100)))
def test_slurms_limits_hold_at_every_instant(seed: int) -> None:
    site = random_site(seed)
    cluster = wt.ClusterSpec((wt.NodeType(4, 4, "a", cpus=8.0),))
    out = wt.simulate(
        random_jobs(seed),
        cluster,
        Slurm(site),
        engine=ENGINES[seed % 7 == 0],
        oversize="reject",
        until=100_000,
    )
    slurm_limits_are_kept(out, site)
    assert out.table["status"].to_pylist().count("finished") >= 5


def random_manifests(seed: int) -> Manifests:
    """Return up to four queues in up to three cohorts, one above another, with all limits."""
    pick = random.Random(seed)  # noqa: S311 - a test's own chance

    def quota(nominal: int, *, is_below: bool) -> tuple[ResourceGroup, ...]:
        limits = [pick.choice((None, None, 0, 2, 4)) if is_below else None for _ in range(2)]
        return (ResourceGroup((FlavorQuotas("any", {GPU: Quota(nominal, *limits)}),), (GPU,)),)

    names = ["top", "left", "right"][: pick.choice((1, 2, 3))]
    cohorts = [
        Cohort(
            name,
            parent="top" if name != "top" else "",
            resource_groups=quota(pick.choice((0, 2)), is_below=name != "top")
            if pick.random() < 0.5
            else (),
        )
        for name in names
    ]
    queues = [
        ClusterQueue(
            name,
            pick.choice((*names, "")) if name == "d" else pick.choice(names),
            strategy=pick.choice(("BestEffortFIFO", "StrictFIFO")),
            resource_groups=quota(pick.choice((0, 2, 4, 6)), is_below=True),
            preemption=Preemption(
                pick.choice(("Never", "LowerPriority")),
                pick.choice(("Never", "LowerPriority", "Any")),
            ),
        )
        for name in "abcd"
    ]
    # Limits on lending and borrowing are of cohorts.
    loose = {queue.name: _unlimited(queue) for queue in queues if not queue.cohort}
    return Manifests(
        queues=tuple(loose.get(queue.name, queue) for queue in queues),
        cohorts=tuple(cohorts),
        flavors=(Flavor("any"),),
        fair=STRATEGIES if pick.random() < 0.3 else (),
    )


def _unlimited(queue: ClusterQueue) -> ClusterQueue:
    """Return a queue with its nominal quota alone."""
    nominal = queue.resource_groups[0].flavors[0].quotas[GPU].nominal
    group = ResourceGroup((FlavorQuotas("any", {GPU: Quota(nominal)}),), (GPU,))
    return ClusterQueue(
        queue.name, strategy=queue.strategy, resource_groups=(group,), preemption=queue.preemption
    )


@pytest.mark.parametrize("seed", range(draws(100)))
def test_kueues_quotas_hold_at_every_instant(seed: int) -> None:
    manifests = random_manifests(seed)
    pick = random.Random(seed)  # noqa: S311 - a test's own chance
    count = 30
    jobs = {
        "submit_time": sorted(float(pick.randrange(60)) for _ in range(count)),
        "duration": [float(pick.choice((5, 20, 60))) for _ in range(count)],
        "num_gpus": [float(pick.choice((1, 1, 2, 3, 4))) for _ in range(count)],
        "priority": [float(pick.choice((1, 2, 3))) for _ in range(count)],
        "vc": [pick.choice("abcd") for _ in range(count)],
    }
    jobs["vc"][:4] = list("abcd")
    out = wt.simulate(
        jobs,
        pick.choice(("8x4", "2x4", "pool:16")),
        Kueue(manifests),
        engine=ENGINES[seed % 7 == 0],
        oversize="reject",
        until=5_000,
    )
    kueue_quotas_are_kept(out, manifests)
    assert len(out.segments)
