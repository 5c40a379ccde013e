"""The seven tables of the PAI v2020 release: their columns, what a cell may hold, where they lie.

Weng et al., "MLaaS in the Wild", NSDI'22; alibaba/clusterdata ``cluster-trace-gpu-v2020``. The
tables have no header line; their columns stand in ``<table>.header`` and in the README there.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import TraceError, quote
from windtunnel.traces.source import read_bytes

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

_MAX_GANG = 2**31 - 1
#: The bits of infinity, as a whole number; those of NaN are above.
_INFINITY = int(np.float64(np.inf).view(np.int64))


@dataclass(frozen=True)
class Rule:
    """What the cells of a column may hold.

    Attributes:
        what: in words, for messages.
        number: it is a number; otherwise text.
        required: it may not be empty.
        low: smallest value; None = any.
        above: it must be larger than ``low``, not only as large.
        whole: it has no fraction (and is at most 2^31 - 1).
    """

    what: str
    number: bool = True
    required: bool = False
    low: float | None = None
    above: bool = False
    whole: bool = False

    def kept(self, values: np.ndarray) -> bool:
        """Return whether all of some numbers keep the rule.

        Args:
            values: float64, shape (rows,), all known.
        """
        if self.low == 0 and not (self.above or self.whole) and len(values):
            # Of numbers >= 0 the bits are in the same order; a sign, infinity and NaN stand out.
            bits = values.view(np.int64)
            return bool(bits.min() >= 0 and bits.max() < _INFINITY)
        return not self.broken(values).any()

    def broken(self, values: np.ndarray) -> np.ndarray:
        """Return which numbers break the rule, bool, shape (rows,); unknown values are left out.

        Args:
            values: float64, shape (rows,), all known.
        """
        bad: np.ndarray = ~np.isfinite(values)
        if self.low is not None:
            low = values <= self.low if self.above else values < self.low
            bad |= low | np.signbit(values)  # minus zero is a sign of a wrong computation
        if self.whole:
            bad |= (values != np.trunc(values)) | (values > _MAX_GANG)
        return bad


_RULES = {
    "text": Rule("text", number=False),
    "name": Rule("a name", number=False, required=True),
    "seconds": Rule("a number of seconds >= 0 (0 or empty = unknown)", low=0),
    "amount": Rule("a number >= 0, or an empty cell", low=0),
    "gang": Rule("a whole number of instances >= 0", low=0, whole=True),
    "number": Rule("a finite number, or an empty cell"),
    "gpus": Rule("a whole number of GPUs >= 0", required=True, low=0, whole=True),
    "capacity": Rule("a number > 0, or an empty cell", low=0, above=True),
}


@dataclass(frozen=True, eq=False)
class Table:
    """One table of the release.

    Attributes:
        name: its name there, without an ending.
        short: what it is called in the database.
        columns: column -> rule, in the file's order.
        unread: columns that are checked and then left out, as other tables tell the same.
        without: what cannot be had where the table is missing.
    """

    name: str
    short: str
    columns: dict[str, Rule]
    unread: frozenset[str] = frozenset()
    without: str = ""


def _rules(**rules: str) -> dict[str, Rule]:
    return {name: _RULES[rule] for name, rule in rules.items()}


_LIFE = {"status": "text", "start_time": "seconds", "end_time": "seconds"}
SENSORS = (
    *("cpu_usage", "gpu_wrk_util", "avg_mem", "max_mem", "avg_gpu_wrk_mem", "max_gpu_wrk_mem"),
    *("read", "write", "read_count", "write_count"),
)
METRICS = (
    *("machine_cpu_iowait", "machine_cpu_kernel", "machine_cpu_usr", "machine_gpu"),
    *("machine_load_1", "machine_net_receive", "machine_num_worker", "machine_cpu"),
)
TASK = Table(
    "pai_task_table",
    "task",
    _rules(
        job_name="name", task_name="name", inst_num="gang", **_LIFE, plan_cpu="amount",
        plan_mem="amount", plan_gpu="amount", gpu_type="text",
    ),
)  # fmt: skip
JOB = Table(
    "pai_job_table",
    "job",
    _rules(job_name="text", inst_id="text", user="text", **_LIFE),
    unread=frozenset(_LIFE),
    without="users, instance ids and, through them, groups, workloads and GPU type constraints",
)
INSTANCE = Table(
    "pai_instance_table",
    "instance",
    _rules(
        job_name="text", task_name="text", inst_name="text", worker_name="text", inst_id="text",
        **_LIFE, machine="text",
    ),
    unread=frozenset({"inst_id"}),
    without="start times, run times, waits and the tasks of the jobs",
)  # fmt: skip
SENSOR = Table(
    "pai_sensor_table",
    "sensor",
    _rules(
        job_name="text", task_name="text", worker_name="text", inst_id="text", machine="text",
        gpu_name="text", **dict.fromkeys(SENSORS, "number"),
    ),
    unread=frozenset({"job_name", "task_name", "inst_id", "machine"}),
    without="what the tasks used, and on which GPU",
)  # fmt: skip
GROUP = Table(
    "pai_group_tag_table",
    "grouping",
    _rules(inst_id="text", user="text", gpu_type_spec="text", group="text", workload="text"),
    without="groups (the user stands in), workloads and GPU type constraints",
)
MACHINE = Table(
    "pai_machine_spec",
    "machine",
    _rules(machine="name", gpu_type="text", cap_cpu="capacity", cap_mem="capacity",
           cap_gpu="gpus"),
    without="nodes, the cluster, and the GPU types of the tasks' nodes",
)  # fmt: skip
METRIC = Table(
    "pai_machine_metric",
    "metric",
    _rules(
        worker_name="text", machine="text", start_time="seconds", end_time="seconds",
        **dict.fromkeys(METRICS, "number"),
    ),
    unread=frozenset({"machine", "start_time", "end_time"}),
    without="how busy the tasks' machines were",
)  # fmt: skip
TABLES: tuple[Table, ...] = (TASK, JOB, GROUP, MACHINE, INSTANCE, SENSOR, METRIC)
#: Endings of a table's file, in the order in which they are looked for.
ENDINGS = (".csv", ".csv.gz", ".tar.gz")


def is_folder_of_tables(names: Collection[str]) -> bool:
    """Return whether a folder with files of these names holds any of the tables."""
    return any(is_there(table, names) for table in TABLES)


def is_there(table: Table, names: Collection[str]) -> bool:
    """Return whether a table is among files of these names."""
    return any(table.name + ending in names for ending in ENDINGS)


def find(folder: Path, table: Table) -> tuple[Path | None, tuple[str, ...]]:
    """Return a table's file in a folder, None where it has none, and notes on others there."""
    named = [folder / (table.name + ending) for ending in ENDINGS]
    # A folder or a broken link of that name is no missing table: who opens it says what it is.
    there = [p for p in named if p.is_file()] or [p for p in named if os.path.lexists(p)]
    if not there:
        return None, ()
    others = ", ".join(path.name for path in there[1:])
    return there[0], (f"{there[0].name} was read, not {others} beside it.",) * bool(others)


def check_header_file(folder: Path, table: Table) -> None:
    """Check that ``<table>.header``, where it is there, names the columns that we read.

    Raises:
        TraceError: it names others, or cannot be read.
    """
    path = folder / f"{table.name}.header"
    if not path.exists():
        return
    text = read_bytes(path).decode("utf-8-sig", errors="replace")
    found = [name.strip() for line in csv.reader(text.split()) for name in line if name.strip()]
    if found != list(table.columns):
        raise TraceError(
            str(path),
            f"the columns {', '.join(table.columns)}",
            value=",".join(found),
            hint="The tables are read by the columns of the release, in its order.",
        )


def is_header(cells: list[str], table: Table, file: str, line: int) -> bool:
    """Return whether a table's first record is its header line.

    Raises:
        TraceError: it is one, but of other columns or in another order.
    """
    found = [cell.strip() for cell in cells]
    names = list(table.columns)
    if found == names:
        return True
    known = [name for name in found if name in table.columns]
    if 2 * len(known) > len(names):
        raise TraceError(
            file,
            f"no header line, or one with the columns {', '.join(names)}",
            row=line,
            value=",".join(found),
            hint=f"Known in it: {', '.join(quote(name) for name in known)}.",
        )
    return False
