"""A format as a description: which column of the file is which of ours, and in what form.

A `Layout` reads a table whose every row is a job; what is special to a format is one function that
gets the `Rows` that the layout has made, and changes them::

    @Layout("mysite", columns={"job_id": text("JobID"), "submit_time": clock("Submit"), ...}).reader
    def read_mysite(rows: Rows) -> None:
        \"\"\"Requests are those of one node.\"\"\"
        rows["num_gpus"] = pc.multiply(rows["num_gpus"], rows["num_tasks"])

A cell is cast or refused, never mended. What is interpreted or left unread stands in the trace's
notes, with counts.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windtunnel.errors import quote
from windtunnel.schema import BY_NAME, STATUSES
from windtunnel.traces.header import header_has
from windtunnel.traces.job_trace import job_trace
from windtunnel.traces.readers import reader
from windtunnel.traces.source import read_bytes, source_name
from windtunnel.traces.tabular import MAX_GANG, TextTable, parse_table
from windtunnel.traces.wallclock import repeated_hour_note, to_utc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from windtunnel.traces.trace import Trace

#: Slurm's words for how a job ended, as published tables use them: ours in capitals.
SLURM_STATES = {word.upper(): word for word in STATUSES if word != "unknown"}
_WORDS_SHOWN = 5


@dataclass(frozen=True)
class Field:
    """Where one of our columns comes from.

    Attributes:
        source: the file's name for it.
        form: ``text``, ``number``, ``whole``, ``instant``, ``clock`` or ``words``.
        what: what a cell should be, for messages.
        per: how many of the file's unit are one of ours.
        words: the file's word -> ours.
        other: what a word without a meaning becomes, counted; empty = it is refused.
        unknown: the number that stands for an unknown one; None = an empty cell alone does.
        required: a file without the column is none of this format.
    """

    source: str
    form: str = "text"
    what: str = "a number"
    per: float = 1.0
    words: Mapping[str, str | None] | None = None
    other: str | None = ""
    unknown: float | None = None
    required: bool = True

    @property
    def optional(self) -> Field:
        """The same column, in a format some of whose files lack it."""
        return replace(self, required=False)


def text(source: str) -> Field:
    """Return a column of text, taken as it stands."""
    return Field(source)


def number(source: str, of: str = "", *, per: float = 1.0, unknown: float | None = None) -> Field:
    """Return a column of numbers, ``of`` something, ``per`` of which are one of ours."""
    what = of if " " in of else f"a number{of and f' of {of}'}"
    return Field(source, "number", what, per, unknown=unknown)


def seconds(source: str, *, unknown: float | None = None) -> Field:
    """Return a column of times since some moment, or spans, in seconds."""
    return number(source, "seconds", unknown=unknown)


def whole(source: str, of: str, *, unknown: float | None = None) -> Field:
    """Return a column of whole numbers of something."""
    what = of if " " in of else f"a whole number of {of}"
    return Field(source, "whole", what, unknown=unknown)


def instant(source: str) -> Field:
    """Return a column of times with their offset from UTC."""
    return Field(source, "instant")


def clock(source: str) -> Field:
    """Return a column of times on the wall clock of the layout's zone."""
    return Field(source, "clock")


def words(source: str, meaning: Mapping[str, str | None], other: str | None = "unknown") -> Field:
    """Return a column of words that mean ours; see `Field.other`."""
    return Field(source, "words", words=meaning, other=other)


