"""What EASY backfilling promises its head of line, for the kernels: twin of `EasyQueue`'s shadow.

The *shadow* is a copy of the free state in which jobs end as expected until the head fits. A job
that would run past that time may start only on what the head leaves free then.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.room import forget_scores, give, is_free, take, take_there, undo


# Inlined, as `windtunnel.sim.compiled.nodes.take` is: the call alone would cost a tenth of a run.
@njit(cache=True, inline="always")
def promise(
    node, rows, shadow, marks, classes, kind, placement, class_of, segment_of, offsets, nodes, gpus,
    expected, expecting, num_running, now, spare_nodes, spare_gpus, devices=1,
):  # fmt: skip
    """Let the shadow be what is free beside the head when it starts, and return when that is, s.

    Args:
        node: free state; the head does not fit it.
        rows: ditto.
        shadow: is made a copy of ``node``.
        marks: is made a copy of the first of ``rows``, without the scores that are kept.
        classes: demand classes.
        kind: the head's.
        placement: its code.
        class_of: Int array (m,), each job's class.
        segment_of: Int array (m,), each running job's segment.
        offsets: where each segment's entries begin.
        nodes: of all entries.
        gpus: of all entries.
        expected: ends of the running jobs as they are expected, ascending, s.
        expecting: these jobs.
        num_running: how many they are.
        now: the instant, s; who was expected to end before is expected to end now.
        spare_nodes: scratch, for the head's entries.
        spare_gpus: ditto.
        devices: see `windtunnel.sim.compiled.room`.
    """
    shadow[:] = node
    marks[:] = rows[: len(marks)]
    forget_scores(marks, placement, devices)
    deadline = np.inf
    for index in range(num_running):
        gone = expecting[index]
        segment = segment_of[gone]
        give(
            shadow, marks, classes, class_of[gone], placement,
            nodes, gpus, offsets[segment], offsets[segment + 1], devices,
        )  # fmt: skip
        deadline = max(expected[index], now)
        if index + 1 < num_running and max(expected[index + 1], now) == deadline:
            continue
        if take(
            shadow, marks, classes, kind, placement, spare_nodes, spare_gpus, 0, devices
        ) >= 0:  # fmt: skip
            break
    return deadline


@njit(cache=True, inline="always")
def spares_head(
    node, rows, shadow, marks, classes, kind, placement, nodes, gpus, begin, end, devices=1,
):  # fmt: skip
    """Return whether the head starts in time beside a job that runs past the shadow's time.

    The job's entries are ``begin`` to ``end``. If so, they are taken from the shadow, too; if not,
    they are given back.
    """
    if is_free(shadow, marks, classes, kind, placement, nodes, gpus, begin, end, devices):
        take_there(shadow, marks, classes, kind, placement, nodes, gpus, begin, end, devices)
        return True
    undo(node, rows, classes, kind, placement, nodes, gpus, begin, end, devices)
    return False
