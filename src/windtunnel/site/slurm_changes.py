"""A site that Slurm schedules, with more or fewer nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.site.slurm import SlurmNode, SlurmPartition, SlurmSite


def gpu_types_of(site: SlurmSite) -> dict[str, int]:
    """Return how many nodes have each GPU type; "" where the type is not given."""
    found: dict[str, int] = {}
    for node in site.nodes:
        for kind in node.gpus:
            found[kind] = found.get(kind, 0) + 1
    return found


def site_with_nodes(site: SlurmSite, change: int, gpu_type: str | None = None) -> SlurmSite:
    """Return a site with more or fewer nodes of one GPU type.

    New nodes are like the type's last one, stand behind it, and belong to its partitions (and to
    its switch). The last ones are those that go.

    Args:
        site: as it is.
        change: nodes more (or, below 0, fewer).
        gpu_type: of which nodes, in any case; None = that of which there are most.

    Raises:
        SpecError: there are no such nodes, or none would be left.
    """
    types = gpu_types_of(site)
    if not types:
        raise SpecError("--nodes", "the site has no nodes with GPUs.")
    kind = max(types, key=lambda name: types[name]) if gpu_type is None else gpu_type.lower()
    if kind not in types:
        raise SpecError.unknown("--nodes", str(gpu_type), types)
    if types[kind] + change < 1:
        message = f"found {change:+d}; of these nodes there are {types[kind]:,}, and one must stay."
        raise SpecError("--nodes", message)
    if change < 0:
        gone = {node.name for node in [n for n in site.nodes if kind in n.gpus][change:]}
        return _without(site, gone)
    return _with_more(site, change, kind)


def site_at(site: SlurmSite, time_of: Callable[[float], float]) -> SlurmSite:
    """Return a site whose reservations are on a trace's clock.

    Args:
        site: some of its reservations have dates.
        time_of: seconds since 1970 on the site's clock -> the trace's time, s.
    """
    replace = msgspec.structs.replace
    holds = tuple(
        replace(hold, start=time_of(hold.start), end=time_of(hold.end), is_dated=False)
        if hold.is_dated
        else hold
        for hold in site.reservations
    )
    return replace(site, reservations=holds)


def _with_more(site: SlurmSite, more: int, kind: str) -> SlurmSite:
    place = max(at for at, node in enumerate(site.nodes) if kind in node.gpus)
    like = site.nodes[place]
    known = {node.name for node in site.nodes}
    names = [f"{like.name}-more{number}" for number in range(1, more + 1)]
    names = [name for name in names if name not in known]
    fresh = tuple(msgspec.structs.replace(like, name=name) for name in names)
    nodes: tuple[SlurmNode, ...] = (*site.nodes[: place + 1], *fresh, *site.nodes[place + 1 :])

    def joined(group: tuple[str, ...]) -> tuple[str, ...]:
        if like.name not in group:
            return group
        at = group.index(like.name) + 1
        return (*group[:at], *names, *group[at:])

    return _regrouped(site, nodes, joined)


def _without(site: SlurmSite, gone: set[str]) -> SlurmSite:
    nodes = tuple(node for node in site.nodes if node.name not in gone)
    return _regrouped(site, nodes, lambda group: tuple(n for n in group if n not in gone))


def _regrouped(
    site: SlurmSite, nodes: tuple[SlurmNode, ...], of: Callable[[tuple[str, ...]], tuple[str, ...]]
) -> SlurmSite:
    """Return a site with other nodes; ``of``: names of a group -> those it then has."""
    replace = msgspec.structs.replace
    parts: tuple[SlurmPartition, ...] = tuple(
        replace(part, nodes=of(part.nodes)) for part in site.partitions
    )
    switches = tuple(replace(switch, nodes=of(switch.nodes)) for switch in site.switches)
    holds = tuple(replace(hold, nodes=of(hold.nodes)) for hold in site.reservations)
    return replace(site, nodes=nodes, partitions=parts, switches=switches, reservations=holds)
