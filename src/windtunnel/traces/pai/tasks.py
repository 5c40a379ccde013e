"""The tasks of the PAI trace: its instances, with what was measured of them, to be asked.

Columns of text that few questions ask for: read when one does, in a second pass over the table.

To keep every text of 7.5 million instances would cost as much as all the rest that is kept of
them. A question that asks for such a column waits for that pass; the ones after it do not.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from windtunnel.companions import TASK_COLUMNS
from windtunnel.errors import TraceError
from windtunnel.traces.pai.joins import status_words
from windtunnel.traces.pai.parse import Parsed
from windtunnel.traces.pai.spool import Texts, index_of, looked_up, rows_of
from windtunnel.traces.pai.tables import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.traces.pai.instances import Instances, Workers
    from windtunnel.traces.pai.jobs import Named
    from windtunnel.traces.pai.store import Store
    from windtunnel.traces.pai.tables import Table
    from windtunnel.traces.pai.usage import Usage


class LateTexts:
    """Columns of a table that was read once without them.

    Args:
        path: the table's file, as it was at that time.
        table: which table it is.
        spool: a place for a new file, which holds the columns once they are read.
    """

    def __init__(self, path: Path, table: Table, spool: Path, names: tuple[str, ...]) -> None:
        self._path = path
        self._table = table
        self._spool = spool
        self._names = names
        self._was = _state(path)
        self._lock = threading.Lock()
        self._read: pa.Table | None = None

    def column(self, name: str) -> Callable[[pa.Array], pa.Array]:
        """Return what gives the column's texts at some rows: integers, null nowhere."""

        def texts(rows: pa.Array) -> pa.Array:
            return rows_of(self._columns()[name], rows.to_numpy())

        return texts

    def _columns(self) -> pa.Table:
        """Return the columns, read now if they have not been.

        Raises:
            TraceError: the file is no longer what it was.
        """
        # A database asks from several threads at once.
        with self._lock:
            if self._read is None:
                self._read = self._second_pass()
            return self._read

    def _second_pass(self) -> pa.Table:
        parsed = Parsed(self._path, self._table, only=self._names)
        texts = Texts(self._spool, self._names)
        with parsed.explained():
            for batch in parsed.batches():
                texts.append(batch)
        if _state(self._path) != self._was:
            raise TraceError(
                str(self._path),
                "the file that was opened",
                hint=f"It has changed since, and {', '.join(self._names)} are only read from it "
                "when a question asks for them: open the trace again.",
            )
        return texts.close().mapped()


def _state(path: Path) -> tuple[int, int, int, int]:
    """Return what differs between a file and another one, or a later state of it."""
    try:
        found = path.stat()
    except OSError as error:
        raise TraceError(str(path), "a file that is still there") from error
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


#: Columns of the instance table that are read when a question asks for them.
LATE = ("inst_name", "inst_id")
#: Sensor columns that have no place of their own among `TASK_COLUMNS`.
_SENSOR_EXTRAS = ("max_mem", "max_gpu_wrk_mem", "read", "write", "read_count", "write_count")


def tasks_of(  # noqa: PLR0917 - the tables that make it
    store: Store,
    instances: Instances,
    found: Workers,
    named: Named,
    usage: tuple[Usage, ...],
    machines: pa.Table,
    late: LateTexts,
) -> Any:
    """Return the tasks as a table of the database: `TASK_COLUMNS`, then the source's others.

    Nothing is joined or copied: a column is where it was read to, and each instance has its place
    in it. A query reads the columns that it asks for.

    Args:
        store: where the table lives.
        usage: what was measured: of the sensor and of the metric table.
        machines: the machine table, each machine once.
    """
    task, machine = index_of(instances.task), index_of(instances.machine.codes)
    columns = {
        "row": pa.array(np.arange(len(instances), dtype=np.int32)),
        "given_id": _given_ids(instances, found),
        "id": instances.names.mapped()["id"],
        "has_worker": None if instances.has_worker.all() else pa.array(instances.has_worker),
        "job_id": _job_ids(instances, named, task),
        "start_time": instances.start,
        "end_time": instances.end,
        "status": _status(instances),
        "node": looked_up(machine, pa.array(instances.machine.words, pa.string())),
        "node_gpu_type": looked_up(machine, _node_types(instances, machines)),
    }
    for name in ("plan_gpu", "plan_cpu", "plan_mem"):
        columns[name] = looked_up(task, named.tasks[name].combine_chunks())
    for measured in usage:
        row = index_of(measured.of)
        for name, values in measured.numbers.items():
            columns[name] = looked_up(row, values)
        for name, coded in measured.texts.items():
            codes = np.append(coded.codes, np.int32(-1))[measured.of]
            columns[name] = looked_up(index_of(codes), pa.array(coded.words, pa.string()))
    columns = {name: column for name, column in columns.items() if column is not None}
    i = store.table("instances", pa.table(columns))
    ours = {
        "task_id": i.given_id.coalesce(i.id) if "given_id" in columns else i.id,
        "gpu": i.gpu_name,
        "start_time": i.start_time.nullif(0),
        "end_time": i.end_time.nullif(0),
        "num_gpus": i.plan_gpu / 100,
        "num_cpus": i.plan_cpu / 100,
        "mem_gib": i.plan_mem,
        "gpus_used": i.gpu_wrk_util / 100,
        "cpus_used": i.cpu_usage / 100,
        "mem_used_gib": i.avg_mem,
        "gpu_mem_used_gib": i.avg_gpu_wrk_mem,
    }
    view = i.select(
        **{c.name: ours[c.name] if c.name in ours else i[c.name] for c in TASK_COLUMNS},
        **{name: store.texts(f"late_{name}", late.column(name))(i.row) for name in LATE},
        worker_name=i.has_worker.ifelse(i.id, None) if "has_worker" in columns else i.id,
        node_gpu_type=i.node_gpu_type,
        **{name: i[name] for name in (*_SENSOR_EXTRAS, *METRICS)},
    )
    return store.view("tasks", view)


def _given_ids(instances: Instances, found: Workers) -> pa.Array | None:
    """Return the ids that are not those of `Instances`; None = there are none."""
    if not len(found.renamed):
        return None
    places = np.full(len(instances), -1, np.int32)
    places[found.renamed.rows] = np.arange(len(found.renamed))
    return looked_up(index_of(places), found.new_ids)


def _job_ids(instances: Instances, named: Named, task: pa.Array) -> pa.Array:
    """Return the job of each instance, by the names it gives where no task has them."""
    alone = instances.task < 0
    if not alone.any():
        return looked_up(task, named.job_id)
    places = instances.task.copy()
    places[alone] = np.arange(len(instances.job_ids)) + len(named.job_id)
    return looked_up(index_of(places), pa.concat_arrays([named.job_id, instances.job_ids]))


def _status(instances: Instances) -> pa.Array:
    """Return how each instance ended, in the schema's words."""
    words = pa.array(status_words(instances.status.words), pa.string())
    return looked_up(index_of(instances.status.codes), words)


def _node_types(instances: Instances, machines: pa.Table) -> pa.Array:
    """Return the GPU type of each machine that the instances name."""
    pairs = zip(machines["machine"].to_pylist(), machines["gpu_type"].to_pylist(), strict=True)
    types = dict(pairs)
    return pa.array([types.get(word) for word in instances.machine.words], pa.string())