@dataclass(frozen=True)
class Layout:
    """A format of tables, a job a row.

    Attributes:
        name: what users type for it (``--format``).
        columns: our column -> where it comes from; those that the schema lacks are extras, kept
            where the file has them.
        licence: the data's licence, as the source states it.
        ignored: columns of the file that say nothing more than those that are read.
        recognised_by: columns by which a file is recognised; empty = those that are required.
        without: columns by which it is another format's.
        sniff: recognises a file's first bytes in place of the two; None = they do.
        extensions: endings of its files.
        by_name: these endings alone tell it.
        zone: IANA zone of its wall clock, unless the user says another; None = it has no dates.
        parse: makes rows of a file's bytes; None = CSV with a header line, or
            Parquet.
    """

    name: str
    columns: Mapping[str, Field]
    licence: str = ""
    ignored: tuple[str, ...] = ()
    recognised_by: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    sniff: Callable[[bytes], bool] | None = None
    extensions: tuple[str, ...] = (".csv", ".parquet")
    by_name: bool = False
    zone: str | None = None
    parse: Callable[[bytes, str], TextTable] | None = None

    @property
    def required(self) -> tuple[str, ...]:
        """The columns that every file has."""
        return tuple(field.source for field in self.columns.values() if field.required)

    def knows(self, head: bytes) -> bool:
        """Whether a file's first bytes look like this format."""
        if self.sniff is not None:
            return self.sniff(head)
        return header_has(head, *(self.recognised_by or self.required), without=self.without)

    def reader(self, special: Callable[..., None]) -> Callable[..., Trace]:
        """Register the layout's reader, ``read(path, *, bad_rows, ...)``, and return it.

        Args:
            special: ``special(rows, **options)`` does what columns alone do not say; its keyword
                parameters are options of the reader, ``zone`` is another where the layout has one.

        The reader's parameters are the path (plain or gzip, ``-`` = standard input), ``bad_rows``
        (``raise``, or ``drop``: leave out, counted, rows that break a rule), and those.

        Raises:
            TraceError: (the reader) not such a file; names line, column and value.
            SchemaError: (the reader) rules of the schema are broken.
            SpecError: (the reader) no such zone, or an option is out of range.
        """

        def read(
            path: str | Path, *, bad_rows: str = "raise", zone: str | None = None, **options: Any
        ) -> Trace:
            rows = self.rows(path, zone or self.zone)
            special(rows, **options)
            return rows.trace(bad_rows)

        parameters = list(inspect.signature(read).parameters.values())[: 3 if self.zone else 2]
        own = list(inspect.signature(special).parameters.values())[1:]
        signature = inspect.Signature([*parameters, *own], return_annotation="Trace")
        read.__doc__, read.__module__ = special.__doc__, special.__module__
        read.__name__, read.__qualname__ = special.__name__, special.__qualname__
        read.__signature__ = signature  # type: ignore[attr-defined] # what inspect looks at
        sniff = None if self.by_name else self.knows
        return reader(self.name, self.extensions, sniff=sniff)(read)

    def rows(
        self, path: str | Path, zone: str | None = None, found: TextTable | None = None
    ) -> Rows:
        """Read a file, or take its rows as they stand: columns in our names, forms and units."""
        if found is None:
            found = (self.parse or parse_table)(read_bytes(path), source_name(path))
        found.require(*self.required)
        rows = Rows(self, path, found, zone)
        moments: dict[str, np.ndarray] = {}
        for ours, field in self.columns.items():
            if not found.has(field.source):
                if ours in BY_NAME:
                    rows[ours] = pa.nulls(found.num_rows, BY_NAME[ours].type)
            elif field.form in {"instant", "clock"}:
                moments[ours] = rows.moments(field)
                rows[ours] = None  # keeps its place
            else:
                rows[ours] = rows.cells(ours, field)
        rows.place(moments)
        return rows


