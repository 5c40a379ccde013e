"""Options that do not go together are refused in words, whatever engine would fly."""

from __future__ import annotations

from typing import Any

import pytest

import windtunnel as wt

pytestmark = pytest.mark.usefixtures("plugins_forgotten")

JOBS = {"submit_time": [0.0, 1.0], "duration": [5.0, 5.0], "num_gpus": [1.0, 1.0]}


@pytest.mark.parametrize("engine", ["auto", "compiled", "reference"])
@pytest.mark.parametrize("placement", ["fgd", "gpu_packing:gang=fill"])
@pytest.mark.parametrize("options", [{"sharing": "pooled"}, {"compat": "pai"}])
def test_placements_on_devices_on_pooled_nodes(
    engine: str, placement: str, options: dict[str, Any]
) -> None:
    with pytest.raises(wt.SpecError, match="needs devices, not pooled nodes"):
        wt.simulate(JOBS, "2x4", placement=placement, engine=engine, **options)


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "easy-perfect", "conservative"])
def test_the_pai_simulator_does_not_backfill(policy: str) -> None:
    with pytest.raises(wt.SpecError, match=f"policy '{policy}' backfills"):
        wt.simulate(JOBS, "2x4", policy, compat="pai")
    with pytest.raises(wt.SpecError, match="goes on past what does not fit"):
        wt.simulate(JOBS, "2x4", "fifo", queueing="easy", compat="pai")


@pytest.mark.parametrize("policy", ["quota", "reserving-packing", "morphling", "gavel:fifo"])
def test_a_policy_that_decides_by_itself_has_no_rule_for_the_queue(policy: str) -> None:
    with pytest.raises(wt.SpecError, match="queueing"):
        wt.simulate(JOBS, "2x4:V100", policy, queueing="skip")


def test_a_function_that_decides_is_given_no_rule_for_the_queue() -> None:
    def decide(now: float, queue: Any, cluster: Any) -> Any:
        return []

    with pytest.raises(wt.PolicyError, match="there is no line"):
        wt.policy("decides-with-a-rule", queueing="skip")(decide)


def test_a_rule_for_several_policies_is_for_those_with_a_line() -> None:
    both = wt.compare(JOBS, "2x4", ["fifo", "quota"], queueing="skip")
    assert both["fifo"].settings["queueing"] == "skip"
    assert both["quota"].settings["queueing"] == "policy"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("disruptions", "mtbf:1h/mttr:1m"),
        ("decide_every", 60),
        ("events", "completions_first"),
        ("placement", "spread"),
        ("slowdown", "spread=0.8"),
    ],
)
def test_morphlings_simulator_has_options_of_its_own_alone(option: str, value: Any) -> None:
    jobs = JOBS | {"plan": ["ga", "ga"], "steps": [1, 1], "is_sla": [0, 0]}
    with pytest.raises(wt.SpecError, match=option):
        wt.simulate(jobs, "1x8", "morphling", compat="morphling", **{option: value})


@pytest.mark.parametrize(
    ("policy", "cluster", "option", "value", "is_used"),
    [
        ("fifo", "2x4", "estimates", "perfect", False),
        ("easy", "2x4", "estimates", "perfect", True),
        ("fifo", "2x4", "save_time", 30, False),
        ("fifo", "2x4", "restore_time", "1=7/9=60", False),
        ("srtf", "2x4", "save_time", 30, True),
        ("fifo", "2x4", "preemption", "quota_walk", False),
        ("srtf", "2x4", "preemption", "quota_walk", True),
        ("fifo", "pool:8", "sharing", "devices", False),
        ("fifo", "2x4", "sharing", "devices", True),
        ("fifo", "2x4", "bind_types", "none", False),
    ],
)
def test_what_is_asked_for_and_makes_no_difference_is_noted(
    policy: str, cluster: str, option: str, value: Any, *, is_used: bool
) -> None:
    jobs = JOBS | {"estimate": JOBS["duration"]}
    out = wt.simulate(jobs, cluster, policy, **{option: value})
    noted = [note for note in out.notes if "made no difference" in note]
    assert len(noted) == (0 if is_used else 1)
    assert is_used or out.table.equals(wt.simulate(jobs, cluster, policy).table)


def test_costs_count_where_failures_stop_jobs() -> None:
    out = wt.simulate(JOBS, "2x4", "fifo", save_time=30, disruptions="mtbf:1000d/mttr:1h")
    assert not [note for note in out.notes if "no difference" in note]
