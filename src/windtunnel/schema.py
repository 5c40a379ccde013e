"""The jobs table: its columns, and the one validation at the boundary.

A jobs table is an Arrow table with the columns of `COLUMNS`, in that order. Times are float64
seconds since the trace's epoch; null means unknown. Readers build it with `conform`, which adds the
optional columns a source lacks and checks every rule at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import SchemaError, SpecError, Violation, nearest, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STATUSES: tuple[str, ...] = (
    "completed",
    "failed",
    "cancelled",
    "timeout",
    "node_fail",
    "preempted",
    "out_of_memory",
    "running",
    "pending",
    "unknown",
)


@dataclass(frozen=True)
class Column:
    """One column of the jobs table.

    Attributes:
        name: the column's name.
        type: its Arrow type.
        doc: what it holds, in a sentence.
        required: a source must have it (values may still be null unless ``nullable`` is false).
        nullable: whether a value may be unknown.
    """

    name: str
    type: pa.DataType
    doc: str
    required: bool = False
    nullable: bool = True


COLUMNS: tuple[Column, ...] = (
    Column("job_id", pa.string(), "unique name of the job", required=True, nullable=False),
    Column("submit_time", pa.float64(), "when the job was submitted, s", required=True),
    Column("start_time", pa.float64(), "when it first ran, s"),
    Column("end_time", pa.float64(), "when it left, s"),
    Column("duration", pa.float64(), "run time, s", required=True),
    Column("estimate", pa.float64(), "requested wall time, s"),
    Column("num_gpus", pa.float64(), "GPUs of the whole gang; fractions share", required=True),
    Column("num_tasks", pa.int32(), "gang size; each task fits one node"),
    Column("num_cpus", pa.float64(), "CPU cores of the whole gang"),
    Column("mem_gib", pa.float64(), "host memory of the whole gang, GiB"),
    Column("gpu_type", pa.string(), "acceptable GPU types joined by |; null = any"),
    Column("user", pa.string(), "who submitted it"),
    Column("vc", pa.string(), "virtual cluster, account, tenant or queue"),
    Column("workload", pa.string(), "kind of work (Pretrain, Eval, ...)"),
    Column("template", pa.string(), "recurrence key (job name, group tag)"),
    Column("status", pa.string(), "how it ended, one of STATUSES"),
    Column("priority", pa.float64(), "larger is more urgent"),
)
BY_NAME: dict[str, Column] = {column.name: column for column in COLUMNS}
JOBS: pa.Schema = pa.schema(
    [pa.field(c.name, c.type, nullable=c.nullable, metadata={"doc": c.doc}) for c in COLUMNS]
)

#: What to do with a row that breaks a rule: refuse the table, or leave the row out and count it.
BAD_ROWS: tuple[str, ...] = ("raise", "drop")
_LEAVE_OUT = "To leave such rows out, counted: --bad-rows drop (bad_rows='drop' in Python)."

#: Schema-metadata key under which a jobs table remembers the file it was read from.
_SOURCE = b"windtunnel.source"


def source_of(jobs: pa.Table) -> str:
    """Return what to call a jobs table in messages: the file it was read from, else "jobs"."""
    name: bytes = (jobs.schema.metadata or {}).get(_SOURCE, b"jobs")
    return name.decode(errors="replace")


def conform(
    table: pa.Table,
    *,
    source: str = "jobs",
    lines: Sequence[int] | np.ndarray | None = None,
    first_line: int = 1,
    ids_unique: bool = False,
) -> pa.Table:
    """Return ``table`` as a jobs table: all columns, in order, of the schema's types, validated.

    ``duration`` may be absent where ``start_time`` and ``end_time`` are there; it is then their
    difference. Unknown columns are kept behind the schema's own (a source's extras).

    Args:
        table: any Arrow table whose columns are named as in `COLUMNS`.
        source: what to call the table in messages (a file name).
        lines: line number of each row in the source file, shape (rows,).
        first_line: line number of the first row, where ``lines`` is not given.
        ids_unique: the ids were just numbered, so looking for repeated ones would be a waste.

    Raises:
        SchemaError: any rule is broken; the error lists every one of them.
    """
    jobs, violations = _built(table, source)
    validate(
        jobs,
        source=source,
        lines=lines,
        first_line=first_line,
        found=violations,
        ids_unique=ids_unique,
    )
    return jobs


def conform_rows(
    table: pa.Table,
    *,
    bad_rows: str,
    source: str = "jobs",
    lines: Sequence[int] | np.ndarray | None = None,
    ids_unique: bool = False,
) -> tuple[pa.Table, dict[str, int]]:
    """Return ``table`` as a jobs table, its rows that break a rule refused or left out.

    Args:
        table: see `conform`, as for what follows.
        bad_rows: one of `BAD_ROWS`: ``raise`` is `conform`; ``drop`` leaves such rows out.
        source: what to call the table in messages.
        lines: line number of each row in the source file, shape (rows,).
        ids_unique: the ids were just numbered.

    Returns:
        The jobs table; and reason -> rows left out for it. A row that breaks several rules counts
        for the first of them; of a repeated id the first row stays.

    Raises:
        SchemaError: a rule is broken (``raise``), or a column is missing or of another type.
        SpecError: ``bad_rows`` is none of `BAD_ROWS`.
    """
    if bad_rows not in BAD_ROWS:
        raise SpecError.unknown("bad_rows", bad_rows, BAD_ROWS)
    jobs, violations = _built(table, source)
    if bad_rows == "raise" or violations:
        validate(
            jobs,
            source=source,
            lines=lines,
            found=violations,
            ids_unique=ids_unique,
            hint="" if violations else _LEAVE_OUT,
        )
        return jobs, {}
    dropped: dict[str, int] = {}
    bad = np.zeros(jobs.num_rows, dtype=bool)
    for rule in _rules(jobs, ids_unique=ids_unique):
        count = int((rule.broken & ~bad).sum())
        if count:
            reason = f"{rule.column}: expected {rule.expected}"
            dropped[reason] = dropped.get(reason, 0) + count
        bad |= rule.broken
    return (jobs.filter(pa.array(~bad)) if dropped else jobs), dropped


def _built(table: pa.Table, source: str) -> tuple[pa.Table, list[Violation]]:
    """Return the columns of the schema and the extras behind them, and the casts that failed.

    Raises:
        SchemaError: a required column is missing.
    """
    missing = [
        c.name
        for c in COLUMNS
        if c.required and c.name not in table.column_names and not _derivable(c.name, table)
    ]
    if missing:
        available = table.column_names
        raise SchemaError(
            source,
            [
                Violation(name, f"a column of this name.{nearest(name, available)}")
                for name in missing
            ],
            hint=f"The table has: {', '.join(quote(n) for n in available[:30]) or 'no columns'}.",
        )
    arrays: dict[str, Any] = {}
    violations: list[Violation] = []
    # Of each type one column of nulls: they are never written to, and many in most tables.
    nulls = {kind: pa.nulls(table.num_rows, kind) for kind in {c.type for c in COLUMNS}}
    for column in COLUMNS:
        if column.name not in table.column_names:
            arrays[column.name] = nulls[column.type]
            continue
        try:
            arrays[column.name] = table[column.name].cast(column.type)
        except pa.ArrowException as error:  # a bad value, or a type that has no such cast
            violations.append(Violation(column.name, f"values of type {column.type} ({error})"))
            arrays[column.name] = nulls[column.type]
    if "duration" not in table.column_names:
        arrays["duration"] = pc.subtract(arrays["end_time"], arrays["start_time"])
    metadata = {**(table.schema.metadata or {}), _SOURCE: source.encode()}
    jobs = pa.table(arrays, schema=JOBS.with_metadata(metadata))
    # All at once: one by one the time would grow with the square of their number.
    named = zip(table.column_names, table.columns, strict=True)
    extras = [(name, values) for name, values in named if name not in BY_NAME]
    fields = [*jobs.schema, *(pa.field(name, values.type) for name, values in extras)]
    columns = [*jobs.columns, *(values for _, values in extras)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata)), violations


def _derivable(name: str, table: pa.Table) -> bool:
    return name == "duration" and {"start_time", "end_time"} <= set(table.column_names)


def validate(
    jobs: pa.Table,
    *,
    source: str = "jobs",
    lines: Sequence[int] | np.ndarray | None = None,
    first_line: int = 1,
    found: Sequence[Violation] = (),
    ids_unique: bool = False,
    hint: str = "",
) -> None:
    """Check every rule of the schema and report all violations in one error.

    Rules: ids present and unique; times finite (they may lie before the epoch); no negative or NaN
    duration, estimate, GPUs, CPUs, memory or gang size; start not
    before submit, end not before start; known status; no NaN priority.

    Args:
        jobs: a table with the columns of `COLUMNS`.
        source: what to call the table in messages.
        lines: line number of each row in the source, shape (rows,).
        first_line: line of the first row, where ``lines`` is not given.
        found: violations already known, reported with the rest.
        ids_unique: take the ids' uniqueness for granted.
        hint: what to do about it, for the message.

    Raises:
        SchemaError: with every violation, its count, first line and first value.
    """
    violations = list(found)
    for rule in _rules(jobs, ids_unique=ids_unique):
        count = int(rule.broken.sum())
        if count:
            index = int(rule.broken.argmax())
            row = int(lines[index]) if lines is not None else first_line + index
            value = jobs[rule.column][index].as_py()
            violations.append(Violation(rule.column, rule.expected, count, row, value))
    if violations:
        raise SchemaError(source, violations, hint)


class _Rule(NamedTuple):
    """One rule: its column, what was expected there, and where it is broken, shape (rows,)."""

    column: str
    expected: str
    broken: np.ndarray


def _rules(jobs: pa.Table, *, ids_unique: bool) -> Iterator[_Rule]:
    """Yield every rule for rows, in the order of the columns."""
    ids = jobs["job_id"]
    yield _Rule("job_id", "a value in every row", _mask(pc.is_null(ids)))
    if not ids_unique:
        yield _Rule("job_id", "each id once", _repeated(ids))
    for name in ("submit_time", "start_time", "end_time", "priority"):
        yield _Rule(name, "a finite number", ~_finite(jobs[name]))
    for name in ("duration", "estimate", "num_gpus", "num_cpus", "mem_gib"):
        values = _floats(jobs[name])
        bad = ~_finite(jobs[name]) | (values < 0) | (np.signbit(values) & (values == 0))
        yield _Rule(name, "a finite number >= 0", bad)
    yield _Rule("num_tasks", "a whole number >= 1", _mask(pc.less(jobs["num_tasks"], 1)))
    submit, start, end = (_floats(jobs[n]) for n in ("submit_time", "start_time", "end_time"))
    yield _Rule("start_time", "start_time >= submit_time", start < submit)
    yield _Rule("end_time", "end_time >= start_time", end < start)
    known = pc.is_in(jobs["status"], value_set=pa.array(STATUSES))
    bad_status = _mask(pc.and_(pc.invert(known), pc.is_valid(jobs["status"])))
    yield _Rule("status", f"one of {', '.join(STATUSES)}", bad_status)


def _mask(values: Any) -> np.ndarray:
    """Return an Arrow boolean column as a numpy mask, null counted as false."""
    filled = pc.fill_null(values, False)
    return np.asarray(filled.to_numpy(zero_copy_only=False) if len(filled) else [], dtype=bool)


def _floats(values: Any) -> np.ndarray:
    """Return a numeric Arrow column as float64, null as NaN, shape (rows,)."""
    return np.asarray(values.cast(pa.float64()).to_numpy(), dtype=np.float64)


def _finite(values: Any) -> np.ndarray:
    """Return where a value is null or finite (null is unknown, not wrong)."""
    finite: np.ndarray = _mask(pc.is_null(values)) | np.isfinite(_floats(values))
    return finite


def _repeated(ids: Any) -> np.ndarray:
    """Return where an id stands for the second or a later time."""
    codes = pc.dictionary_encode(ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids)
    if isinstance(codes, pa.ChunkedArray):
        codes = codes.combine_chunks()
    indices = codes.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    bad = np.ones(len(indices), dtype=bool)
    bad[np.unique(indices, return_index=True)[1]] = False
    bad[indices == -1] = False
    return bad


def as_jobs(jobs: Any, *, source: str = "jobs") -> pa.Table:
    """Return anything table-like as a validated jobs table.

    Args:
        jobs: a jobs table, anything that exports the Arrow C stream (polars, pandas, ibis, duckdb,
            pyarrow), or a mapping column -> array. A mapping or frame without ``job_id`` gets row
            numbers from 0 as ids: in memory there is no file to point at.
        source: what to call it in messages.

    Raises:
        SchemaError: a rule is broken, or the object is not a table.

    >>> as_jobs({"submit_time": [0, 1], "duration": [5, 5], "num_gpus": [1, 2]}).num_rows
    2
    """
    table = _arrow(jobs, source)
    if table.schema.names[: len(COLUMNS)] == JOBS.names and table.schema.types[
        : len(COLUMNS)
    ] == list(JOBS.types):
        validate(table, source=source)
        return table
    if "job_id" not in table.column_names:
        numbers = pa.array(np.arange(table.num_rows)).cast(pa.string())
        table = table.add_column(0, "job_id", numbers)
        return conform(table, source=source, ids_unique=True)
    return conform(table, source=source)


def _arrow(jobs: Any, source: str) -> pa.Table:
    if isinstance(jobs, pa.Table):
        return jobs
    if hasattr(jobs, "to_pyarrow"):  # ibis expressions
        return jobs.to_pyarrow()
    if hasattr(jobs, "__arrow_c_stream__"):
        return pa.table(jobs)
    if hasattr(jobs, "items"):
        columns = _columns(dict(jobs.items()), source)
        try:
            return pa.table(columns)
        except pa.ArrowException as error:
            raise SchemaError(
                source, [Violation("*", f"columns of one length ({error})")]
            ) from error
    raise SchemaError(
        source,
        [Violation("*", f"an Arrow-exporting table or a mapping of columns, not {type(jobs)}")],
    )


def _columns(given: dict[str, Any], source: str) -> dict[str, Any]:
    """Return in-memory columns as Arrow.

    Raises:
        SchemaError: values of some are not of one type; names these columns.
    """
    columns, violations = {}, []
    for name, values in given.items():
        try:
            columns[name] = _column(name, values)
        except (pa.ArrowException, TypeError, ValueError) as error:
            kind = f"type {BY_NAME[name].type}" if name in BY_NAME else "one type"
            violations.append(Violation(str(name), f"values of {kind} ({error})"))
    if violations:
        raise SchemaError(source, violations)
    return columns


def _column(name: str, values: Any) -> Any:
    """Return one in-memory column as Arrow; NaN stays NaN (an error), None becomes null."""
    known = BY_NAME.get(name)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    array = pa.array(values, from_pandas=False)
    if known is not None and known.type == pa.string() and not pa.types.is_null(array.type):
        return array.cast(pa.string())
    return array
