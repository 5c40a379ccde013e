"""What the kernels of preemptive policies keep of jobs and of their stays on GPUs."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

#: Per job, by arrival number (m,): first start, end, completion time while it runs, work left;
#: preemptions; its segment while it runs, else -1.
Progress = namedtuple(  # noqa: PYI024 - numba needs the untyped kind
    "Progress", "start end projected remaining preemptions segment_of"
)
#: The growing record of segments; see `Flight`. ``ends`` and ``ending`` are the heap of completions
#: (time, segment), stale ones included.
Record = namedtuple(  # noqa: PYI024 - numba needs the untyped kind
    "Record", "job start end offsets nodes gpus ends ending"
)


def fresh_progress(duration: np.ndarray) -> Progress:
    """Return the progress of jobs that have not begun; ``duration`` is Float array (m,), s."""
    count = len(duration)
    return Progress(
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.empty(count),
        duration.copy(),
        np.zeros(count, dtype=np.int64),
        np.full(count, -1, dtype=np.int64),
    )


def empty_record(segments: int, places: int) -> Record:
    """Return a record with room for so many segments and entries of their nodes."""
    return Record(
        np.empty(segments, dtype=np.int64),
        np.empty(segments),
        np.empty(segments),
        np.zeros(segments + 1, dtype=np.int64),
        np.empty(places, dtype=np.int32),
        np.empty(places, dtype=np.int64),
        np.empty(segments),
        np.empty(segments, dtype=np.int64),
    )


def larger_record(record: Record) -> Record:
    """Return the record with twice the room."""
    larger = empty_record(2 * len(record.job), 2 * len(record.nodes))
    for old, new in zip(record, larger, strict=True):
        new[: len(old)] = old
    return larger


def cut(record: Record, segments: int) -> Record:
    """Return the record without the room that was not used."""
    used = int(record.offsets[segments])
    return record._replace(
        job=record.job[:segments], start=record.start[:segments], end=record.end[:segments],
        offsets=record.offsets[: segments + 1], nodes=record.nodes[:used], gpus=record.gpus[:used],
    )  # fmt: skip
