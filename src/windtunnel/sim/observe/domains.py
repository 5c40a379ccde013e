"""How many domains of each level jobs ran over, against the least that could have held them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.cluster.levels import HOSTS
from windtunnel.errors import SpecError

if TYPE_CHECKING:
    from windtunnel.sim.flown import Flown


def domains(outcome: Flown) -> pa.Table:
    """Return one row a level, from the top: over how many of its domains jobs' stays went.

    Columns: ``level``; ``stays``: those that held GPUs; ``used``: their domains on average;
    ``least``: the fewest that have as many GPUs as the stay held, the largest first, whatever
    else ran there; ``spread``: used / least; ``tight``: the share of stays on the least.

    Raises:
        SpecError: the cluster has no nodes.
    """
    cluster, flight = outcome.cluster, outcome.flight
    if cluster.is_pool or outcome.settings.get("placement") == "pool":
        raise SpecError("cluster", "a pool has no nodes, and so no levels above them.")
    sizes = np.array([n.gpus for n in cluster.node_types for _ in range(n.count)], np.int64)
    names, paths = cluster.level_paths
    counts = np.diff(flight.node_offset)
    stay = np.repeat(np.arange(len(counts)), counts)
    rows = []
    for level, name in enumerate((*names, HOSTS[0])):
        of_node = _numbers(paths, level) if level < len(names) else np.arange(len(sizes))
        of_stay = np.unique(stay * (of_node.max() + 1) + of_node[flight.nodes])
        used = np.bincount(of_stay // (of_node.max() + 1), minlength=len(counts))
        largest = np.sort(np.bincount(of_node, weights=sizes))[::-1]
        held = used > 0
        gpus = np.bincount(stay, weights=flight.node_gpus, minlength=len(counts))
        least = np.searchsorted(np.cumsum(largest), gpus[held] - 1e-6) + 1
        rows.append(_row(name, used[held], least))
    return pa.Table.from_pylist(rows)


def _numbers(paths: tuple[tuple[str, ...], ...], level: int) -> np.ndarray:
    """Return each node's domain of a level, numbered; int array of shape (nodes,)."""
    known: dict[tuple[str, ...], int] = {}
    found = [known.setdefault(path[: level + 1], len(known)) for path in paths]
    return np.array(found, np.int64)


def _row(name: str, used: np.ndarray, least: np.ndarray) -> dict[str, object]:
    """Return a level's row."""
    many = len(used)
    return {
        "level": name,
        "stays": many,
        "used": float(used.mean()) if many else None,
        "least": float(least.mean()) if many else None,
        "spread": float(used.sum() / least.sum()) if many else None,
        "tight": float((used <= least).mean()) if many else None,
    }
