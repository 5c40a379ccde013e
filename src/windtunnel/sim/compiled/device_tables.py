"""The tables of free devices that the kernels work on, with nothing running.

Three integer tables, as in `windtunnel.sim.compiled.nodes`:

* ``node`` (..., nodes): one column a node, so that a search over all nodes reads memory in order.
  Rows `TOTAL` ... `KIND`, then from `DEVICES` on the free thousandths of each device (one row
  of all on pooled nodes), then, from row ``rows[0, HELD]`` on, how many tasks of each group (a
  share, one GPU, two ...) the node runs.
* ``rows``: row 0 has the settings, columns `DRAWS` ... `SPILL`; row `STEPS` the least gain of each
  integer score of FGD; rows `LEFT` and `CHOSEN` are scratch paper; rows `SETS` and `IDLE_KINDS` are
  for `windtunnel.sim.compiled.device_sets`; from row `SHAPES` on one shape of the target workload a
  row; then, where placements look at racks, two rows for `windtunnel.sim.compiled.device_racks`;
  from row ``rows[0, CACHE]`` on (where it is not 0) two rows a score class: at which version of a
  node it was scored, plus 1, and the score.
* ``classes`` (classes, ...): one demand class a row, columns `COUNT` ... `MASKED`, then the allowed
  nodes as bits (where `MASKED`; else all are).

A node's version counts its changes, so that only nodes that changed are scored again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from windtunnel.cluster.devices import MILLI, UNLIMITED, largest_node, name_ranks, node_kinds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.devices import DeviceDemand, DeviceNode

#: Placement codes.
FIRST_FIT, BEST_FIT, WORST_FIT, LEAST_IDLE, MOST_IDLE, LOWEST_UTILIZATION = range(6)
OPENB_BEST_FIT, DOT_PROD, GPU_PACKING, GPU_CLUSTERING, FGD, RANDOM = range(6, 12)
LOAD_RATE = 12
CODES = {
    "first_fit": FIRST_FIT,
    "best_fit": BEST_FIT,
    "worst_fit": WORST_FIT,
    "spread": WORST_FIT,
    "least_idle": LEAST_IDLE,
    "most_idle": MOST_IDLE,
    "lowest_utilization": LOWEST_UTILIZATION,
    "openb_best_fit": OPENB_BEST_FIT,
    "dot_prod": DOT_PROD,
    "gpu_packing": GPU_PACKING,
    "gpu_clustering": GPU_CLUSTERING,
    "fgd": FGD,
    "random": RANDOM,
    "load_rate": LOAD_RATE,
}
#: Placements whose scores take so long that they are kept from one job to the next, as long as they
#: fit into so many numbers.
KEPT = (OPENB_BEST_FIT, DOT_PROD, GPU_PACKING, GPU_CLUSTERING, FGD)
MOST_KEPT = 1 << 27
#: Rows of ``node``. Where cores or memory are not constrained their size is -1, and more of them is
#: free than anybody asks for; `ROOMIEST` = most free thousandths of one device.
TOTAL, IDLE, CORES, MEM, VERSION, TASKS, GPUS, SIZE_CORES, SIZE_MEM = range(9)
RANK, FRAGS, FRAGS_AT, ROOMIEST, KIND, DEVICES = range(9, 15)
#: Columns of row 0 of ``rows``; `SCALE` = steps of a score of 1; `EACH` = devices a node; `IDLERS`
#: = nodes that run nothing; `FREE` = free thousandths of all GPUs.
DRAWS, SEED, SCALE, TIES, FILL, POOLED, MAX_CORES, MAX_MILLI, EACH, HELD, NUM_SHAPES, CACHE = range(
    12
)
IDLERS, FREE = range(12, 14)
#: Further columns of row 0: thousandths that cores, memory and GPUs count for; kinds of nodes that
#: are told apart; words of a set of nodes; the row for racks, how many they are, and whether a job
#: may go over several.
W_CORES, W_MEM, W_GPUS, KINDS, WORDS, RACKS, NUM_RACKS, SPILL = range(14, 22)
#: Rows of ``rows``.
STEPS, LEFT, CHOSEN, SETS, IDLE_KINDS, SHAPES = range(1, 7)
#: Sets in row `SETS`: nodes in use; those of them with GPUs left; nodes whose kind is not told
#: apart, which always count as in use; those that searches look at; from `FIRST_KIND` on, of each
#: kind those that run nothing.
IN_USE, WITH_GPUS, OF_NO_KIND, WITHIN, FIRST_KIND = range(5)
#: Most kinds that are told apart. In row `IDLE_KINDS`: scratch paper for the room of each, and from
#: `HINTS` on a word before which the kind's set has no node.
MOST_KINDS = 32
HINTS = MOST_KINDS
#: Columns of a shape's row.
S_COUNT, S_CORES, S_MILLI, S_GPUS, S_MASKED, S_ALLOWED = range(6)
#: Columns of ``classes``; `AMOUNT` = GPU milli of the whole gang (where the tables of plain nodes
#: have its GPUs, too), `CHUNK` = tasks that are scored together, `SCORED` = the score class,
#: `EMPTIES` = nodes that run nothing which a gang over several nodes needs at least.
AMOUNT, COUNT, WHOLE, PART, WANT_CORES, WANT_MEM, LARGEST, CAPACITY, GROUP = range(9)
CHUNK, SCORED, MASKED, EMPTIES, ALLOWED = range(9, 14)
#: Tie codes.
BY_INDEX, BY_NAME, BY_DRAW = range(3)
TIE_CODES = {"index": BY_INDEX, "name": BY_NAME, "random": BY_DRAW}
#: Integer scores of FGD above 0.
STEP_COUNT = 99


class Scored(Protocol):
    """What `tables` reads off a `windtunnel.placements.scored.ScoredPlacement`."""

    name: Any
    scale: int
    ties: str
    gang: str
    topology: str
    seed: int
    workload: Any
    steps: Any
    weights: Any


def tables(
    cluster: Sequence[DeviceNode],
    demands: Sequence[DeviceDemand],
    placement: Scored,
    *,
    pooled: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``node``, ``rows`` and ``classes`` with nothing running.

    Args:
        cluster: the nodes.
        demands: the demand classes.
        placement: how nodes are scored; its target workload is measured where it has one.
        pooled: a node's GPUs are one pool.
    """
    node = _node_table(cluster, pooled=pooled)
    words = (len(cluster) + 63) // 64
    classes, scored = _class_table(demands, words, len(cluster), fill=placement.gang == "fill")
    shapes = _shape_table(cluster, placement.workload, words)
    each = 1 if pooled else max((n.gpus for n in cluster), default=0)
    width = max(len(cluster) + 1, STEP_COUNT, shapes.shape[1], each, SPILL + 1)
    racks = SHAPES + len(shapes)
    first = racks if placement.topology == "none" else racks + 2
    kept = 2 * scored if CODES[placement.name] in KEPT else 0
    if kept * width > MOST_KEPT:
        kept = 0
    rows = np.zeros((first + kept, width), dtype=np.int64)
    rows[0, : FREE + 1] = (
        *(0, placement.seed, placement.scale, TIE_CODES[placement.ties], placement.gang == "fill"),
        *(pooled, *largest_node(cluster), each, DEVICES + each, len(shapes), first if kept else 0),
        *(len(cluster), sum(node.gpus for node in cluster) * MILLI),
    )
    rows[0, W_CORES : W_GPUS + 1] = placement.weights
    rows[STEPS, : len(placement.steps)] = placement.steps
    rows[SHAPES:racks, : shapes.shape[1]] = shapes
    if first > racks:
        begins = _rack_begins(cluster)
        rows[racks, : len(begins)] = begins
        rows[0, RACKS : SPILL + 1] = racks, len(begins) - 1, placement.topology == "rack"
    _sort_in_all(cluster, node, rows, words)
    return node, rows, classes


