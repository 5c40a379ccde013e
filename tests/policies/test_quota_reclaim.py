"""Who gives way, against the outcomes that Kueue's own tests state for the same situations.

Situations and outcomes are those of kubernetes-sigs/kueue, ``pkg/scheduler/preemption``
(``preemption_test.go``, ``preemption_fair_test.go``), CPUs read as GPUs. There all workloads are
admitted at the same instant, and the first one listed goes first among equals; so it counts as
admitted last here.
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from windtunnel.policies.quota_books import Held, open_accounts, parts
from windtunnel.policies.quota_reclaim import Preemptor, reclaim
from windtunnel.policies.quotas import Quotas
from windtunnel.sim.jobs import Jobs, JobView

#: name -> (GPUs, priority); the first letters say which queue a job is in.
Running = dict[str, tuple[float, float]]


def plain(**sizes: float) -> Running:
    """Jobs without a priority."""
    return {name: (size, 0.0) for name, size in sizes.items()}


def units(**counts: int) -> Running:
    """So many jobs of 1 GPU each a queue: ``units(a=2)`` are a1 and a2."""
    return {
        f"{queue}{number}": (1.0, 0.0)
        for queue, count in counts.items()
        for number in range(1, count + 1)
    }


def gone(
    quotas: dict[str, Any],
    running: Running,
    incoming: tuple[str, float, float],
    *,
    fair: bool,
    reclaim_within_cohort: str,
) -> set[str]:
    """Return the names of those that give way to a job (queue, GPUs, priority)."""
    accounts = {account.name: account for account in open_accounts(Quotas.from_mapping(quotas))}
    names: dict[int, str] = {}
    for number, (name, (size, priority)) in enumerate(running.items()):
        account = next(a for queue, a in accounts.items() if name.startswith(queue))
        job = JobView(cast("Jobs", _Columns()), 0, number)
        names[number] = name
        account.take(Held(job, parts(size), account, "", priority, -number))
    queue, size, priority = incoming
    preemptor = Preemptor(
        accounts[queue],
        "",
        parts(size),
        priority,
        reclaim_within_cohort,
        "LowerPriority",
        lambda _: [(0, 1)],
    )
    before = {name: dict(account.usage) for name, account in accounts.items()}
    found = reclaim(preemptor, fair=fair)
    assert {name: account.usage for name, account in accounts.items()} == before  # only a trial
    return set() if found is None else {names[held.job.number] for held in found.targets}


class _Columns:
    """The columns that a `JobView` reads at once."""

    submit_time = num_gpus = duration = (0.0,)


def queues(nominal: dict[str, float], **more: Any) -> dict[str, Any]:
    named = [{"vc": vc, "nominal_quota": gpus, "cohort": "all"} for vc, gpus in nominal.items()]
    return {"queues": [queue | more for queue in named]}


THREE = queues({"a": 3, "b": 3, "c": 3, "preemptible": 0})


@pytest.mark.parametrize(
    ("running", "incoming", "expected"),
    [
        # reclaim nominal from user using the most
        (units(a=3, b=5, c=1), ("c", 1, 0), {"b1"}),
        # can reclaim from queue using less, if taking the latest from the most is not enough
        (plain(a1=3, a2=1, b1=2, b2=3), ("c", 3, 0), {"a1"}),
        # reclaim borrowable quota from user using the most
        (units(a=3, b=5, c=1), ("a", 1, 0), {"b1"}),
        # preempt one from each queue borrowing
        (plain(a1=0.5, a2=0.5, a3=3, b1=0.5, b2=0.5, b3=3), ("c", 2, 0), {"a1", "b1"}),
        # can't preempt when everyone is under nominal
        (units(a=3, b=3, c=3), ("c", 1, 0), set()),
        # can't preempt when it would switch the imbalance
        (units(a=3, b=5), ("a", 2, 0), set()),
        # can preempt lower priority workloads from the same queue
        (
            {"a1_low": (1, -1), "a2_low": (1, -1), "a3": (1, 0), "a4": (1, 0)} | units(b=5),
            ("a", 2, 0),
            {"a1_low", "a2_low"},
        ),
        # can preempt a combination of the same queue and the highest user
        (
            {"a_low": (1, -1), "a2": (1, 0), "a3": (1, 0)} | units(b=6),
            ("a", 2, 0),
            {"a_low", "b1"},
        ),
        # preempt a huge workload if there is no other option and the target gets a lower share
        (plain(b1=9), ("a", 2, 0), {"b1"}),
        # can't preempt a huge workload if the incoming is also huge
        (plain(a1=2, b1=7), ("a", 5, 0), set()),
        # can't preempt 2 smaller workloads if the incoming is huge
        (plain(b1=2, b2=2, b3=3), ("a", 6, 0), set()),
        # preempt from target and others even if over nominal
        (
            {"a1_low": (2, -1), "a2_low": (1, -1), "b1": (3, 0), "b2": (3, 0)},
            ("a", 4, 0),
            {"a1_low", "b1"},
        ),
        # prefer to preempt workloads that don't make the target queue have the biggest share
        (plain(b1=2, b2=1, b3=2, c1=1), ("a", 3.5, 0), {"b2"}),
    ],
)
def test_fair_sharing_as_kueue_has_it(
    running: Running, incoming: tuple[str, float, float], expected: set[str]
) -> None:
    assert gone(THREE, running, incoming, fair=True, reclaim_within_cohort="Any") == expected


LIMITED = queues({"c1": 6, "c2": 6}, borrowing_limit=6)
FREE = queues({"d1": 6, "d2": 6})
ALONE = queues({"standalone": 6, "other": 0}, cohort=None)
ONE = queues({"l1": 6})


@pytest.mark.parametrize(
    ("quotas", "running", "incoming", "expected"),
    [
        # some free quota, preempt low priority
        (
            ALONE,
            {"standalone-low": (1, -1), "standalone-mid": (1, 0), "standalone-high": (3, 1)},
            ("standalone", 2, 1),
            {"standalone-low"},
        ),
        # minimal set excludes low priority
        (
            ALONE,
            {"standalone-low": (1, -1), "standalone-mid": (2, 0), "standalone-high": (3, 1)},
            ("standalone", 2, 1),
            {"standalone-mid"},
        ),
        # reclaim quota from borrower
        (
            LIMITED,
            {"c1-low": (3, -1), "c2-mid": (3, 0), "c2-high": (6, 1)},
            ("c1", 3, 1),
            {"c2-mid"},
        ),
        # not enough workloads borrowing
        (
            LIMITED,
            {"c1-high": (4, 1), "c2-low-1": (4, -1), "c2-low-2": (4, -1)},
            ("c1", 4, 1),
            set(),
        ),
        # preempting locally and borrowing same resource in cohort, with a borrowing limit, without
        (
            LIMITED,
            {"c1-med": (4, 0), "c1-low": (4, -1), "c2-low-1": (4, -1)},
            ("c1", 4, 1),
            {"c1-low"},
        ),
        (
            FREE,
            {"d1-med": (4, 0), "d1-low": (4, -1), "d2-low-1": (4, -1)},
            ("d1", 4, 1),
            {"d1-low"},
        ),
        # preempting locally and not borrowing same resource in 1-queue cohort
        (ONE, {"l1-med": (4, 0), "l1-low": (2, -1)}, ("l1", 4, 1), {"l1-med"}),
    ],
)
def test_classic_preemption_as_kueue_has_it(
    quotas: dict[str, Any],
    running: Running,
    incoming: tuple[str, float, float],
    expected: set[str],
) -> None:
    found = gone(quotas, running, incoming, fair=False, reclaim_within_cohort="LowerPriority")
    assert found == expected
