"""Alibaba PAI v2020, the raw trace: a folder of seven tables without header lines.

Weng et al., "MLaaS in the Wild", NSDI'22; alibaba/clusterdata ``cluster-trace-gpu-v2020``. A job
of PAI (job table) has tasks (task table), a task has equal instances that are scheduled together
(instance table); what an instance used stands in the sensor table under its worker, what the job
does in the group tag table. Times are seconds minus a constant: read in Asia/Shanghai, hour and
weekday are right and the date is not. A time of 0 is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windtunnel.errors import TraceError
from windtunnel.schema import conform
from windtunnel.traces.pai.instances import aggregated_by_task, load_instances, strays, workers
from windtunnel.traces.pai.jobs import consistent, gaps, jobs_of, links_of, named_tasks, repeats_of
from windtunnel.traces.pai.nodes import cluster_of, nodes_of
from windtunnel.traces.pai.parse import Parsed
from windtunnel.traces.pai.store import Store, checked_memory
from windtunnel.traces.pai.tables import (
    ENDINGS,
    GROUP,
    INSTANCE,
    JOB,
    MACHINE,
    METRIC,
    SENSOR,
    TABLES,
    TASK,
    check_header_file,
    find,
    is_folder_of_tables,
    is_there,
)
from windtunnel.traces.pai.tasks import LATE, LateTexts, tasks_of
from windtunnel.traces.pai.usage import ByWorker, load_usage
from windtunnel.traces.readers import reader
from windtunnel.traces.source import short_name, source_name
from windtunnel.traces.trace import Trace, TraceMetadata
from windtunnel.traces.wallclock import iso, zone_info

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.traces.pai.instances import Instances, Workers
    from windtunnel.traces.pai.jobs import Links, Named
    from windtunnel.traces.pai.tables import Table
    from windtunnel.traces.pai.usage import Usage

ZONE = "Asia/Shanghai"
LICENCE = "CC BY 4.0 (alibaba/clusterdata, cluster-trace-gpu-v2020; cite NSDI'22)"
_ABOUT = (
    "A job is a task of PAI: a gang of inst_num equal instances, which starts with the first.",
    "The duration of a job is the mean run time of its instances.",
    "Times are the source's, less an unknown constant: hour and weekday are right, the date not.",
    "gpu_type is the group tag table's constraint; what a task got is gpu_type_assigned.",
)


#: Tables that others refer to, and by which of their columns.
KEYS = {JOB: "job_name", GROUP: "inst_id", MACHINE: "machine"}


@reader(
    "pai",
    extensions=tuple(table.name + e for table in TABLES for e in (".csv", ".tar")),
    sniff_folder=is_folder_of_tables,
)
def read_pai(path: str | Path, *, zone: str = ZONE, memory: str = "768MiB") -> Trace:
    """Read the folder of the seven tables.

    A table is ``<table>.csv``, ``.csv.gz`` or the released archive ``<table>.tar.gz``; a header
    line and a file ``<table>.header`` may be there and must then name the released columns. Only
    the task table is indispensable; the notes name each other one that is missing, with what
    cannot be had without it.

    ``jobs`` has one row a task of PAI: ``job_id`` is ``job_name/task_name``, numbered (``#2``)
    where it stands twice; ``num_gpus``, ``num_cpus`` and ``mem_gib`` are those of all ``inst_num``
    instances; ``template`` is the group, else the user; ``status`` is the task's, else the
    greatest word among its instances. ``start_time`` and ``end_time`` that contradict each other
    or the submission are unknown, and counted in the notes. Behind the schema's columns:
    ``runtime`` (task end - task start, s), ``wait_time`` (first instance's start - task start, s),
    ``plan_cpu`` and ``plan_gpu`` (hundredths of a core and of a GPU, per instance), ``plan_mem``
    (GB, per instance), ``gpu_type_assigned``, ``pai_job`` (the job's name), ``inst_id`` (the
    job's), and ``instance_start``, ``instance_end``, ``task_end`` (s) and ``source_status`` as in
    the source.

    ``tasks`` has one row an instance, as an Ibis table over files in a temporary folder (about a
    third of the size of the tables) that is removed with the trace, in no order. ``task_id`` is
    the worker's name, which the other tables refer to (else the instance's), numbered where it
    stands twice. What was measured of a worker stands with one of its instances
    (`windtunnel.traces.pai.instances.workers`). Behind its columns: ``inst_name`` and ``inst_id``
    (both read when a question asks for them, in a second pass over the instance table, which must
    be as it was), ``worker_name``, ``node_gpu_type``, ``max_mem``, ``max_gpu_wrk_mem`` (GB),
    ``read``, ``write`` (bytes), ``read_count``, ``write_count``, and the ``machine_*`` means over
    the instance's life.

    Args:
        path: the folder.
        zone: IANA zone in which hour and weekday are right.
        memory: what the database may use to answer questions about ``tasks`` (``800MiB``,
            ``8GiB``). Quantiles of all tasks at once need the most; a question that needs more
            fails with DuckDB's OutOfMemoryException.

    Raises:
        TraceError: no such folder, no task table, or a table is not as it should be; names file,
            line and column.
        SchemaError: rules of the schema are broken.
        SpecError: no such zone, or no such amount of memory.
    """
    zone_info(zone)
    checked_memory(memory)
    tables = _Tables(_folder(path))
    store = tables.store
    named = named_tasks(tables.load(TASK))
    keyed = {table: tables.keyed(table, key) for table, key in KEYS.items()}
    machines = keyed[MACHINE].firsts()
    late = None
    if INSTANCE in tables.read:
        late = LateTexts(tables.read[INSTANCE], INSTANCE, store.path("instance.late"), LATE)
    instances, found, usage, usage_notes = _instances(tables, named)
    links = links_of(named.tasks, keyed[JOB].rows, keyed[GROUP].rows)
    jobs, job_notes = _jobs(tables, named, keyed, links, instances)
    nodes = nodes_of(machines) if MACHINE in tables.read else None
    name = short_name(Path(path).resolve())
    cluster: ClusterSpec | None = None
    cluster_notes: tuple[str, ...] = ()
    if nodes is not None:
        cluster, cluster_notes = cluster_of(nodes, name, str(tables.read[MACHINE]))
    notes = (
        *_ABOUT,
        *tables.notes(),
        *job_notes,
        *_numbered(named.renumbered),
        *_unmatched(tables, keyed, links, instances),
        *usage_notes,
        *cluster_notes,
    )
    del keyed, links  # long, and of no more use
    pa.default_memory_pool().release_unused()
    tasks = None
    if late is not None:
        tasks = tasks_of(store, instances, found, named, usage, machines, late)
    store.open_for_questions(memory)
    metadata = TraceMetadata(
        name=name,
        source=source_name(path),
        licence=LICENCE,
        epoch=iso(0),
        zone=zone,
        rows_read=jobs.num_rows,
        notes=notes,
    )
    return Trace(jobs, metadata, cluster=cluster, nodes=nodes, tasks=tasks)


def _folder(path: str | Path) -> Path:
    """Return the folder of the tables."""
    folder = Path(path)
    try:
        names = [entry.name for entry in folder.iterdir()]
    except NotADirectoryError as error:
        raise TraceError(
            str(path),
            "the folder of the PAI tables",
            hint=f"It is one file: open its folder, {folder.parent}.",
        ) from error
    except FileNotFoundError as error:
        raise TraceError(str(path), "a folder that exists") from error
    except (OSError, ValueError) as error:
        raise TraceError(
            str(path), "a folder that can be read", hint=f"The system says: {error}."
        ) from error
    if not is_there(TASK, names):
        wanted = " or ".join(TASK.name + ending for ending in ENDINGS)
        raise TraceError(str(path), f"a folder with {wanted} in it")
    return folder


class _Tables:
    """The tables of a folder, loaded one by one.

    Attributes:
        store: the database they are loaded into.
        read: table -> file, of those that are there.
        parsed: table -> how it was parsed.
    """

    def __init__(self, folder: Path) -> None:
        self.read: dict[Table, Path] = {}
        self.parsed: dict[Table, Parsed] = {}
        self._notes: list[str] = []
        for table in TABLES:
            check_header_file(folder, table)
            found, notes = find(folder, table)
            self._notes += notes
            if found is not None:
                self.read[table] = found
        self.store = Store(str(folder))

    def parse(self, table: Table) -> Parsed:
        """Return the rows of a table, not yet read; none where the folder lacks it."""
        self.parsed[table] = Parsed(self.read.get(table), table)
        return self.parsed[table]

    def load(self, table: Table) -> pa.Table:
        """Return a table, an empty one where the folder lacks it.

        Raises:
            TraceError: the table is not as it should be.
        """
        return self.parse(table).table()

    def keyed(self, table: Table, key: str) -> _Keyed:
        """Return a table whose key should be unique.

        Raises:
            TraceError: the table is not as it should be.
        """
        rows = self.load(table)
        return _Keyed(rows, repeats_of(rows[key].combine_chunks()).rows)

    def notes(self) -> tuple[str, ...]:
        """Return what was read, and what is missing."""
        counts = ", ".join(f"{t.name} {self.parsed[t].rows:,}" for t in TABLES if t in self.read)
        missing = (
            f"There is no {t.name}: without it, no {t.without}."
            for t in TABLES
            if t not in self.read
        )
        return (f"Rows read: {counts}.", *missing, *self._notes)


@dataclass(frozen=True)
class _Keyed:
    """A table whose key should be unique.

    Attributes:
        rows: all its rows.
        repeats: the rows whose key an earlier one has, ascending.
    """

    rows: pa.Table
    repeats: np.ndarray

    def firsts(self) -> pa.Table:
        """Return the table without the rows that repeat a key."""
        return self.rows.take(pa.array(np.delete(np.arange(len(self.rows)), self.repeats)))

    def unused(self, used: np.ndarray) -> int:
        """Return how many rows, repeats apart, are none of ``used``, where -1 is no row."""
        idle = np.ones(len(self.rows), bool)
        idle[used[used >= 0]] = False
        return int(idle.sum()) - len(self.repeats)


def _jobs(
    tables: _Tables,
    named: Named,
    keyed: dict[Table, _Keyed],
    links: Links,
    instances: Instances,
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the jobs table and the notes that count what it lacks.

    Raises:
        SchemaError: rules of the schema are broken.
    """
    by_task = aggregated_by_task(instances, len(named.tasks))
    words = instances.status.words
    wide, rows = jobs_of(named, keyed[JOB].rows, keyed[GROUP].rows, links, by_task, words)
    wide, contradictions = consistent(wide)
    jobs = conform(
        wide,
        source=str(tables.read[TASK]),
        lines=np.asarray(tables.parsed[TASK].lines())[rows],
        ids_unique=True,
    )
    notes = (*gaps(jobs), *contradictions)
    if bool(np.any(rows[1:] < rows[:-1])):
        notes += ("Tasks were sorted by submission, ties in the file's order.",)
    return jobs, notes


def _instances(
    tables: _Tables, named: Named
) -> tuple[Instances, Workers, tuple[Usage, ...], tuple[str, ...]]:
    """Load instances and measurements, give each of these to one of those, and note the rest."""
    store = tables.store
    instances, hashes = load_instances(store, tables.parse(INSTANCE), named.keys())
    found = workers(instances, hashes)
    shared = (
        f"{found.left_out:,} instances share their worker with another one, which counts for "
        "what was measured: the last by status, start and end."
    )
    notes = (shared,) * bool(found.left_out)
    measured = {SENSOR, METRIC} & tables.read.keys()
    counted = found.counted if measured else np.zeros(len(instances), bool)
    by_worker = ByWorker.of(instances, hashes, counted)
    usage: tuple[Usage, ...] = ()
    for table in (SENSOR, METRIC):
        given = load_usage(store, tables.parse(table), table.short, by_worker)
        if given.repeats:
            notes += (f"{given.repeats:,} rows of {table.name} repeat a worker: its first counts.",)
        if given.strays:
            notes += (f"{given.strays:,} rows of {table.name} belong to no instance.",)
        usage += (given,)
    return instances, found, usage, notes


def _numbered(count: int) -> tuple[str, ...]:
    note = (
        f"{count:,} tasks have the names of an earlier one: their ids are numbered. Instances "
        "cannot tell such tasks apart: they count for each of them, and name the first."
    )
    return (note,) * bool(count)


def _unmatched(
    tables: _Tables, keyed: dict[Table, _Keyed], links: Links, instances: Instances
) -> tuple[str, ...]:
    """Return notes that count rows of the keyed tables that repeat a key, or match nothing."""
    there = tables.read
    counts = [
        (
            len(found.repeats),
            f"rows of {table.name} repeat the key of an earlier one, which counts.",
        )
        for table, found in keyed.items()
    ]
    if JOB in there:
        counts += [
            (int((links.job < 0).sum()), "tasks have no row in the job table."),
            (keyed[JOB].unused(links.job), "rows of the job table have no task."),
        ]
    if {JOB, GROUP} <= there.keys():
        of_jobs = np.delete(links.group, keyed[JOB].repeats)
        counts.append(
            (keyed[GROUP].unused(of_jobs), "rows of the group tag table belong to no job.")
        )
    if INSTANCE in there:
        machines = keyed[MACHINE].rows["machine"] if MACHINE in there else None
        counts += strays(instances, machines)
    return tuple(f"{number:,} {text}" for number, text in counts if number)
