"""Free devices for the kernels: the twin of `windtunnel.cluster.free_devices` and placements.

The same calls as `windtunnel.sim.compiled.nodes`, on the tables of
`windtunnel.sim.compiled.device_tables`. An entry of a job's node list has the grant where nodes
without devices have a number of GPUs.
"""

from __future__ import annotations

from numba import njit

from windtunnel.sim.compiled.device_gangs import take_filling, take_gang
from windtunnel.sim.compiled.device_grants import change_all, give, grant
from windtunnel.sim.compiled.device_racks import take_by_racks
from windtunnel.sim.compiled.device_search import best_node, sums_allow
from windtunnel.sim.compiled.device_tables import (
    CAPACITY,
    CORES,
    COUNT,
    DEVICES,
    DRAWS,
    FILL,
    GPUS,
    GROUP,
    LARGEST,
    MEM,
    POOLED,
    RACKS,
    WANT_CORES,
    WANT_MEM,
)

__all__ = ["give", "is_free", "take", "take_there"]


@njit(cache=True)
def take(node, rows, classes, kind, placement, nodes, gpus, offset):
    """Place one job of class ``kind``: write its grants from ``offset`` on; return how many, or -1.

    Nothing is taken when it does not fit.
    """
    count = classes[kind, COUNT]
    if classes[kind, GROUP] < 0 and classes[kind, WANT_CORES] == 0 and classes[kind, WANT_MEM] == 0:
        rows[0, DRAWS] += 1
        return 0
    if count > classes[kind, CAPACITY] or not sums_allow(rows, classes, kind):
        return -1
    if count <= classes[kind, LARGEST] and not rows[0, FILL]:
        taken = -1
        which = best_node(node, rows, classes, kind, placement, count)
        if which >= 0:
            taken = (
                grant(node, rows, classes, kind, placement, which, count, 0, nodes, gpus, offset)
                - offset
            )
    elif rows[0, RACKS]:
        taken = take_by_racks(node, rows, classes, kind, placement, nodes, gpus, offset)
    elif rows[0, FILL]:
        taken = take_filling(node, rows, classes, kind, placement, nodes, gpus, offset)
    else:
        taken = take_gang(node, rows, classes, kind, placement, nodes, gpus, offset)
    if taken >= 0:
        rows[0, DRAWS] += 1
    return taken


@njit(cache=True)
def take_there(node, rows, classes, kind, placement, nodes, gpus, begin, end):  # noqa: ARG001
    """Take the grants in entries ``begin`` to ``end``; the reverse of `give`, and no draw."""
    change_all(node, rows, classes, kind, nodes, gpus, begin, end, -1)


@njit(cache=True)
def is_free(node, rows, classes, kind, placement, nodes, gpus, begin, end):
    """Return whether the grants in entries ``begin`` to ``end`` could be taken, all together."""
    free = True
    take_there(node, rows, classes, kind, placement, nodes, gpus, begin, end)
    for entry in range(begin, end):
        which = nodes[entry]
        if node[CORES, which] < 0 or node[MEM, which] < 0:
            free = False
        for device in range(1 if rows[0, POOLED] else node[GPUS, which]):
            if node[DEVICES + device, which] < 0:
                free = False
    give(node, rows, classes, kind, placement, nodes, gpus, begin, end)
    return free
