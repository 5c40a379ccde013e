"""Notes on what was asked of a run and made no difference to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.errors import quote

if TYPE_CHECKING:
    from windtunnel.sim.contract import Policy
    from windtunnel.site.conditions import Conditions
    from windtunnel.study.predictions import RunPredictions
    from windtunnel.study.run_options import RunRules


def unused(
    asked: Conditions, policy: Policy, rules: RunRules, predicted: RunPredictions
) -> list[str]:
    """Return a note on each setting of a rigid run that was asked for and had nothing to act on.

    Args:
        asked: the settings as they were given.
        policy: who decided.
        rules: what the run went by.
        predicted: the estimates.
    """
    scheduler, label, none = asked.scheduler, quote(policy.label), "made no difference."
    notes = []
    if scheduler.estimates is not None and rules.estimates is None and not predicted.order_by:
        notes.append(f"Nothing plans with estimates here: {scheduler.estimates!r} {none}")
    if scheduler.sharing is not None and rules.as_pool:
        notes.append(f"A pool has no GPUs that jobs could share: {scheduler.sharing!r} {none}")
    preempts = policy.preemptive or policy.tier == 3  # noqa: PLR2004 - the tier's name
    if scheduler.preemption == "quota_walk" and not policy.preemptive:
        notes.append(f"Policy {label} preempts nobody by rank: 'quota_walk' {none}")
    around = rules.around
    if not preempts and around.disruptions is None and around.governing is None:
        given = {"save_time": scheduler.save_time, "restore_time": scheduler.restore_time}
        costs = " and ".join(name for name, cost in given.items() if cost not in (None, 0))
        if costs:
            notes.append(f"Policy {label} stops nobody: {costs} {none}")
    return notes
