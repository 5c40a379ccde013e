"""Groups of a run's jobs, and step functions a group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.errors import SpecError
from windtunnel.sim.metrics import named_groups, size_classes

if TYPE_CHECKING:
    from windtunnel.sim.flown import Flown

#: The grouping by number of GPUs; every other one is a column of text.
SIZE = "size"


def job_groups(outcome: Flown, by: str) -> tuple[np.ndarray, list[str]]:
    """Return each job's group.

    Args:
        outcome: the run.
        by: ``size`` (GPUs, in `windtunnel.sim.metrics.size_classes`), or a column of text of the
            jobs table: ``user``, ``vc``, ``workload`` ...

    Returns:
        Int array (n,) of indices into the labels, and the labels: sizes in order of size, classes
        without jobs included; names in alphabetical order, jobs without a name under `NONE`.

    Raises:
        SpecError: there is no such grouping.
    """
    if by == SIZE:
        return size_classes(outcome.num_gpus)
    columns = outcome.jobs.schema
    texts = [f.name for f in columns if pa.types.is_string(f.type) and f.name != "job_id"]
    if by not in texts:
        raise SpecError.unknown("by", by, (SIZE, *texts))
    return named_groups(outcome.jobs[by])


def grouped_steps(
    codes: np.ndarray, times: np.ndarray, *deltas: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return the step functions that ``deltas`` at ``times`` add up to, group by group.

    Args:
        codes: Int array of shape (m,), group of each change.
        times: Float array of shape (m,), s, any order.
        deltas: Float arrays of shape (m,) of whole numbers: change of each curve at each time.

    Returns:
        Group and time of each step, shape (k,), groups in order and times ascending within each;
        then each curve's value from that time on, shape (k,). Every group has a step at its first
        time, and one at each later time at which a curve changes.
    """
    order = np.lexsort((times, codes))
    group, time = codes[order], times[order]
    begins = np.append(True, group[1:] != group[:-1])[: len(group)]
    first = np.flatnonzero(begins)
    lengths = np.diff(np.append(first, len(group)))
    last = np.append((group[1:] != group[:-1]) | (time[1:] != time[:-1]), True)[: len(group)]
    curves = []
    for delta in deltas:
        level = np.cumsum(delta[order])
        before = level[first] - delta[order][first]
        curves.append((level - np.repeat(before, lengths))[last])
    group, time = group[last], time[last]
    changes = np.append(True, group[1:] != group[:-1])[: len(group)]
    for curve in curves:
        changes[1:] |= curve[1:] != curve[:-1]
    return (group[changes], time[changes], *(curve[changes] for curve in curves))


def labelled(codes: np.ndarray, labels: list[str], unknown: np.ndarray | None = None) -> pa.Array:
    """Return the labels of group indices as text, null where ``unknown``."""
    indices = pa.array(codes.astype(np.int32), mask=unknown)
    return pa.DictionaryArray.from_arrays(indices, pa.array(labels, pa.string())).cast(pa.string())
