"""The engines and how one is chosen: the fastest whose features cover the policy's needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError
from windtunnel.sim.contract import BACKFILLING

if TYPE_CHECKING:
    from collections.abc import Collection

    from windtunnel.sim.contract import Policy

ENGINES: tuple[str, ...] = ("auto", "compiled", "reference")


def choose_engine(
    name: str,
    policy: Policy,
    *,
    queueing: str = "strict",
    events: str = "batch",
    needs: Collection[str] = (),
) -> Any:
    """Return the engine module (``NAME``, ``FEATURES``, ``run``) to fly a policy with.

    Args:
        name: ``auto``, ``compiled`` or ``reference``.
        policy: what it must be able to run.
        queueing: the head-of-line rule.
        events: one of `windtunnel.sim.contract.EVENT_ORDERS`.
        needs: further features that the run needs.

    Raises:
        SpecError: unknown engine, or the named one lacks a feature that the run needs.
    """
    from windtunnel.sim import reference

    if name not in ENGINES:
        raise SpecError.unknown("engine", name, ENGINES)
    if name == "reference":
        return reference
    from windtunnel.sim import compiled

    needed = {*policy.requires, *needs}
    needed |= {queueing} if queueing in BACKFILLING else set()
    needed |= {"event order"} if events != "batch" else set()
    if policy.in_numbers:  # kernels of their own, which have what they say and no more
        more = {*needs} - {"topology"}
        more |= {"event order"} if events != "batch" else set()
        more |= {"conservative"} & {queueing}
        needed |= {f"{name} by {policy.in_numbers}" for name in more}
    if events != "batch" or "disruptions" in needs:
        needed |= _combined(policy, queueing, {*needs} - {"disruptions"}, events)
    lacking = needed - compiled.FEATURES
    if not lacking:
        return compiled
    if name == "auto":
        return reference
    of_run = lacking & set(needs) or any(" with " in name for name in lacking)
    who = "this run" if of_run else f"policy {policy.label!r}"
    raise SpecError(
        "engine",
        f"the compiled engine lacks {', '.join(sorted(lacking))}, which {who} needs; use "
        "engine='auto' or 'reference'",
    )


def _combined(policy: Policy, queueing: str, needs: Collection[str], events: str) -> set[str]:
    """Return what an engine must be able to do together with disruptions, or an order of events.

    Args:
        policy: who runs next.
        queueing: the head-of-line rule.
        needs: what the run needs besides disruptions.
        events: in what order the events of an instant are handled.
    """
    disrupted = events == "batch"
    parts = {*needs}
    if policy.levels is not None:
        parts |= {"levels"}
    by_keys = policy.tier == 2 and not (policy.preemptive and policy.by_remaining)  # noqa: PLR2004 - the tier's name
    if disrupted and by_keys and policy.levels is None:
        parts |= {"keys that are asked again"}
    if queueing == "conservative":
        parts |= {queueing}
    return {f"{part} with {'disruptions' if disrupted else 'events in turn'}" for part in parts}
