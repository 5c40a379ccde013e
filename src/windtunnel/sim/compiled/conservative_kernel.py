"""The kernel for conservative backfilling: twin of `windtunnel.sim.backfill.ConservativeQueue`."""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.heaps import pop_time, push_time
from windtunnel.sim.compiled.nodes import CPUS, FREE, FREE_CPUS, POOL, give, take_there
from windtunnel.sim.compiled.profile import change, earliest, grown, step_at
from windtunnel.sim.compiled.sorted_lists import insert_int, insert_time, remove_time


@njit(cache=True)
def fly(
    submit, duration, estimate, position, order, class_of, slot, node, rows, classes, placement,
    until,
):  # fmt: skip
    """Fly m jobs; see `windtunnel.sim.compiled.run` for the arguments.

    ``slot`` (m + 1,) says where each job's promised nodes are kept.

    Returns:
        As `windtunnel.sim.compiled.queue_kernel.fly`.
    """
    count = len(submit)
    start = np.full(count, np.nan)
    segment_job = np.empty(count, dtype=np.int64)
    offsets = np.zeros(count + 1, dtype=np.int64)
    nodes, gpus = np.empty(slot[count], dtype=np.int32), np.empty(slot[count], dtype=np.int64)
    segments = 0
    ends, ending = np.empty(count), np.empty(count, dtype=np.int64)
    expected, expecting = np.empty(count), np.empty(count, dtype=np.int64)
    num_running = 0
    queue = np.empty(count, dtype=np.int64)
    num_waiting = 0
    promised = np.full(count, np.nan)
    promised_nodes = np.empty(slot[count], dtype=np.int32)
    promised_gpus = np.empty(slot[count], dtype=np.int64)
    num_promised = np.zeros(count, dtype=np.int64)
    times = np.empty(64)
    free = np.empty((64, len(node), 2), dtype=np.int64)
    totals = np.empty(64, dtype=np.int64)
    size = 0
    spare_node, spare_rows = node.copy(), rows.copy()
    room = np.empty((len(node), 2), dtype=np.int64)
    was_late = False
    arrived = 0
    points = 0
    while True:
        now = np.inf
        if num_running > 0:
            now = ends[0]
        if arrived < count and submit[arrived] < now:
            now = submit[arrived]
        if now > until or now == np.inf:
            break
        points += 1
        early = missed = False
        while num_running > 0 and ends[0] == now:
            job = ending[0]
            end = _stop(start[job], estimate[job])
            early |= end > now
            missed |= end < now  # and nothing may have been decided between
            remove_time(expected, expecting, num_running, end, job)
            num_running = pop_time(ends, ending, num_running)
            give(
                node, rows, classes, class_of[job], placement,
                promised_nodes, promised_gpus, slot[job], slot[job] + num_promised[job],
            )  # fmt: skip
        arrivals = arrived
        while arrived < count and submit[arrived] == now:
            num_waiting = insert_int(queue, 0, num_waiting, position[arrived])
            arrived += 1
        late = num_running > 0 and expected[0] <= now
        overrun = late or missed or was_late
        was_late = late
        while len(times) < size + num_running + 4 * num_waiting + 4:
            times, free, totals = grown(times, free, totals)
        if overrun or early or size == 0:
            # The profile anew, from what runs, and from the promises where they hold.
            size = 1
            times[0] = now
            totals[0] = 0
            for which in range(len(node)):
                free[0, which, 0] = node[which, FREE]
                free[0, which, 1] = node[which, FREE_CPUS]
                totals[0] += node[which, FREE]
            for index in range(num_running):
                job = expecting[index]
                end = expected[index]
                if end <= now:
                    end = np.nextafter(now, np.inf)
                cores = classes[class_of[job], CPUS] if placement == POOL else 0
                step, size = step_at(times, free, totals, size, end)
                change(
                    free, totals, step, size, promised_nodes, promised_gpus,
                    slot[job], slot[job] + num_promised[job], cores, 1,
                )  # fmt: skip
            for index in range(0 if overrun else num_waiting):
                job = order[queue[index]]
                if job < arrivals:
                    size = _hold(
                        times, free, totals, size, promised[job], estimate[job],
                        promised_nodes, promised_gpus, slot[job], num_promised[job],
                        classes[class_of[job], CPUS] if placement == POOL else 0, -1,
                    )  # fmt: skip
        else:
            step = 0
            while step + 1 < size and times[step + 1] <= now:
                step += 1
            for index in range(size - step if step > 0 else 0):
                times[index] = times[index + step]
                free[index] = free[index + step]
                totals[index] = totals[index + step]
            size -= step
            times[0] = now
        for turn in range(2):
            # First those that were promised before, then the new ones.
            if turn == 0 and not (early or overrun):
                continue
            for index in range(num_waiting):
                job = order[queue[index]]
                kind = class_of[job]
                is_new = job >= arrivals
                if not overrun and is_new != (turn == 1):
                    continue
                if overrun and turn == 1:
                    continue
                cores = classes[kind, CPUS] if placement == POOL else 0
                if not is_new and not overrun:
                    size = _hold(
                        times, free, totals, size, promised[job], estimate[job],
                        promised_nodes, promised_gpus, slot[job], num_promised[job], cores, 1,
                    )  # fmt: skip
                step, taken = earliest(
                    times, free, totals, size, spare_node, spare_rows, room, classes, kind,
                    placement, estimate[job], promised_nodes, promised_gpus, slot[job],
                )  # fmt: skip
                promised[job] = times[step]
                num_promised[job] = taken
                size = _hold(
                    times, free, totals, size, promised[job], estimate[job],
                    promised_nodes, promised_gpus, slot[job], taken, cores, -1,
                )  # fmt: skip
        write = 0
        for index in range(num_waiting):
            place = queue[index]
            job = order[place]
            if promised[job] > now:
                queue[write] = place
                write += 1
                continue
            begin = slot[job]
            take_there(
                node, rows, classes, class_of[job], placement,
                promised_nodes, promised_gpus, begin, begin + num_promised[job],
            )  # fmt: skip
            offset = offsets[segments]
            for entry in range(num_promised[job]):
                nodes[offset + entry] = promised_nodes[begin + entry]
                gpus[offset + entry] = promised_gpus[begin + entry]
            start[job] = now
            segment_job[segments] = job
            segments += 1
            offsets[segments] = offset + num_promised[job]
            end = _stop(now, estimate[job])
            insert_time(expected, expecting, num_running, end, job)
            num_running = push_time(ends, ending, num_running, now + duration[job], job)
        num_waiting = write
    used = offsets[segments]
    return (
        start, segment_job[:segments], offsets[: segments + 1], nodes[:used], gpus[:used], points,
        0,
    )  # fmt: skip


@njit(cache=True)
def _stop(begin, length):
    """Return when a job is expected to end; one of no length still ends after its start."""
    return max(begin + length, np.nextafter(begin, np.inf))


@njit(cache=True)
def _hold(
    times, free, totals, size, begin, length, nodes, gpus, offset, entries, cores, sign
):  # fmt: skip
    """Add ``sign`` times a promise to the profile; return the new size."""
    first, size = step_at(times, free, totals, size, begin)
    last, size = step_at(times, free, totals, size, _stop(begin, length))
    change(free, totals, first, last, nodes, gpus, offset, offset + entries, cores, sign)
    return size
