"""What was free on each node after every change: a run's stays replayed node by node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.cluster.devices import CORE_UNITS, MILLI, UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.cluster.spec import ClusterSpec, NodeType
    from windtunnel.sim.observe.holdings import Holdings

#: Numbers in the largest array of one batch of states; bounds memory, not the result.
_BATCH = 4_000_000


@dataclass(frozen=True)
class NodeStates:
    """States of nodes of one kind, node after node, each node's in order of time.

    Attributes:
        kind: the nodes' kind, an index into the cluster's node types.
        node: Int array (k,), node index.
        time: Float array (k,), from when on, s; -inf for the state before anything ran, which is
            each node's first.
        free: Int array (k, GPUs of a node), free thousandths of each GPU. Where devices are not
            modelled, the free ones come first.
        cores: Int array (k,), free thousandths of cores; `UNLIMITED` where they do not count.
    """

    kind: int
    node: np.ndarray
    time: np.ndarray
    free: np.ndarray
    cores: np.ndarray


def node_states(
    cluster: ClusterSpec,
    held: Holdings,
    start: np.ndarray,
    end: np.ndarray,
    *,
    cores: bool,
    batch: int = _BATCH,
) -> Iterator[NodeStates]:
    """Yield all states of all nodes with GPUs, batch by batch, kinds of nodes in order.

    Args:
        cluster: the nodes.
        held: what stays held.
        start: Float array (s,), when each stay began, s.
        end: Float array (s,), when it ended; NaN where it goes on.
        cores: whether cores count; a node that does not say how many it has, has enough.
        batch: numbers in the largest array of one batch.
    """
    begun, ended = start[held.stay], end[held.stay]
    stopped = np.flatnonzero(~np.isnan(ended))
    entry = np.concatenate([np.arange(len(held.stay)), stopped])
    time = np.concatenate([begun, ended[stopped]])
    sign = np.concatenate([np.full(len(begun), -1), np.ones(len(stopped), dtype=np.int64)])
    order = np.lexsort((time, held.node[entry]))
    entry, time, sign = entry[order], time[order], sign[order]
    bounds = np.searchsorted(held.node[entry], np.arange(cluster.num_nodes + 1))
    first = 0
    for kind, nodes in enumerate(cluster.node_types):
        if nodes.gpus:
            for low, high in _batches(bounds[first : first + nodes.count + 1], nodes.gpus, batch):
                events = slice(int(bounds[first + low]), int(bounds[first + high]))
                change = _changes(held, entry[events], sign[events], nodes)
                empty = np.arange(first + low, first + high)
                yield _states(kind, nodes, empty, time[events], change, cores=cores)
        first += nodes.count


@dataclass(frozen=True)
class _Changes:
    """Changes on nodes, (k,) each: the node, of each device (k, GPUs), and of cores.

    Where devices are not modelled, there is one column for all.
    """

    node: np.ndarray
    free: np.ndarray
    cores: np.ndarray


def _batches(bounds: np.ndarray, gpus: int, batch: int) -> Iterator[tuple[int, int]]:
    """Yield spans of nodes whose events stay within a batch; a node is never cut in two."""
    low = 0
    while low < len(bounds) - 1:
        limit = bounds[low] + max(batch // gpus, 1)
        high = max(low + 1, int(np.searchsorted(bounds, limit, side="right")) - 1)
        yield low, high
        low = high


def _changes(held: Holdings, entry: np.ndarray, sign: np.ndarray, nodes: NodeType) -> _Changes:
    if held.devices is None:
        free = (sign * held.milli[entry])[:, None]
    else:
        masks = held.devices[entry]
        bits = (masks[:, None] >> np.arange(nodes.gpus)) & 1
        each = held.milli[entry] // np.maximum(bits.sum(axis=1), 1)
        free = bits * (sign * each)[:, None]
    return _Changes(held.node[entry], free, sign * held.cores[entry])


def _states(
    kind: int,
    nodes: NodeType,
    empty: np.ndarray,
    time: np.ndarray,
    change: _Changes,
    *,
    cores: bool,
) -> NodeStates:
    """Return the states of some nodes: each starts empty, then changes at every distinct time.

    Args:
        kind: their kind.
        nodes: what they are.
        empty: Int array, the nodes.
        time: Float array (k,), when they change, by (node, time).
        change: the changes.
        cores: whether cores count.
    """
    # A node's first event is the empty node itself; sums then run on from node to node, and what
    # the nodes before have added is taken off again.
    at = np.searchsorted(change.node, empty)
    node = np.insert(change.node, at, empty)
    when = np.insert(time, at, -np.inf)
    free = np.cumsum(np.insert(change.free, at, 0, axis=0), axis=0)
    used = np.cumsum(np.insert(change.cores, at, 0))
    start = at + np.arange(len(at))
    lengths = np.diff(np.append(start, len(node)))
    last = np.append((node[1:] != node[:-1]) | (when[1:] != when[:-1]), True)
    free = (free - np.repeat(free[start], lengths, axis=0))[last]
    used = (used - np.repeat(used[start], lengths))[last]
    whole = free.shape[1] == 1 and nodes.gpus != 1
    if whole:
        left = nodes.gpus + free[:, 0] // MILLI
        free = MILLI * (np.arange(nodes.gpus) < left[:, None])
    else:
        free += MILLI
    limited = cores and nodes.cpus is not None
    free_cores = (
        round((nodes.cpus or 0.0) * CORE_UNITS) + used if limited else np.full(len(used), UNLIMITED)
    )
    return NodeStates(kind, node[last], when[last], free, free_cores)
