"""Block bootstraps of a log: its weeks, or other blocks, drawn anew and put behind each other.

What depends on each other within a block stays together (Kuensch, *Annals of Statistics* 17, 1989):
bursts, days, users who resubmit. What hangs on the block before is lost at its begin.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

#: Columns of times, which move with their block, and of names of jobs, which tell it.
_TIMES = ("submit_time", "eligible_time", "deadline", "start_time", "end_time")
_NAMES = ("job_id", "array_id")


def drawn_blocks(jobs: pa.Table, *, number: int, seed: int) -> pa.Table:
    """Return as many blocks as a log has, drawn with replacement.

    Args:
        jobs: jobs table, all of whose submissions are known.
        number: of blocks of equal length, from the first submission to the last.
        seed: of the draws.

    Returns:
        The jobs by place of their block, as submitted within it; ids begin with that place
        (``3/job-17``), and what depended on other jobs no longer does.

    >>> jobs = pa.table({"job_id": ["a", "b"], "submit_time": [5.0, 15.0]})
    >>> drawn_blocks(jobs, number=2, seed=3).to_pydict()
    {'job_id': ['0/b', '1/a'], 'submit_time': [10.0, 10.0]}
    """
    submit = np.asarray(jobs["submit_time"].to_numpy(), dtype=np.float64)
    first = submit.min()
    length = (submit.max() - first) / number
    if length > 0:
        block_of = np.minimum((submit - first) // length, number - 1).astype(np.int64)
    else:
        block_of = np.zeros(len(submit), dtype=np.int64)
    drawn = np.random.default_rng(seed).integers(0, number, number)
    rows = [np.flatnonzero(block_of == block) for block in drawn]
    place = np.repeat(np.arange(number), [len(some) for some in rows])
    shift = (place - np.repeat(drawn, [len(some) for some in rows])) * length
    taken = jobs.take(pa.array(np.concatenate(rows)))
    prefix = pc.cast(pa.array(place), pa.string())
    for at, name in enumerate(taken.column_names):
        column, field = taken.column(at), taken.schema.field(at)
        if name in _TIMES:
            moved = pc.add(pc.cast(column, pa.float64()), pa.array(shift))
            taken = taken.set_column(at, field, pc.cast(moved, field.type, safe=False))
        elif name in _NAMES:
            taken = taken.set_column(at, field, pc.binary_join_element_wise(prefix, column, "/"))
        elif name == "depends_on":
            taken = taken.set_column(at, field, pa.nulls(len(taken), field.type))
    return taken
