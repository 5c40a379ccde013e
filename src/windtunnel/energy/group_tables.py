"""Tables of recurring groups: the Zeus artifact's file, or one made from any trace's jobs.

Columns: ``group``, ``dataset`` (string), ``start_time``, ``end_time`` (float64, s) and
``runtime_ratio`` (float64: a job's run time over the mean of all jobs of its dataset).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.checked import checked_count
from windtunnel.energy.readers import finite, named, refuse
from windtunnel.errors import SpecError, quote
from windtunnel.traces.tabular import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from windtunnel.energy.workload import Workload

#: The columns, in the artifact's order.
COLUMNS = ("group", "start_time", "end_time", "dataset", "runtime_ratio")
#: A mean of runtime ratios that is farther from 1 than this is reported.
_RATIO_TOLERANCE = 1e-6
_MAX_ROUNDS = 1000


@dataclass(frozen=True)
class GroupTable:
    """Jobs of recurring groups.

    Attributes:
        table: `COLUMNS`, each group's rows sorted by start.
        notes: what a reader of results must know.
    """

    table: pa.Table
    notes: tuple[str, ...] = ()

    @property
    def num_jobs(self) -> int:
        """Number of jobs."""
        return int(self.table.num_rows)

    @property
    def datasets(self) -> tuple[str, ...]:
        """What the groups train, sorted."""
        return tuple(sorted(pc.unique(self.table["dataset"]).to_pylist()))

    def groups(self) -> dict[tuple[str, str], list[tuple[float, float, float]]]:
        """Return (group, dataset) -> start, end, runtime ratio of each job, by first appearance."""
        found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
        rows = zip(*(self.table[name].to_pylist() for name in COLUMNS), strict=True)
        for group, start, end, dataset, ratio in rows:
            found.setdefault((group, dataset), []).append((start, end, ratio))
        return found


def read_groups(path: str | Path) -> GroupTable:
    """Read a group file.

    Args:
        path: CSV, plain or packed.

    Raises:
        TraceError: it cannot be read as such a table.
    """
    text = read_text(path)
    text.require(*COLUMNS)
    group, dataset = (named(text, column) for column in ("group", "dataset"))
    start = finite(text, "start_time", "a number of seconds")
    end = finite(text, "end_time", "a number of seconds")
    ratio = finite(text, "runtime_ratio", "a number > 0")
    refuse(text, "end_time", pc.less(end, start), "a time not before start_time")
    refuse(text, "runtime_ratio", pc.less_equal(ratio, 0), "a number > 0")
    order = np.argsort(np.asarray(start.to_numpy()), kind="stable")
    table = pa.table(dict(zip(COLUMNS, (group, start, end, dataset, ratio), strict=True)))
    moved = not bool(np.all(order == np.arange(len(order))))
    notes = ("Rows were sorted by start, ties in the file's order.",) * moved
    table = table.take(order) if moved else table
    return GroupTable(table, (*notes, *_ratio_notes(table)))


def groups_of_jobs(
    jobs: pa.Table, workloads: Mapping[str, Workload], *, min_jobs: int = 2
) -> GroupTable:
    """Make recurring groups from a trace's jobs: a template is a group, and trains one workload.

    Groups are clustered by their mean run time (k-means, as many clusters as workloads), and the
    clusters matched to the workloads in order of run time, as the paper did with Alibaba's trace
    (NSDI'23, section 6).

    Args:
        jobs: a jobs table; jobs without template, start or run time are left out.
        workloads: dataset -> workload; their order is that of the default's expected time.
        min_jobs: groups with fewer jobs do not recur and are left out.

    Raises:
        SpecError: too few groups, or too alike, for that many workloads.
    """
    start, lasted = (np.asarray(jobs[c].to_numpy(), float) for c in ("start_time", "duration"))
    names = jobs["template"]
    usable = np.isfinite(start) & (lasted > 0) & np.asarray(pc.is_valid(names))
    codes = names.filter(pa.array(usable)).combine_chunks().dictionary_encode()
    start, lasted = start[usable], lasted[usable]
    index = np.asarray(codes.indices)
    sizes = np.bincount(index, minlength=len(codes.dictionary))
    kept = sizes[index] >= min_jobs if len(index) else np.zeros(0, bool)
    notes = [f"{len(usable) - usable.sum():,} jobs without template, start or run time left out."]
    notes += [f"{len(kept) - kept.sum():,} jobs of groups with fewer than {min_jobs} left out."]
    start, lasted, index = start[kept], lasted[kept], index[kept]
    recurring = np.flatnonzero(sizes >= min_jobs)
    sums = np.bincount(index, weights=lasted, minlength=len(sizes))
    means = sums[recurring] / sizes[recurring]
    ordered = sorted(workloads, key=lambda name: typical_time(workloads[name]))
    place = np.zeros(len(sizes), int)
    place[recurring] = clusters(means, len(ordered))
    trained = place[index]
    ratio = lasted / (np.bincount(trained, lasted) / np.bincount(trained))[trained]
    order = np.argsort(start, kind="stable")
    table = pa.table(
        {
            "group": codes.dictionary.take(pa.array(index[order])),
            "start_time": start[order],
            "end_time": (start + lasted)[order],
            "dataset": pa.array([ordered[place] for place in trained[order]], pa.string()),
            "runtime_ratio": ratio[order],
        }
    )
    return GroupTable(table, tuple(note for note in notes if not note.startswith("0 ")))


def typical_time(workload: Workload) -> float:
    """Return the mean time of a run of the default batch size at the largest limit, s."""
    size = workload.default_batch_size
    epochs = np.fmin(workload.epochs[size], workload.job.max_epochs)  # NaN = ran to the end
    return float(np.mean(epochs) * workload.sweeps[size].epoch_time[0])


def clusters(values: np.ndarray, k: int) -> np.ndarray:
    """Return the cluster of each value by k-means on a line (Lloyd), clusters numbered ascending.

    Args:
        values: float64, shape (n,).
        k: how many clusters; their first centres are quantiles of the distinct values.

    Raises:
        SpecError: fewer than ``k`` distinct values.

    >>> clusters(np.array([1.0, 10.0, 2.0, 11.0]), 2).tolist()
    [0, 1, 0, 1]
    """
    distinct = np.unique(values)
    if len(distinct) < k:
        raise SpecError(
            "groups", f"found {len(distinct)} of different mean run time; expected at least {k}."
        )
    centres = np.quantile(distinct, (np.arange(k) + 0.5) / k)
    for _ in range(_MAX_ROUNDS):
        nearest = np.searchsorted((centres[1:] + centres[:-1]) / 2, values)
        counts = np.bincount(nearest, minlength=k)
        sums = np.bincount(nearest, weights=values, minlength=k)
        moved = np.where(counts > 0, sums / np.maximum(counts, 1), centres)
        if np.array_equal(moved, centres):
            break
        centres = moved
    return nearest


def synthetic_groups(
    workloads: Mapping[str, Workload], *, groups: int = 12, jobs: int = 40, seed: int = 0
) -> GroupTable:
    """Make recurring groups without any trace: lognormal gaps, run times and ratios.

    Args:
        workloads: dataset -> workload; groups train them in turn.
        groups: number of groups.
        jobs: jobs a group.
        seed: of everything random.

    Raises:
        SpecError: a number below 1.
    """
    for what, number in (("groups", groups), ("jobs", jobs)):
        checked_count(what, number)
    rng = np.random.default_rng(seed)
    names = sorted(workloads)
    columns: dict[str, list[object]] = {column: [] for column in COLUMNS}
    for number in range(groups):
        dataset = names[number % len(names)]
        typical = typical_time(workloads[dataset])
        lasted = typical * rng.lognormal(-0.125, 0.5, jobs)
        start = np.cumsum(rng.lognormal(np.log(1.5 * typical), 1.0, jobs))
        columns["group"] += [f"group-{number + 1}"] * jobs
        columns["dataset"] += [dataset] * jobs
        columns["start_time"] += start.tolist()
        columns["end_time"] += (start + lasted).tolist()
        columns["runtime_ratio"] += lasted.tolist()
    ratios = np.array(columns["runtime_ratio"], float)
    trained = np.array(columns["dataset"])
    for dataset in names:
        mine = trained == dataset
        if mine.any():
            ratios[mine] /= ratios[mine].mean()
    return GroupTable(pa.table({**columns, "runtime_ratio": ratios}))


def _ratio_notes(table: pa.Table) -> Sequence[str]:
    means = table.group_by("dataset").aggregate([("runtime_ratio", "mean")])
    far = [
        f"{quote(row['dataset'])} {row['runtime_ratio_mean']:.6g}"
        for row in means.sort_by("dataset").to_pylist()
        if abs(row["runtime_ratio_mean"] - 1) > _RATIO_TOLERANCE
    ]
    return (f"Mean runtime ratios that are not 1: {', '.join(far)}.",) if far else ()
