"""The instances of the PAI trace as columns, and what they say together of their tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.traces.pai import hashing
from windtunnel.traces.pai.joins import STATUS, Alike, ByHash, alike, among, numbered
from windtunnel.traces.pai.spool import Codes, Growing, Numbers, Texts, as_floats, known

if TYPE_CHECKING:
    from windtunnel.traces.pai.parse import Parsed
    from windtunnel.traces.pai.spool import Coded, TextFile
    from windtunnel.traces.pai.store import Store

_ID = "id"
_TASK = ("job_name", "task_name")
#: Rows that are looked at at once where many columns come together.
_AT_ONCE = 2**16


@dataclass(frozen=True)
class Instances:
    """The instance table, in the file's order.

    Attributes:
        task: row of the first task of their two names, int32, shape (instances,); -1 = none.
        job_ids: for those of no task, what their task would be called.
        start: start, s; 0 and null = unknown.
        end: end, s; 0 and null = unknown.
        status: in the source's words.
        machine: where they ran.
        has_worker: whether they have a worker_name, bool, shape (instances,).
        names: column ``id``: worker_name, else inst_name, else the place in the file.
    """

    task: np.ndarray
    job_ids: pa.Array
    start: pa.Array
    end: pa.Array
    status: Coded
    machine: Coded
    has_worker: np.ndarray
    names: TextFile

    def __len__(self) -> int:
        """Return how many instances."""
        return len(self.task)

    def ids(self, rows: np.ndarray) -> pa.Array:
        """Return what some rows are called: worker, else instance, else place in the file."""
        return self.names.rows(_ID, rows)


def load_instances(store: Store, parsed: Parsed, keys: pa.Table) -> tuple[Instances, np.ndarray]:
    """Read the instance table and find the task of each row.

    Args:
        store: where the columns go.
        keys: ``job_name``, ``task_name`` and ``row`` of the tasks, each two names once.

    Returns:
        The instances; and the hashes of their ids (`Instances.ids`), uint64, shape (instances,).

    Raises:
        TraceError: the table is not as it should be, or memory or disk space ran out.
    """
    with store.errors_explained():
        names = Texts(store.path("instance.names"), (_ID,))
        times = [Numbers(store.path(f"instance.{name}")) for name in ("start_time", "end_time")]
    status, machine, task = Codes(), Codes(), _Tasks(keys)
    has_worker, hashes = Growing(np.bool_), Growing(np.uint64)
    with parsed.explained(), store.errors_explained():
        for batch in parsed.batches():
            ids = _ids(batch, parsed.rows - batch.num_rows)
            hashes.append(hashing.hashes(ids))
            names.append(pa.record_batch([ids], [_ID]))
            has_worker.append(known(batch["worker_name"]))
            times[0].append(batch["start_time"])
            times[1].append(batch["end_time"])
            status.append(batch["status"])
            machine.append(batch["machine"])
            task.append(batch)
    with store.errors_explained():
        instances = Instances(
            *task.found(),
            times[0].mapped(),
            times[1].mapped(),
            status.coded(),
            machine.coded(),
            has_worker.array(),
            names.close(),
        )
    pa.default_memory_pool().release_unused()
    return instances, hashes.array()


def _ids(batch: pa.RecordBatch, row: int) -> pa.Array:
    """Return what some rows are called (`Instances.ids`).

    Args:
        row: the place of the first in the file, from 0.
    """
    workers = batch["worker_name"]
    if not workers.null_count:
        return workers
    places = pa.array(np.arange(row + 1, row + batch.num_rows + 1)).cast(pa.string())
    places = pc.binary_join_element_wise("instance", places, " ")
    found: pa.Array = pc.coalesce(workers, batch["inst_name"], places)
    return found


class _Tasks:
    """The tasks that instances name, looked up some rows at a time."""

    def __init__(self, keys: pa.Table) -> None:
        names = [keys[name].combine_chunks() for name in _TASK]
        places = np.arange(len(keys), dtype=np.int32)
        self._places = ByHash(_hashes_of(names), places, lambda some: _taken(names, some))
        self._rows_of = np.append(keys["row"].to_numpy(), np.int32(-1))
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._task = Growing(np.int32)
        self._job_ids = [pa.array([], pa.string())]

    def append(self, batch: pa.RecordBatch) -> None:
        """Append rows; the batch may have other columns too."""
        self._waiting.append(batch.select(_TASK))
        self._rows += batch.num_rows
        if self._rows >= _AT_ONCE:
            self._look_up()

    def found(self) -> tuple[np.ndarray, pa.Array]:
        """Return ``task`` and ``job_ids`` of `Instances`."""
        self._look_up()
        return self._task.array(), pa.concat_arrays(self._job_ids)

    def _look_up(self) -> None:
        if not self._waiting:
            return
        names = [pa.concat_arrays([batch[name] for batch in self._waiting]) for name in _TASK]
        self._waiting, self._rows = [], 0
        task = self._named(names)
        self._task.append(task)
        alone = np.flatnonzero(task < 0)
        if len(alone):
            unnamed = (column.take(pa.array(alone)).fill_null("") for column in names)
            self._job_ids.append(pc.binary_join_element_wise(*unnamed, "/"))

    def _named(self, names: list[pa.Array]) -> np.ndarray:
        """Return the row of each two names, int32; -1 = none.

        Neighbours of the same names, as the instances of a task are, are looked up once.
        """
        count = len(names[0])
        if not count:
            return np.empty(0, np.int32)
        first = np.ones(count, bool)
        same = pc.and_(*(pc.equal(column.slice(1), column.slice(0, count - 1)) for column in names))
        first[1:] = ~pc.fill_null(same, False).to_numpy(zero_copy_only=False)
        heads = np.flatnonzero(first)
        if len(heads) < count:
            names = _taken(names, heads)
        places = self._places.found(_hashes_of(names), lambda some: _taken(names, some))
        return np.repeat(self._rows_of[places], np.diff(np.append(heads, count)))


def _hashes_of(names: list[pa.Array]) -> np.ndarray:
    """Return the hash of each two names."""
    return hashing.of_pairs(*(hashing.hashes(column) for column in names))


def _taken(names: list[pa.Array], places: np.ndarray) -> list[pa.Array]:
    return [column.take(pa.array(places)) for column in names]


@dataclass(frozen=True)
class Workers:
    """The instances by their workers.

    Attributes:
        counted: whether usage is counted for an instance, which is one a worker: bool, shape
            (instances,).
        left_out: instances of a worker that has another one that counts.
        renamed: instances whose id an earlier one has.
        new_ids: their numbered ids.
    """

    counted: np.ndarray
    left_out: int
    renamed: Alike
    new_ids: pa.Array


def workers(instances: Instances, hashes: np.ndarray) -> Workers:
    """Find the workers of several instances, and which of the instances counts.

    Instances are sorted by (status, start_time, end_time), each ascending with unknown values
    last, ties in the file's order; the last of each worker counts: the notebook's "dfw". So usage
    is counted with the try that went furthest in the alphabet (Failed, Running, Terminated,
    Waiting).
    """
    same = alike(None, hashes, instances.ids)
    renamed = same.repeats()

    def meets(names: pa.Array) -> bool:
        suspects = np.flatnonzero(among(hashes, np.sort(hashing.hashes(names))))
        return bool(pc.any(pc.is_in(instances.ids(suspects), value_set=names)).as_py())

    new_ids = pa.array([], pa.string())
    if len(renamed):
        new_ids = numbered(instances.ids(renamed.rows), renamed.nth, meets)
    counts = instances.has_worker.copy()
    losers = _losers(instances, same)
    counts[losers] = False
    return Workers(counts, len(losers), renamed, new_ids)


def _losers(instances: Instances, same: Alike) -> np.ndarray:
    """Return the rows whose worker has another row that counts."""
    named = instances.has_worker[same.rows]
    rows, groups = same.rows[named], same.first[named]
    # numpy sorts NaN last, as the notebook does what is unknown.
    times = [as_floats(column)[rows] for column in (instances.end, instances.start)]
    rank = np.append(ranks(instances.status.words), len(instances.status.words))
    order = np.lexsort([rows, *times, rank[instances.status.codes[rows]], groups])
    grouped = groups[order]
    losers: np.ndarray = rows[order][:-1][grouped[1:] == grouped[:-1]]
    return losers


def ranks(words: list[str]) -> np.ndarray:
    """Return the place of each word in the alphabet, int32, shape (words,)."""
    found = np.empty(len(words), np.int32)
    found[sorted(range(len(words)), key=words.__getitem__)] = np.arange(len(words))
    return found


@dataclass(frozen=True)
class TaskAggregates:
    """What the instances of each task say together ("dfia"); shape (tasks,) each.

    Attributes:
        first_start: earliest start > 0, s; NaN = unknown.
        last_end: latest end > 0, s; NaN = unknown.
        mean_run: mean of end - start over instances that have both, s; NaN = none has. Times of
            the release are whole seconds, so the order of adding up does not matter.
        last_status: place in the instances' status words of the greatest one (Waiting,
            Terminated, Running, Failed); -1 = none.
    """

    first_start: np.ndarray
    last_end: np.ndarray
    mean_run: np.ndarray
    last_status: np.ndarray


def aggregated_by_task(instances: Instances, tasks: int) -> TaskAggregates:
    """Add up the instances of each task."""
    # One more for the instances of no task, which is -1: the last one.
    first, last = np.full(tasks + 1, np.inf), np.full(tasks + 1, -np.inf)
    total, count = np.zeros(tasks + 1), np.zeros(tasks + 1, np.int32)
    rank = np.append(ranks(instances.status.words), np.int32(-1))
    status = np.full(tasks + 1, -1, np.int32)
    starts, ends = as_floats(instances.start), as_floats(instances.end)
    for begin in range(0, len(instances), _AT_ONCE):
        rows = slice(begin, begin + _AT_ONCE)
        # Instances of a task often stand together: what a run of them says is brought in at once.
        heads, task = _runs(instances.task[rows])
        start, end = starts[rows], ends[rows]
        began, ended = start > 0, end > 0
        both = began & ended
        runs = np.add.reduceat(both, heads, dtype=np.int32)
        ran = np.add.reduceat(np.where(both, end - start, 0.0), heads)
        np.minimum.at(first, task, np.minimum.reduceat(np.where(began, start, np.inf), heads))
        np.maximum.at(last, task, np.maximum.reduceat(np.where(ended, end, -np.inf), heads))
        np.add.at(total, task, ran)
        np.add.at(count, task, runs)
        ranked = rank[instances.status.codes[rows]]
        np.maximum.at(status, task, np.maximum.reduceat(ranked, heads))
    by_rank = np.append(np.argsort(rank[:-1]), -1).astype(np.int32)
    mean = np.divide(total, count, out=np.full(tasks + 1, np.nan), where=count > 0)
    first[np.isinf(first)] = np.nan
    last[np.isinf(last)] = np.nan
    return TaskAggregates(first[:-1], last[:-1], mean[:-1], by_rank[status[:-1]])


def _runs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where runs of equal values begin, int64, shape (runs,), and the value of each."""
    heads = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]]))
    return heads, values[heads]


def strays(instances: Instances, machines: pa.Array | None) -> list[tuple[int, str]]:
    """Return how many instances lack what, and in words.

    Args:
        machines: the names of the machine table; None where it is missing.
    """
    odd = _of_words(instances.status, [word not in STATUS for word in instances.status.words])
    start, end = as_floats(instances.start), as_floats(instances.end)
    words = f"instances have a status other than {', '.join(STATUS)}: it is read as unknown."
    counts = [
        (odd, words),
        (int((instances.task < 0).sum()), "instances have no task in the task table."),
        (
            int(((end < start) & (end > 0)).sum()),
            "instances end before they start; they stay as they are.",
        ),
    ]
    if machines is not None:
        known = set(machines.to_pylist())
        strange = _of_words(instances.machine, [m not in known for m in instances.machine.words])
        counts.append((strange, "instances name a machine without specification."))
    return counts


def _of_words(column: Coded, chosen: list[bool]) -> int:
    """Return how many rows have one of the chosen words."""
    return int(np.array([*chosen, False])[column.codes].sum())
