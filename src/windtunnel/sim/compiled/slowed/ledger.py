"""The tables of a run with slow-downs, and the heap of ends that may move."""

from __future__ import annotations

from collections import namedtuple

from numba import njit

from windtunnel.sim.compiled.borrow import borrowed

#: Everything about a run that changes, for m jobs on n nodes:
#:
#: * ``work`` Float (m, 11), columns `START` ... `ASKED`; ``jobs`` Int (m, 8), columns `KIND` ...;
#: * ``parts`` Int (parts, 8): what a running job holds on one node, columns `JOB` ... `ALSO`; the
#:   parts on one node are a list in order of start, the spare ones another;
#: * ``sites`` Int (n, 6): the nodes, columns `FIRST` ... `TOUCHED`;
#: * ``racks`` Int (racks,): scratch paper; ``touched`` Int: nodes, or jobs, whose rates may change;
#: * ``least`` Int (classes, 5): columns `NODES` ... `KEY`; ``pairs`` Float (2, names, names): rate
#:   of a job beside another, and the time that it costs; ``model`` Float (2,): `CPU` ...;
#: * ``count`` Int: counters and settings, `RUNNING` ...;
#: * the record of segments, as `windtunnel.sim.compiled.records.Record`, but that ``ends`` and
#:   ``ending`` are a heap of the running jobs' ends, none of them stale.
Ledger = namedtuple(  # noqa: PYI024 - numba needs the untyped kind
    "Ledger",
    "work jobs parts sites racks touched least pairs model count "
    "job start end offsets nodes gpus ends ending",
)
#: Columns of ``work``: times in s; `LEFT` = work left at the last change, s at rate 1; `SPREAD` =
#: rate over more nodes than needed; `ASKED` = thousandths of cores.
START, END, PROJECTED, LEFT, RATE, SINCE, RESUMED, LOST, SPREAD, LOCALITY, ASKED = range(11)
#: Columns of ``jobs``: demand class; number of its name; segment while it runs, else -1; its first
#: part, the others behind it; preemptions; place in the heap of ends; when it was looked at last.
KIND, NAME, SEGMENT, PART, PREEMPTIONS, PLACE, STAMP = range(7)
#: Columns of ``parts``; `ALSO` = next part of the same job.
JOB, NODE, DEVICES, CORES, NEXT, BEFORE, ALSO = range(7)
#: Columns of ``sites``: the first and last part; thousandths of cores that jobs hold, and that
#: there are (0 = not stated).
FIRST, LAST, HELD, LIMIT, RACK, TOUCHED = range(6)
#: Columns of ``least``: fewest nodes and racks; tasks of a job (or its GPUs), and GPUs of a task as
#: grants count them; what tells waiting classes apart by GPUs.
NODES, RACKS, TASKS, EACH, GROUP = range(5)
#: Entries of ``model``.
CPU, OVER_RACKS = range(2)
#: Entries of ``count``: running jobs, segments, parts ever made, first spare part, touched nodes or
#: jobs, number of the last look; whether company matters, whether sharing does; what a grant is.
RUNNING, SEGMENTS, PARTS, SPARE, NUM_TOUCHED, SERIAL, BY_COMPANY, BY_SHARING, GRANTS = range(9)
#: Further entries, for the loops: arrived jobs, decisions, waiting jobs, rounds, whether a decision
#: is due, entries that the waiting jobs may need.
ARRIVED, POINTS, WAITING, ROUNDS, DUE, ENTRIES, COUNTERS = range(9, 16)
#: What a grant is: GPUs of a node, devices as bits, thousandths of its pool, GPUs of no node.
OF_GPUS, OF_DEVICES, OF_MILLI, OF_POOL = range(4)


@njit(cache=True)
def lent(owned):
    """Return the tables without reference counts; ``owned`` must outlive them."""
    return Ledger(
        borrowed(owned.work), borrowed(owned.jobs), borrowed(owned.parts), borrowed(owned.sites),
        borrowed(owned.racks), borrowed(owned.touched), borrowed(owned.least),
        borrowed(owned.pairs), borrowed(owned.model), borrowed(owned.count), borrowed(owned.job),
        borrowed(owned.start), borrowed(owned.end), borrowed(owned.offsets), borrowed(owned.nodes),
        borrowed(owned.gpus), borrowed(owned.ends), borrowed(owned.ending),
    )  # fmt: skip


@njit(cache=True)
def _put(ledger, place, time, job):
    ledger.ends[place] = time
    ledger.ending[place] = job
    ledger.jobs[job, PLACE] = place


@njit(cache=True)
def _rise(ledger, place, time, job):
    """Put an end into the hole at ``place``, or above it."""
    while place > 0:
        parent = (place - 1) >> 1
        if ledger.ends[parent] <= time:
            break
        _put(ledger, place, ledger.ends[parent], ledger.ending[parent])
        place = parent
    _put(ledger, place, time, job)


@njit(cache=True)
def _sink(ledger, place, time, job):
    """Put an end into the hole at ``place``, or below it."""
    size = ledger.count[RUNNING]
    child = 2 * place + 1
    while child < size:
        if child + 1 < size and ledger.ends[child + 1] < ledger.ends[child]:
            child += 1
        if time <= ledger.ends[child]:
            break
        _put(ledger, place, ledger.ends[child], ledger.ending[child])
        place = child
        child = 2 * place + 1
    _put(ledger, place, time, job)


@njit(cache=True)
def add_end(ledger, time, job):
    """Add a job that starts to the heap of ends."""
    place = ledger.count[RUNNING]
    ledger.count[RUNNING] += 1
    _rise(ledger, place, time, job)


@njit(cache=True)
def move_end(ledger, time, job):
    """Let a running job end at another time."""
    place = ledger.jobs[job, PLACE]
    if time < ledger.ends[place]:
        _rise(ledger, place, time, job)
    else:
        _sink(ledger, place, time, job)


@njit(cache=True)
def drop_end(ledger, job):
    """Take a job that stops out of the heap of ends."""
    ledger.count[RUNNING] -= 1
    place, last = ledger.jobs[job, PLACE], ledger.count[RUNNING]
    if place == last:
        return
    time, moved = ledger.ends[last], ledger.ending[last]
    if place > 0 and ledger.ends[(place - 1) >> 1] > time:
        _rise(ledger, place, time, moved)
    else:
        _sink(ledger, place, time, moved)
