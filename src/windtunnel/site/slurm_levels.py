"""Levels of a topology from Slurm's ``topology.conf``: switches over switches, or blocks.

The k-th node that the file names is the cluster's k-th. ``topology/block``: the planned base blocks
are level ``block``; each larger size of ``BlockSizes`` is a level of as many base blocks, in the
file's order. ``topology/tree``: leaf switches are level ``switch``, those above ``switch2`` and so
on; a node without a switch at some height stands in one of its own there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.cluster.levels import Levels
from windtunnel.errors import TraceError
from windtunnel.site.host_list import hosts
from windtunnel.site.slurm_conf import read_lines, value_of

if TYPE_CHECKING:
    from pathlib import Path


def read_topology_conf(file: Path) -> Levels:
    """Return the levels that a ``topology.conf`` states.

    Raises:
        TraceError: the file cannot be read, names no nodes, a node twice, or switches in a circle.
    """
    lines = list(read_lines(file))
    blocks = {
        line["blockname"]: value_of(file, line, "Nodes", hosts, [])
        for line in lines
        if "blockname" in line
    }
    named = [line for line in lines if "switchname" in line]
    if blocks:
        sizes = [value_of(file, line, "BlockSizes", _numbers, []) for line in lines]
        levels, of = _blocks(file, blocks, next((found for found in sizes if found), []))
    else:
        levels, of = _switches(file, named)
    if not of:
        raise TraceError(str(file), "BlockName or SwitchName lines that name nodes")
    return Levels(levels, paths=tuple(of.values()))


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def _blocks(
    file: Path, blocks: dict[str, list[str]], sizes: list[int]
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the levels of blocks, and each node's."""
    base = sizes[0] if sizes else 1
    if any(size < 1 or size % base for size in sizes):
        raise TraceError(str(file), "BlockSizes that are multiples of the first")
    times = [size // base for size in sizes[1:]]
    names = [*(f"block{many}" for many in reversed(times)), "block"]
    of: dict[str, tuple[str, ...]] = {}
    for at, (name, nodes) in enumerate(blocks.items()):
        path = (*(str(at // many) for many in reversed(times)), name)
        _add(file, of, nodes, path)
    return tuple(names), of


def _switches(
    file: Path, named: list[dict[str, str]]
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the levels of switches, and each node's."""
    below = {line["switchname"]: value_of(file, line, "Switches", hosts, []) for line in named}
    above = {child: switch for switch, children in below.items() for child in children}
    leaves = {line["switchname"]: value_of(file, line, "Nodes", hosts, []) for line in named}
    up: dict[str, list[str]] = {}
    for leaf, nodes in leaves.items():
        way = [leaf] if nodes else []
        while way and way[-1] in above:
            way.append(above[way[-1]])
            if len(way) > len(named):
                raise TraceError(str(file), f"switches without a circle; {leaf!r} is in one")
        if way:
            up[leaf] = way
    height = max(map(len, up.values()), default=0)
    names = ("switch", *(f"switch{level}" for level in range(2, height + 1)))
    of: dict[str, tuple[str, ...]] = {}
    for leaf, way in up.items():
        whole = [*way, *[way[-1]] * (height - len(way))]
        _add(file, of, leaves[leaf], tuple(reversed(whole)))
    return tuple(reversed(names)) if height else (), of


def _add(
    file: Path, of: dict[str, tuple[str, ...]], nodes: list[str], path: tuple[str, ...]
) -> None:
    for node in nodes:
        if node in of:
            raise TraceError(str(file), f"each node once; {node!r} stands twice")
        of[node] = path
