"""An audit of elastic runs from their tables alone: what a bookkeeper would check."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest
from elastic_cases import MODELS, NODES, jobs_of
from test_elastic_laws import POLICIES, REQUESTS

import windtunnel as wt
from windtunnel.policies.morphling.scheduler import Priced

#: Runs that are always audited, and all of them.
SAMPLE, RUNS = 38, 304
QUOTAS = {"a": 6, "b": 12}
NODE_GPUS, NODE_CORES = 8, 16


#: What else happens in a run: nothing, uncertain work, failures, gangs that go on at once.
BESIDES: tuple[dict[str, Any], ...] = (
    {},
    {"estimates": "noise:sigma=1"},
    {"disruptions": "mtbf:200s/mttr:20s"},
    {"disruptions": "mtbf:200s/mttr:20s/on_failure:swap"},
)


def fresh(seed: int) -> tuple[Any, dict[str, Any], float, dict[str, Any]]:
    """Return a policy, jobs, a penalty, and what else happens."""
    pick = random.Random(f"audit {seed}")  # noqa: S311 - a test's own chance
    names = (*POLICIES, "quotas")
    name = names[seed % len(names)]
    policy: Any = (
        Priced(quotas=QUOTAS, margin=pick.choice([0.0, 0.5])) if name == "quotas" else name
    )
    rows = []
    for _ in range(pick.randint(1, 30)):
        model, gpus, plan = pick.choice(REQUESTS)
        steps, vc = pick.randint(0, 80), pick.choice("ab")
        rows.append((pick.randint(0, 200), model, gpus, plan, steps, pick.randint(0, 1), vc))
    jobs = jobs_of(*rows)
    jobs["duration"] = [float(pick.randint(0, 80)) for _ in rows]
    besides = BESIDES[seed // len(names) % len(BESIDES)]
    return policy, jobs, pick.choice([0.0, 3.0, 20.0, 78.0]), besides | {"seed": seed}


def asked_option(jobs: dict[str, Any], row: int) -> tuple[float, int]:
    """Return the iterations a second and the least GPUs that keep them of what a user asked for."""
    model, plan, gpus = jobs["template"][row], jobs["plan"][row], jobs["num_gpus"][row]
    speeds = [
        (1 / seconds, sum(shape))
        for name, shape, _, seconds in MODELS[model].rows
        if name == plan and sum(shape) == gpus
    ]
    best = max(speed for speed, _ in speeds)
    keeping = [sum(shape) for _, shape, _, seconds in MODELS[model].rows if 1 / seconds >= best]
    return best, min(keeping)


def check_stays(
    out: wt.Outcome, jobs: dict[str, Any], penalty: float, *, disrupted: bool = False
) -> None:
    """Check each job's stays: one after the other, in an option of its own, paid for, all work.

    Where nodes fail some of the work is done again.
    """
    kinds = out.flight.stretches
    assert kinds is not None
    by_job: dict[int, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    for at, stay in enumerate(out.segments.to_pylist()):
        by_job[stay["row"]].append((at, stay))
    for row, stays in by_job.items():
        model, done, free_at = jobs["template"][row], 0.0, float(jobs["submit_time"][row])
        for at, stay in sorted(stays, key=lambda one: one[1]["start"]):
            assert stay["start"] >= free_at - 1e-9, "two plans at once, or before it came"
            free_at = stay["end"]
            length = stay["end"] - stay["start"]
            paid, seconds = float(kinds.penalty_time[at]), float(kinds.iteration_time[at])
            assert paid == pytest.approx(min(penalty, length)), "a launch was not paid"
            done += (length - paid) / seconds
            shape = tuple(sorted((int(g) for g in stay["node_gpus"]), reverse=True))
            if model in MODELS:
                option = (str(kinds.plan[at]), shape, kinds.cpus[at] / sum(shape), seconds)
                assert option in [(p, s, float(c), t) for p, s, c, t in MODELS[model].rows]
            else:
                assert sum(shape) == jobs["num_gpus"][row]
        wanted = float(kinds.iterations[row])
        assert done == pytest.approx(wanted, abs=1e-6) or (disrupted and done > wanted)
        if model in MODELS:
            assert kinds.iterations[row] == jobs["steps"][row]
    ended = out.table["end_time"].to_pylist()
    assert all(ended[row] == pytest.approx(stays[-1][1]["end"]) for row, stays in by_job.items())


def check_instants(out: wt.Outcome, jobs: dict[str, Any], *, quotas: bool) -> None:
    """Check GPUs and cores of each node, and quotas, at every instant at which anybody starts."""
    kinds = out.flight.stretches
    assert kinds is not None
    stays = out.segments.to_pylist()
    for now in {stay["start"] for stay in stays}:
        gpus, cores = [0.0] * NODES.num_nodes, [0.0] * NODES.num_nodes
        promised = dict.fromkeys(QUOTAS, 0)
        for at, stay in enumerate(stays):
            if not stay["start"] <= now < stay["end"]:
                continue
            for node, held in zip(stay["nodes"], stay["node_gpus"], strict=True):
                gpus[node] += held
                cores[node] += held * kinds.cpus[at] / kinds.gpus[at]
            if jobs["is_sla"][stay["row"]] and jobs["template"][stay["row"]] in MODELS:
                promised[jobs["vc"][stay["row"]]] += asked_option(jobs, stay["row"])[1]
        assert max(gpus) <= NODE_GPUS
        assert max(cores) <= NODE_CORES + 1e-9
        if quotas:
            assert all(promised[vc] <= QUOTAS[vc] for vc in QUOTAS)


def check_promises(out: wt.Outcome, jobs: dict[str, Any]) -> None:
    """Check that a guaranteed job never runs slower than in the option asked for."""
    kinds = out.flight.stretches
    assert kinds is not None
    for at, stay in enumerate(out.segments.to_pylist()):
        row = stay["row"]
        if jobs["is_sla"][row] and jobs["template"][row] in MODELS:
            assert 1 / kinds.iteration_time[at] >= asked_option(jobs, row)[0] * (1 - 1e-9)


def audit(seed: int) -> None:
    """Fly a run and audit it."""
    policy, jobs, penalty, besides = fresh(seed)
    quotas = not isinstance(policy, str)
    out = wt.simulate(jobs, NODES, policy, models=MODELS, penalty=penalty, until=1e6, **besides)
    statuses = set(out.table["status"].to_pylist())
    assert statuses <= ({"finished", "waiting"} if quotas else {"finished"})
    check_stays(out, jobs, penalty, disrupted="disruptions" in besides)
    check_instants(out, jobs, quotas=quotas)
    if quotas or policy.startswith(("morphling", "fixed-plan", "antman", "synergy")):
        check_promises(out, jobs)


@pytest.mark.parametrize("seed", range(SAMPLE))
def test_a_sample(seed: int) -> None:
    audit(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SAMPLE, RUNS, 10))
def test_all(first: int) -> None:
    for seed in range(first, min(first + 10, RUNS)):
        audit(seed)
