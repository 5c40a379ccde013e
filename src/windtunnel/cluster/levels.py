"""Levels of domains above a cluster's nodes: block, rack ...; the node itself is the lowest.

A level is stated by how many nodes a domain of it has, counted through the nodes in order, or by
each node's domains.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import msgspec

from windtunnel.errors import SpecError, quote

#: What the lowest level, the node itself, may be called.
HOSTS = ("host", "node")
_WORD = re.compile(r"([\w.-]+)=(\d{1,9})")


class Levels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The levels of a cluster's topology.

    Attributes:
        levels: names from the top; the nodes are not among them.
        nodes: nodes of one domain of each level, where domains are counted.
        paths: of each node, in node order, its domain of each level, where they are named.

    >>> Levels.parse("block=4,rack=2").of_nodes(5)[3:]
    (('0', '1'), ('1', '2'))
    """

    levels: tuple[str, ...]
    nodes: tuple[int, ...] = ()
    paths: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        """Check names and numbers.

        Raises:
            SpecError: a name stands twice, or a level does not divide the one above it.
        """
        names = [*self.levels, *HOSTS]
        if not self.levels or not all(self.levels) or len(set(names)) < len(names):
            found = ", ".join(map(quote, self.levels))
            raise SpecError(
                "topology.levels",
                f"found {found or 'none'}; expected different names from the top, such as block, "
                "rack; the node itself is not one of them.",
            )
        for path in self.paths:
            if len(path) != len(self.levels):
                message = f"found {len(path)} domains for {len(self.levels)} levels"
                raise SpecError("topology.paths", message)
        if not self.paths and len(self.nodes) != len(self.levels):
            message = f"found {len(self.nodes)} numbers for {len(self.levels)} levels"
            raise SpecError("topology.nodes", message)
        for above, below in pairwise((*self.nodes, 1) if self.nodes else ()):
            if below < 1 or above < below or above % below:
                message = f"{above:,} nodes are not domains of {below:,}; expected a multiple"
                raise SpecError("topology.nodes", message)

    @classmethod
    def parse(cls, text: str) -> Levels:
        """Return the levels of words: nodes of one domain of each, from the top.

        Raises:
            SpecError: a word is not understood.
        """
        found = [_WORD.fullmatch(word.strip()) for word in text.split(",")]
        words = [match for match in found if match is not None]
        if len(words) < len(found):
            raise SpecError(
                "topology",
                f"found {quote(text)}; expected nodes of a domain by level from the top, such as "
                "block=72,rack=18, or a file.",
            )
        return cls(tuple(w[1] for w in words), tuple(int(w[2]) for w in words))

    @classmethod
    def from_mapping(cls, raw: dict[str, Any], num_nodes: int) -> Levels:
        """Return the levels of a ``[topology]`` table.

        Args:
            raw: ``levels`` from the top down to ``host`` and, of each but the first,
                ``racks_per_block`` and so on; ``blocks`` may be left out. Or the fields.
            num_nodes: how many nodes the cluster has.

        Raises:
            SpecError: a key is missing or unknown, or the numbers do not come to that many nodes.
        """
        fields = {"levels", "nodes", "paths"}
        if raw.keys() <= fields and raw.keys() != {"levels"}:
            try:
                return msgspec.convert(raw, cls)
            except msgspec.ValidationError as error:
                raise SpecError("topology", str(error)) from error
        names = raw.get("levels")
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            raise SpecError("topology.levels", "missing; expected names from the top.")
        names = [name for name in names if name not in HOSTS]
        lowest = next((h for h in HOSTS if f"{h}s_per_{names[-1] if names else ''}" in raw), "host")
        keys = [f"{b}s_per_{a}" for a, b in pairwise([*names, lowest])]
        top = f"{names[0]}s" if names else ""
        for key in raw:
            if key not in (*keys, top, "levels"):
                raise SpecError.unknown("topology", key, ["levels", top, *keys])
        counts = [_count(raw, key) for key in keys]
        sizes: list[int] = []
        nodes = 1
        for count in reversed(counts):
            nodes *= count
            sizes.insert(0, nodes)
        if top in raw and _count(raw, top) * nodes != num_nodes:
            message = f"{raw[top]:,} of {nodes:,} nodes each; the cluster has {num_nodes:,} nodes."
            raise SpecError(f"topology.{top}", message)
        return cls(tuple(names), tuple(sizes))

    def of_nodes(self, num_nodes: int) -> tuple[tuple[str, ...], ...]:
        """Return the domains of each node, in node order, from the top.

        Raises:
            SpecError: other nodes were named.
        """
        if self.paths:
            if len(self.paths) != num_nodes:
                message = f"it has {len(self.paths):,} nodes; the cluster has {num_nodes:,}."
                raise SpecError("topology", message)
            return self.paths
        width = [len(str((num_nodes - 1) // size)) for size in self.nodes]
        return tuple(
            tuple(f"{node // size:0{w}d}" for size, w in zip(self.nodes, width, strict=True))
            for node in range(num_nodes)
        )


def _count(raw: dict[str, Any], key: str) -> int:
    """Return a number of domains or nodes."""
    value = raw.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        found = "missing" if value is None else f"found {quote(value)}"
        raise SpecError(f"topology.{key}", f"{found}; expected a whole number from 1.")
    return value