class Rows(dict[str, Any]):
    """The columns that have been made of a file, by our names: arrays of one length.

    Attributes:
        path: the file.
        text: its rows as they stand.
        zone: IANA zone of its wall clock.
        epoch: UTC seconds since 1970 of time 0; None = not known.
        notes: what to tell.
        lines: line of each row in the file, shape (rows,).
        dropped: records that are no jobs: reason -> count.
        beside: other attributes of the trace: ``cluster``, ``nodes``, ``holdings``.
        about: further attributes of its metadata.
    """

    def __init__(
        self, layout: Layout, path: str | Path, found: TextTable, zone: str | None
    ) -> None:
        super().__init__()
        self.path, self.text, self.zone = path, found, zone
        self.epoch: float | None = None
        self.notes: list[str] = []
        self.lines = found.lines
        self.dropped: dict[str, int] = {}
        self.beside: dict[str, Any] = {}
        self.about: dict[str, Any] = {}
        self._layout, self._repeated = layout, 0

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.lines)

    def note(self, *notes: str) -> None:
        """Add to what the trace tells."""
        self.notes += notes

    def numbered(self, stem: str) -> pa.Array:
        """Return ids ``stem-N`` with N the row in the file, from 1."""
        return pa.array([f"{stem}-{row}" for row in range(1, self.count + 1)], pa.string())

    def keep(self, rows: np.ndarray, instead: str) -> None:
        """Keep some rows alone, int64; the others are counted under a reason."""
        self.dropped[instead] = len(self.lines) - len(rows)
        self.lines = np.asarray(self.lines)[rows]
        self.update({name: cells.take(pa.array(rows)) for name, cells in self.items()})

    def ones(self) -> pa.Int32Array:
        """Return a gang size of one for every row."""
        return pa.array(np.ones(self.count, np.int32))

    def minus(self, later: str, earlier: str) -> Any:
        """Return the time from one column to another, s, null where either is unknown."""
        return pc.subtract(self[later], self[earlier])

    def differing(self, ours: Any, name: str) -> int:
        """Return in how many rows numbers and a column are both known and not equal."""
        theirs = self.get(name)
        return 0 if theirs is None else int(pc.sum(pc.not_equal(ours, theirs)).as_py() or 0)

    def cells(self, ours: str, field: Field) -> Any:
        """Return a column in our form and unit.

        Raises:
            TraceError: a cell is not what it should be.
        """
        name, known = field.source, ours in BY_NAME
        if field.form == "words" and field.words is not None:
            if field.other == "":
                return self.text.mapped(name, field.words)
            return self._states(name, field.words, field.other)
        if field.form == "whole":
            most = MAX_GANG if ours == "num_tasks" else None
            counts = _known(self.text.integers(name, what=field.what, largest=most), field)
            return self._gangs(counts) if field.what.endswith(" nodes") else counts
        if field.form == "number":
            # What the schema does not look at has to be finite here.
            cast = self.text.floats if known and field.required else self.text.finite
            numbers = _known(cast(name, what=field.what), field)
            return numbers if field.per == 1 else pc.divide(numbers, field.per)
        return self.text.text(name)

    def moments(self, field: Field) -> np.ndarray:
        """Return a column of times as UTC seconds since 1970; without a zone, of its own clock."""
        if field.form == "instant":
            return self.text.instants(field.source)
        local = self.text.clock(field.source)
        if self.zone is None:
            return local
        instants, repeated = to_utc(local, self.zone)
        self._repeated += int(repeated.sum())
        return instants

    def place(self, moments: dict[str, np.ndarray]) -> None:
        """Put times behind the first submission, which is time 0."""
        if not moments:
            return
        submitted = moments.get("submit_time", np.empty(0))
        known = submitted[np.isfinite(submitted)]
        zero = float(known.min()) if len(known) else None
        for name, times in moments.items():
            self[name] = pa.array(times - (zero or 0.0), pa.float64(), from_pandas=True)
        dated = any(field.form == "instant" for field in self._layout.columns.values())
        self.epoch = zero if dated or self.zone else None
        if self._repeated and self.zone:
            self.note(repeated_hour_note(self._repeated, self.zone))

    def _states(self, name: str, meaning: Mapping[str, str | None], other: str | None) -> Any:
        ours, strange = self.text.words(name, meaning, other)
        if strange:
            shown = ", ".join(f"{quote(word)} ({n:,})" for word, n in strange[:_WORDS_SHOWN])
            more = len(strange) - _WORDS_SHOWN
            shown += f" and {more:,} others" if more > 0 else ""
            self.note(f"States read as {other or 'not known'}: {shown}.")
        return ours

    def _gangs(self, counts: Any) -> Any:
        """Return counts of nodes as gang sizes; 0 nodes means that the size is unknown."""
        nowhere = pc.equal(counts, 0)
        if zeros := int(pc.sum(nowhere).as_py() or 0):
            self.note(f"{zeros:,} rows name 0 nodes: their gang size is unknown.")
        return pc.if_else(nowhere, pa.scalar(None, pa.int64()), counts)

    def trace(self, bad_rows: str) -> Trace:
        """Return the trace, its jobs in order of submission.

        Raises:
            SchemaError: rules of the schema are broken.
            SpecError: ``bad_rows`` is none of `windtunnel.schema.BAD_ROWS`.
        """
        layout = self._layout
        for name in ("submit_time", "duration"):
            self.setdefault(name, pa.nulls(self.count, pa.float64()))
        if self["submit_time"].null_count == self.count:
            self.note("The table has no times of submission: it cannot be replayed in time.")
        read = {*layout.ignored, *(field.source for field in layout.columns.values())}
        unread = [quote(name) for name in self.text.table.column_names if name not in read]
        if unread:
            self.note(f"Columns of the file that were not read: {', '.join(unread)}.")
        zone = None if self.epoch is None else self.zone
        return job_trace(
            self.path,
            self,
            self.lines,
            bad_rows=bad_rows,
            notes=self.notes,
            epoch=self.epoch,
            dropped=self.dropped,
            beside=self.beside,
            **({"licence": layout.licence, "zone": zone} | self.about),
        )


def _known(numbers: Any, field: Field) -> Any:
    """Return numbers without the one that stands for an unknown one."""
    if field.unknown is None:
        return numbers
    none = pc.equal(numbers, pa.scalar(field.unknown, numbers.type))
    return pc.if_else(none, pa.scalar(None, numbers.type), numbers)
