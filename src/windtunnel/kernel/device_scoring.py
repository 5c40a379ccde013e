"""`DeviceScoring`: a scored placement as numbers, its target workload, and the scores it keeps."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import cython
import numpy

from windtunnel.kernel.device_cluster import DeviceCluster, DeviceKinds
from windtunnel.kernel.draws import MIX_MASK, mixed
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.node_sets import NodeSets
from windtunnel.kernel.raised import Raised

#: Placements.
BY_FIRST_FIT = cython.declare(cython.int, 0)
BY_BEST_FIT = cython.declare(cython.int, 1)
BY_WORST_FIT = cython.declare(cython.int, 2)
BY_LEAST_IDLE = cython.declare(cython.int, 3)
BY_MOST_IDLE = cython.declare(cython.int, 4)
BY_LOWEST_UTILIZATION = cython.declare(cython.int, 5)
BY_LOAD_RATE = cython.declare(cython.int, 6)
BY_OPENB_BEST_FIT = cython.declare(cython.int, 7)
BY_DOT_PROD = cython.declare(cython.int, 8)
BY_GPU_PACKING = cython.declare(cython.int, 9)
BY_GPU_CLUSTERING = cython.declare(cython.int, 10)
BY_FGD = cython.declare(cython.int, 11)
BY_RANDOM = cython.declare(cython.int, 12)
#: One of the user's own, which says in Python how good a node is.
BY_ASKED = cython.declare(cython.int, 13)
#: The names of the others, in this order; `spread` is `worst_fit`.
SCORED_NAMES: tuple[str, ...] = (
    *("first_fit", "best_fit", "worst_fit", "least_idle", "most_idle"),
    *("lowest_utilization", "load_rate", "openb_best_fit", "dot_prod", "gpu_packing"),
    *("gpu_clustering", "fgd", "random"),
)
#: The last placement that looks at no job.
LAST_BY_LOAD = cython.declare(cython.int, 6)
#: How ties are broken.
TIES_BY_INDEX = cython.declare(cython.int, 0)
TIES_BY_NAME = cython.declare(cython.int, 1)
TIES_BY_DRAW = cython.declare(cython.int, 2)
TIE_NAMES: tuple[str, ...] = ("index", "name", "random")
#: Scores are kept as long as they fit into so many numbers.
MOST_KEPT = cython.declare(cython.longlong, 1 << 26)


@cython.final
@cython.cclass
class DeviceScoring:
    """How nodes are scored (`windtunnel.placements.scored`); twins share one of these.

    Args:
        cluster: the nodes.
        placement: a scored placement.
        nodes: the cluster, as `windtunnel.cluster.devices.DeviceNode`.

    Attributes:
        code: the placement.
        ties: how ties are broken.
        fills: gangs fill nodes in the order of their scores.
        by_rack: jobs over several nodes go by racks.
        spills: they may go over several racks.
        tree: (tasks that fit each node, tasks, request) -> (node, tasks) pairs, or None: gangs are
            laid out in a tree; None = they are not.
        scale: steps of a score of 1.
        seed: the seed, mixed once.
        draw: the seed and the number of jobs placed, mixed twice.
        w_cores, w_mem, w_gpus: what a placement weighs.
        steps: the least gain of each integer score of FGD.
        shapes: shapes of the target workload, by thousandths of a GPU.
        ask: of a placement of the user's own: how good a node is
            (`windtunnel.placements.asked.AskedPlacement.asked`).
        raised: what ``ask`` or ``tree`` has raised.
        classes: score classes for which scores are kept; 0 = none are.
        kept: the score of each node by class, (classes x nodes,).
        kept_at: the node's stamp then; 0 = none.
        frags: fragments of each node.
        frags_at: the node's stamp then.
    """

    nodes: cython.int
    code: cython.int
    ties: cython.int
    fills: cython.bint
    by_rack: cython.bint
    spills: cython.bint
    tree: object
    keeps: cython.bint
    scale: cython.longlong
    seed: cython.ulonglong
    draw: cython.ulonglong
    w_cores: cython.longlong
    w_mem: cython.longlong
    w_gpus: cython.longlong
    steps: cython.longlong[::1]
    shapes: cython.int
    shape_count: cython.longlong[::1]
    shape_cores: cython.longlong[::1]
    shape_milli: cython.longlong[::1]
    shape_gpus: cython.longlong[::1]
    shape_mask: cython.longlong[::1]
    sets: NodeSets
    ask: object
    raised: Raised
    classes: cython.int
    kept: cython.longlong[::1]
    kept_at: cython.longlong[::1]
    frags: cython.longlong[::1]
    frags_at: cython.longlong[::1]

    def __init__(self, cluster: DeviceCluster, placement: Any, nodes: Any) -> None:
        name = {"spread": "worst_fit", "tree": "best_fit"}.get(placement.name, placement.name)
        self.ask = placement.asked(nodes)
        self.raised = Raised()
        if self.ask is None and name not in SCORED_NAMES:
            raise ValueError(f"placement {name!r} on devices; expected {SCORED_NAMES}")
        self.nodes = cluster.nodes
        self.code = SCORED_NAMES.index(name) if self.ask is None else BY_ASKED
        self.ties = TIE_NAMES.index(placement.ties)
        if self.ties == TIES_BY_NAME and cluster.by_name:
            self.ties = TIES_BY_INDEX
        self.fills = placement.gang == "fill"
        self.by_rack = placement.topology != "none"
        self.spills = placement.topology == "rack"
        self.tree = None if placement.tree is None else placement.tree.place
        self.scale = placement.scale
        self.seed = mixed(placement.seed & MIX_MASK)
        self.draw = 0
        self.w_cores, self.w_mem, self.w_gpus = placement.weights
        self.steps = numpy.array(placement.steps, dtype=numpy.int64)
        self._measure(placement.workload, nodes)
        self.keeps = self.code >= BY_LOWEST_UTILIZATION and self.code != BY_RANDOM
        self.classes = 0
        self.kept = self.kept_at = numpy.zeros(0, dtype=numpy.int64)
        self.frags = numpy.zeros(self.nodes, dtype=numpy.int64)
        self.frags_at = numpy.zeros(self.nodes, dtype=numpy.int64)

    def _measure(self, workload: Any, nodes: Any) -> None:
        """Note the shapes of the target workload, the smallest share of a GPU first."""
        self.sets = NodeSets(len(nodes))
        rows = []
        if workload is not None:
            for shape, count in zip(workload.shapes, workload.counts, strict=True):
                fitting = [shape.accepts(node.gpu_type) for node in nodes]
                bits = numpy.packbits(numpy.array(fitting, dtype=bool), bitorder="little")
                mask = self.sets.place(int.from_bytes(bits.tobytes(), "little"))
                milli = shape.milli if shape.gpus else 0
                rows.append((milli, count, shape.cores, shape.gpus, mask))
        rows.sort(key=itemgetter(0))
        table = numpy.array(rows, dtype=numpy.int64).reshape(-1, 5).T.copy()
        self.shapes = len(rows)
        self.shape_milli, self.shape_count, self.shape_cores = table[0], table[1], table[2]
        self.shape_gpus, self.shape_mask = table[3], table[4]

    def keep(self, kinds: DeviceKinds) -> None:
        """Allocate the scores of all classes of kinds; what was kept is forgotten."""
        classes = kinds.classes
        if not self.keeps or classes == self.classes:
            return
        if 2 * classes * self.nodes > MOST_KEPT:
            classes = 0
        self.classes = classes
        self.kept = numpy.zeros(classes * self.nodes, dtype=numpy.int64)
        self.kept_at = numpy.zeros(classes * self.nodes, dtype=numpy.int64)

    @compiled
    def draw_for(self, purpose: cython.longlong) -> cython.longlong:
        """Return 31 random bits for a purpose of the job; see `windtunnel.placements.draws`."""
        word: cython.ulonglong = self.draw + cython.cast(cython.ulonglong, purpose)
        return cython.cast(cython.longlong, mixed(word) >> 33)
