"""The kernel for conservative backfilling: twin of `windtunnel.sim.backfill.ConservativeQueue`."""

from __future__ import annotations

import numpy as np
from numba import njit

from windtunnel.sim.compiled.heaps import pop_time, push_time
from windtunnel.sim.compiled.profile import (
    FIRST_STEPS,
    begin,
    change,
    earliest,
    empty_profile,
    forget,
    give_back,
    grown,
    step_at,
    take_promised,
)
from windtunnel.sim.compiled.slowed.company import settle
from windtunnel.sim.compiled.slowed.ledger import END, POINTS
from windtunnel.sim.compiled.slowed.stays import begin as begin_stay
from windtunnel.sim.compiled.slowed.stays import halt
from windtunnel.sim.compiled.sorted_lists import insert_int, insert_time, remove_time

__all__ = ["empty_profile", "fly"]


@njit(cache=True)
def fly(
    submit, duration, estimate, position, order, class_of, slot, node, rows, classes, placement,
    kept, first_free, first_books, slowed, until,
):  # fmt: skip
    """Fly m jobs; see `windtunnel.sim.compiled.run` for the arguments.

    ``slot`` (m + 1,) says where each job's promised nodes are kept; ``first_free`` and
    ``first_books`` are an empty profile (`windtunnel.sim.compiled.profile.empty_profile`).
    ``slowed`` is the ledger of a run with slow-downs, which is its result then, or None: numba
    compiles the two apart.

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
    if slowed is not None:
        nodes, gpus, ends, ending = slowed.nodes, slowed.gpus, slowed.ends, slowed.ending
    expected, expecting = np.empty(count), np.empty(count, dtype=np.int64)
    num_running = 0
    queue = np.empty(count, dtype=np.int64)
    num_waiting = 0
    promised = np.full(count, np.nan)
    promised_nodes = np.empty(slot[count], dtype=np.int32)
    promised_gpus = np.empty(slot[count], dtype=np.int64)
    num_promised = np.zeros(count, dtype=np.int64)
    times, place = np.empty(FIRST_STEPS), np.arange(FIRST_STEPS)
    free, totals, books = first_free, np.empty(FIRST_STEPS, dtype=np.int64), first_books
    size = 0
    spare_node, spare_rows = node.copy(), rows[:kept].copy()
    was_late = False
    alarm = np.inf  # the next promised start, while nobody runs on past an expected end
    arrived = 0
    points = 0
    now = 0.0
    while True:
        if slowed is not None:
            settle(slowed, now)
        now = np.inf
        if num_running > 0:
            now = ends[0]
        if arrived < count and submit[arrived] < now:
            now = submit[arrived]
        now = min(now, alarm)
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
            if slowed is None:
                num_running = pop_time(ends, ending, num_running)
            else:
                slowed.work[job, END] = now
                halt(slowed, job, now)
                num_running -= 1
            give_back(
                first_books, node, rows, classes, class_of[job], placement,
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
            times, place, free, totals, books = grown(times, place, free, totals, books)
        if overrun or early or size == 0:
            # The profile anew, from what runs, and from the promises where they hold.
            size = 1
            begin(times, place, free, totals, books, now, node, rows)
            for index in range(num_running):
                job = expecting[index]
                end = expected[index]
                if end <= now:
                    end = np.nextafter(now, np.inf)
                step, size = step_at(times, place, free, totals, books, size, end)
                change(
                    place, free, totals, books, spare_rows, step, size, classes, class_of[job],
                    placement, promised_nodes, promised_gpus,
                    slot[job], slot[job] + num_promised[job], 1,
                )  # fmt: skip
            for index in range(0 if overrun else num_waiting):
                job = order[queue[index]]
                if job < arrivals:
                    size = _hold(
                        times, place, free, totals, books, spare_rows, size, promised[job],
                        estimate[job], classes, class_of[job], placement,
                        promised_nodes, promised_gpus, slot[job], num_promised[job], -1,
                    )  # fmt: skip
        else:
            size = forget(times, place, size, now)
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
                if not is_new and not overrun:
                    size = _hold(
                        times, place, free, totals, books, spare_rows, size, promised[job],
                        estimate[job], classes, kind, placement,
                        promised_nodes, promised_gpus, slot[job], num_promised[job], 1,
                    )  # fmt: skip
                step, taken = earliest(
                    times, place, free, totals, books, size, spare_node, spare_rows, classes, kind,
                    placement, estimate[job], promised_nodes, promised_gpus, slot[job],
                )  # fmt: skip
                promised[job] = times[step]
                num_promised[job] = taken
                size = _hold(
                    times, place, free, totals, books, spare_rows, size, promised[job],
                    estimate[job], classes, kind, placement,
                    promised_nodes, promised_gpus, slot[job], taken, -1,
                )  # fmt: skip
        write = 0
        alarm = np.inf
        for index in range(num_waiting):
            job = order[queue[index]]
            if promised[job] > now:
                if not late:
                    alarm = min(alarm, promised[job])
                queue[write] = queue[index]
                write += 1
                continue
            entries = slot[job]
            take_promised(
                first_books, node, rows, classes, class_of[job], placement,
                promised_nodes, promised_gpus, entries, entries + num_promised[job],
            )  # fmt: skip
            offset = offsets[segments]
            for entry in range(num_promised[job]):
                nodes[offset + entry] = promised_nodes[entries + entry]
                gpus[offset + entry] = promised_gpus[entries + entry]
            start[job] = now
            segment_job[segments] = job
            segments += 1
            offsets[segments] = offset + num_promised[job]
            end = _stop(now, estimate[job])
            insert_time(expected, expecting, num_running, end, job)
            if slowed is None:
                num_running = push_time(ends, ending, num_running, now + duration[job], job)
            else:
                begin_stay(slowed, job, now, num_promised[job], 0.0)
                num_running += 1
        num_waiting = write
    if slowed is not None:
        slowed.count[POINTS] = points
    used = offsets[segments]
    return (
        start, segment_job[:segments], offsets[: segments + 1], nodes[:used], gpus[:used], points,
        0,
    )  # fmt: skip


@njit(cache=True)
def _stop(start, length):
    """Return when a job is expected to end; one of no length still ends after its start."""
    return max(start + length, np.nextafter(start, np.inf))


@njit(cache=True)
def _hold(
    times, place, free, totals, books, rows, size, start, length, classes, kind, placement,
    nodes, gpus, offset, entries, sign,
):  # fmt: skip
    """Lift (1) a promise or make it (-1) in the profile; return the new size."""
    first, size = step_at(times, place, free, totals, books, size, start)
    last, size = step_at(times, place, free, totals, books, size, _stop(start, length))
    change(
        place, free, totals, books, rows, first, last, classes, kind, placement,
        nodes, gpus, offset, offset + entries, sign,
    )  # fmt: skip
    return size
