"""Quotas as limits of other policies: both engines return the same flight, bit for bit."""

from __future__ import annotations

import random
from typing import Any

import pytest
from flight_cases import draws

import windtunnel as wt
from windtunnel.testing import assert_outcomes_equal

POLICIES = ("fifo", "sjf", "srtf", "priority-preemptive", "las:quantum=40")
RULES = ("strict", "skip", "easy", "easy_sjbf", "conservative")
#: Few nodes for what is asked for, with GPU types and without; what they may draw all in all, W.
CLUSTERS = {"4x4": 1600, "3x8": 2400, "1x8,2x4": 1600, "1x8:A,2x4:B": 1300, "3x4:A,1x8:B": 1700}


def _quotas(pick: random.Random, queues: list[str], *, by_type: bool) -> dict[str, Any]:
    """Return quotas that keep some jobs waiting, of queues apart, in a cohort, or both."""
    shared = pick.randint(0, len(queues))
    found = []
    for number, vc in enumerate(queues):
        nominal: Any = pick.choice((2, 3, 4, 6, 8))
        if by_type:
            nominal = {"A": nominal, "B": pick.choice((2, 4, 8))}
        queue = {"vc": vc, "nominal_quota": nominal}
        if number < shared:
            queue["cohort"] = "all"
            if pick.random() < 0.4 and not by_type:
                queue["borrowing_limit"] = pick.choice((0, 2, 4))
            if pick.random() < 0.3 and not by_type:
                queue["lending_limit"] = pick.choice((0, 1, 2))
        found.append(queue)
    return {"queues": found}


def _jobs(pick: random.Random, queues: list[str]) -> dict[str, list[Any]]:
    time, rows = 0.0, []
    for _ in range(40):
        time += pick.choice((0, 0, 1, 3, 8, 20))
        length = pick.choice((5.0, 10.0, 30.0, 77.0, 150.0))
        rows.append(
            {
                "submit_time": time,
                "duration": length,
                "estimate": length * pick.choice((0.3, 1, 1, 2, 4)),
                "num_gpus": float(pick.choice((1, 1, 1, 2, 2, 3, 4, 8))),
                "vc": pick.choice(queues),
                "priority": float(pick.choice((0, 1, 5))),
            }
        )
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("policy", POLICIES)
def test_engines_agree_under_quotas(policy: str, rule: str) -> None:
    for seed in range(draws(6)):
        pick = random.Random(f"{policy} {rule} {seed}")  # noqa: S311 - a test's own chance
        queues = ["q", "r", "s", "t"][: pick.choice((2, 3, 4))]
        cluster = pick.choice(list(CLUSTERS))
        typed = ":" in cluster
        options: dict[str, Any] = {"queueing": rule, "oversize": "reject"}
        options["quotas"] = _quotas(pick, queues, by_type=typed and pick.random() < 0.7)
        options["blocking_limits"] = pick.random() < 0.25
        if pick.random() < 0.3:
            options["save_time"] = pick.choice((1.0, 7.0))
        if pick.random() < 0.25:
            names = ("A", "B") if typed else ("default",)
            options["power"] = {"gpus": {name: {"idle_w": 10, "active_w": 110} for name in names}}
            options["power_cap"] = 0.8 * CLUSTERS[cluster]
        if pick.random() < 0.25:
            options["disruptions"] = {"failure_models": [{"mtbf": 300.0, "mttr": 15.0}]}
        jobs = _jobs(pick, queues)
        compiled, reference = (
            wt.simulate(jobs, cluster, policy, engine=engine, **options)
            for engine in ("compiled", "reference")
        )
        assert_outcomes_equal(compiled, reference)
