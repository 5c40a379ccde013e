"""Which sleeping nodes are called for the elastic jobs that wait, option by option."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

    from windtunnel.cluster.free import Where
    from windtunnel.sim.decisions import Decisions
    from windtunnel.sim.elastic.nodes import FreeShares
    from windtunnel.sim.elastic.work import Option


def nodes_for_options(run: Any, asleep: Collection[int]) -> list[int]:
    """Return the nodes that waiting elastic jobs would get if some nodes were awake.

    In order of coming, each job besides those before it; then of each class of which one has no
    place so, the first alone. Each node once, in the order in which it is needed.

    Args:
        run: what an engine lends, see `windtunnel.sim.reference.lent`.
        asleep: the nodes that are not awake.
    """
    driver, shown = run.driver, run.shares_with_awake(asleep)
    needed: dict[int, None] = {}
    hopeless: dict[Any, int] = {}
    for job in run.waiting_jobs():
        work = run.works[job]
        alike = int(run.class_of[job]), id(work.options), id(work.requested), work.guaranteed
        kind = alike, driver.policy.node_sets_for(job)
        if kind in hopeless:
            continue
        found = _wanted(driver, shown, job, asleep)
        if found is None:
            hopeless[kind] = job
            continue
        option, where = found
        shown.take(where, option, job)
        needed |= dict.fromkeys(node for node, _ in where)
    alone = run.shares_with_awake(asleep) if hopeless else shown
    for job in hopeless.values():
        found = _wanted(driver, alone, job, asleep)
        needed |= dict.fromkeys(node for node, _ in found[1]) if found else {}
    return list(needed)


def _wanted(
    driver: Decisions, free: FreeShares, job: int, asleep: Collection[int]
) -> tuple[Option, Where] | None:
    """Return the option for which nodes are called, and where it goes; None = it has no place.

    As asked for, else the smallest option that has a place. A policy that might have launched the
    job so on nodes that are awake, and did not, waits for another option: then it is the first one
    that needs nodes which are not. In rounds the job may only wait for the next.
    """
    for nodes in driver.policy.node_sets_for(job):
        among = free
        if nodes is not None:
            among = free.copy()
            for node in set(range(len(among.free))) - nodes:
                among.withhold(node)
        found = _wanted_in(driver, among, job, asleep)
        if found is not None:
            return found
    return None


def _wanted_in(
    driver: Decisions, free: FreeShares, job: int, asleep: Collection[int]
) -> tuple[Option, Where] | None:
    """Return the same where the job has a place on these nodes."""
    has_place: tuple[Option, Where] | None = None
    for option in _ways(driver, job):
        where = driver.place_option(free, job, option)
        if where is None:
            continue
        has_place = has_place or (option, where)
        if driver.policy.every is not None or any(node in asleep for node, _ in where):
            return option, where
    return has_place


def _ways(driver: Decisions, job: int) -> list[Option]:
    """Return the options in which a job may be run: as asked for, then fewest GPUs first."""
    work = driver.works[job]  # type: ignore[index] # the run is elastic
    least = 0 if driver.policy.resizes else work.requested.num_gpus
    usable = work.usable(promises=driver.policy.keeps_promises)
    others = [one for one in usable if one.num_gpus >= least and one != work.requested]
    return [work.requested, *others]