def _sort_in_all(
    cluster: Sequence[DeviceNode], node: np.ndarray, rows: np.ndarray, words: int
) -> None:
    """Fill the sets of nodes, with nothing running; a kind has several nodes, and there are few."""
    most = min(MOST_KINDS, rows.shape[1] // max(words, 1) - FIRST_KIND)
    kinds = sorted(node_kinds(cluster), key=lambda kind: -kind.count)[:most]
    sets = np.zeros((FIRST_KIND + len(kinds), words), dtype=np.int64)
    node[KIND] = -1
    left = (1 << len(cluster)) - 1
    for own, kind in enumerate(kinds):
        sets[FIRST_KIND + own] = _words(kind.members, words)
        node[KIND, _indices(kind.members, len(cluster))] = own
        left ^= kind.members
    with_gpus = left & sum(1 << index for index, one in enumerate(cluster) if one.gpus)
    for number, members in ((IN_USE, left), (WITH_GPUS, with_gpus), (OF_NO_KIND, left)):
        sets[number] = _words(members, words)
    sets[WITHIN] = -1
    rows[SETS, : sets.size] = sets.reshape(-1)
    rows[0, KINDS : WORDS + 1] = len(kinds), words


def _rack_begins(cluster: Sequence[DeviceNode]) -> np.ndarray:
    """Return the first node of each rack, and the number of nodes; racks are runs of nodes."""
    racks = np.array([node.rack for node in cluster], dtype=np.int64)
    changes = np.flatnonzero(np.diff(racks)) + 1
    return np.concatenate([[0], changes, [len(cluster)]])


def _indices(members: int, nodes: int) -> np.ndarray:
    """Return the indices of the nodes of a set, ascending."""
    bits = np.frombuffer(members.to_bytes((nodes + 7) // 8, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little"))


def _node_table(cluster: Sequence[DeviceNode], *, pooled: bool) -> np.ndarray:
    top = max((n.gpus for n in cluster), default=0)
    each = 1 if pooled else top
    node = np.zeros((DEVICES + each + top + 1, len(cluster)), dtype=np.int64)
    gpus = np.array([n.gpus for n in cluster], dtype=np.int64)
    node[GPUS] = gpus
    node[TOTAL] = gpus * MILLI
    node[IDLE] = gpus
    node[SIZE_CORES] = [-1 if n.cores is None else n.cores for n in cluster]
    node[SIZE_MEM] = [-1 if n.mem is None else n.mem for n in cluster]
    node[CORES] = np.where(node[SIZE_CORES] < 0, UNLIMITED, node[SIZE_CORES])
    node[MEM] = np.where(node[SIZE_MEM] < 0, UNLIMITED, node[SIZE_MEM])
    node[ROOMIEST] = np.where(gpus > 0, MILLI, 0)
    node[RANK] = name_ranks(cluster)
    if pooled:
        node[DEVICES] = gpus * MILLI
    else:
        node[DEVICES : DEVICES + each] = MILLI * (np.arange(each)[:, None] < gpus)
    return node


def _class_table(
    demands: Sequence[DeviceDemand], words: int, nodes: int, *, fill: bool
) -> tuple[np.ndarray, int]:
    """Return ``classes``, and how many score classes there are."""
    classes = np.zeros((len(demands), ALLOWED + words), dtype=np.int64)
    scored: dict[tuple[int, ...], int] = {}
    everywhere = (1 << nodes) - 1
    sets = {allowed: number for number, allowed in enumerate({d.allowed: 0 for d in demands})}
    masked = [allowed & everywhere != everywhere for allowed in sets]
    # Rows are made first and stored all at once: a trace may have tens of thousands of classes.
    rows = []
    for demand in demands:
        chunk = 1 if fill else demand.count
        key = (chunk, demand.gpus, demand.milli, demand.cores)
        amount = demand.gpus * MILLI + demand.milli
        rows.append(
            (
                demand.count * amount,
                *(demand.count, demand.gpus, demand.milli, demand.cores, demand.mem),
                *(demand.largest, demand.capacity, demand.group, chunk),
                *(scored.setdefault(key, len(scored)), masked[sets[demand.allowed]]),
                _empties(demand),
            )
        )
    if rows:
        classes[:, :ALLOWED] = rows
        bits = np.array([_words(allowed & everywhere, words) for allowed in sets])
        classes[:, ALLOWED:] = bits[[sets[demand.allowed] for demand in demands]]
    return classes, len(scored)


def _empties(demand: DeviceDemand) -> int:
    """Return how many nodes that run nothing a gang over several nodes needs at least.

    Each of them holds at most ``largest`` tasks, and so does the node that takes the remainder,
    which need not be one of them.
    """
    return (demand.count - 1) // demand.largest if demand.largest else 0


def _shape_table(cluster: Sequence[DeviceNode], workload: Any, words: int) -> np.ndarray:
    """Return the target workload, one shape a row, sorted by the size of a GPU's share."""
    if workload is None:
        return np.zeros((0, 0), dtype=np.int64)
    table = np.zeros((len(workload.shapes), S_ALLOWED + words), dtype=np.int64)
    for row, (shape, count) in enumerate(zip(workload.shapes, workload.counts, strict=True)):
        milli = shape.milli if shape.gpus else 0
        fits = [shape.accepts(n.gpu_type) for n in cluster]
        bits = sum(1 << index for index, yes in enumerate(fits) if yes)
        table[row, :S_ALLOWED] = (count, shape.cores, milli, shape.gpus, not all(fits))
        table[row, S_ALLOWED:] = _words(bits, words)
    return table[np.argsort(table[:, S_MILLI], kind="stable")]


def _words(bits: int, words: int) -> np.ndarray:
    return np.frombuffer(bits.to_bytes(words * 8, "little"), "<i8")
