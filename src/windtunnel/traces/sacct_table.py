"""The rows of ``sacct --parsable2`` or ``--parsable``: columns by name, steps left out.

sacct quotes nothing: a separator inside a job's name makes a row longer. The name is the only free
text among the columns that are asked for, so the surplus belongs to it.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeVar

from windtunnel.errors import TraceError, quote
from windtunnel.traces.header import BOM, checked_text, not_utf8
from windtunnel.traces.sacct_words import STATES, state_word

if TYPE_CHECKING:
    from collections.abc import Callable

    Value = TypeVar("Value")

#: What gives a log that can be read whole.
COMMAND = (
    "sacct -a -D -P -S START -E END --format=JobID,JobIDRaw,JobName,User,Account,Partition,QOS,"
    "State,Submit,Eligible,Start,End,ElapsedRaw,Timelimit,Priority,NNodes,NCPUS,ReqMem,ReqTRES,"
    "AllocTRES,NodeList,Reason"
)
_ADVICE = f"Write it with: {COMMAND}"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LINE_END = re.compile(r"\r\n|\n|\r")
#: Columns that may hold separators, too: with one of them a longer row cannot be split.
_FREE_TEXT = frozenset(
    {"comment", "admincomment", "systemcomment", "submitline", "workdir", "extra", "wckey"}
)
_USED = frozenset(
    {"jobid", "jobidraw", "jobname", "user", "account", "partition", "qos", "state", "priority"}
    | {"submit", "eligible", "start", "end", "elapsed", "elapsedraw", "timelimit", "timelimitraw"}
    | {"nnodes", "allocnodes", "reqnodes", "ncpus", "alloccpus", "reqcpus", "reqmem"}
    | {"reqtres", "alloctres", "reqgres", "allocgres", "nodelist", "reason"}
)


@dataclass(frozen=True)
class SacctTable:
    """Job rows as text.

    Attributes:
        file: what to call the source in messages.
        columns: name in lower case -> its cells, without blanks around them.
        names: name in lower case -> as the header spells it.
        lines: 1-based line of each row.
        records: rows of the file but for its header: jobs, steps and repeated headers.
        steps: rows of job steps, left out.
        headers: header lines repeated among the rows, left out.
        rejoined: rows whose name held separators.
    """

    file: str
    columns: dict[str, list[str]]
    names: dict[str, str]
    lines: list[int]
    records: int
    steps: int
    headers: int
    rejoined: int

    def has(self, name: str) -> bool:
        """Whether there is a column of this name."""
        return name in self.columns

    def cells(self, name: str) -> list[str]:
        """Return a column, empty cells where there is none."""
        return self.columns.get(name) or [""] * len(self.lines)

    def parsed(self, name: str, parse: Callable[[str], Value], what: str) -> list[Value]:
        """Return a column with each cell parsed.

        Args:
            name: the column, in lower case.
            parse: raises ValueError at a cell that it does not understand.

        Raises:
            TraceError: a cell does not parse; names line, column and value.
        """
        known: dict[str, Value] = {}
        values: list[Value] = []
        for row, cell in enumerate(self.cells(name)):
            if cell not in known:
                try:
                    known[cell] = parse(cell)
                except ValueError as error:
                    raise self.bad(name, row, what) from error
            values.append(known[cell])
        return values

    def bad(self, name: str, row: int, what: str, hint: str = "") -> TraceError:
        """Return the error for a cell."""
        value = self.columns[name][row]
        column = self.names[name]
        return TraceError(
            self.file, what, row=self.lines[row], column=column, value=value, hint=hint
        )


def looks_like_sacct(head: bytes) -> bool:
    """Return whether a file begins with a line that names JobID and State."""
    text = head.removeprefix(BOM).decode(errors="replace").lstrip("\r\n")
    return {"jobid", "state"} <= _words(_LINE_END.split(text, maxsplit=1)[0])


def read_table(data: bytes, file: str, delimiter: str | None) -> SacctTable:
    """Return the rows of a log.

    Args:
        delimiter: what stands between fields; None = found in the header line.

    Raises:
        TraceError: it is no such log.
    """
    data = checked_text(data, file)
    try:
        lines = _LINE_END.split(data.decode())
    except UnicodeDecodeError as error:
        raise not_utf8(data, file, 0, error) from error
    at = next((i for i, text in enumerate(lines) if text.strip()), None)
    if at is None:
        raise TraceError(file, "a file with content", hint="It holds only blank lines.")
    header = lines[at]
    layout = _Layout(file, header, at + 1, delimiter)
    kept: list[tuple[str, ...]] = []
    numbers: list[int] = []
    records = steps = headers = rejoined = 0
    last = max(i for i, text in enumerate(lines) if text.strip())
    for index in range(at + 1, last + 1):
        text = lines[index]
        if not text.strip():
            continue
        records += 1
        if text == header:
            headers += 1
            continue
        fields, longer = layout.fields(text, index + 1, is_last=index == last)
        # A list of array tasks that Slurm has cut ends in dots, too: 17_[1-9,...].
        if "." in fields[layout.job_id].rpartition("]")[2]:
            steps += 1
            continue
        rejoined += longer
        kept.append(tuple(fields[i].strip() for i in layout.used))
        numbers.append(index + 1)
    if not kept:
        left_out = f"It has {steps:,} rows of job steps." if steps else "It has no rows."
        raise TraceError(file, "at least one row of a job", hint=f"{left_out} {_ADVICE}")
    names = [layout.names[i].lower() for i in layout.used]
    columns = {
        name: list(cells) for name, cells in zip(names, zip(*kept, strict=True), strict=True)
    }
    spelt = {name.lower(): name for name in layout.names}
    return SacctTable(file, columns, spelt, numbers, records, steps, headers, rejoined)


class _Layout:
    """How the fields of a log stand on a line, from its header."""

    def __init__(self, file: str, header: str, line: int, delimiter: str | None) -> None:
        self._file = file
        if not {"jobid", "state"} <= _words(header):
            raise TraceError(
                file, "a header line with JobID and State", row=line, value=header, hint=_ADVICE
            )
        self._mark = delimiter or _separator(header, file, line)
        if not self._mark.strip(" "):
            _refuse_human(file, line, header)
        names = [name.strip() for name in self._split(header, line)]
        self._trailing = names[-1] == ""
        self.names = names[:-1] if self._trailing else names
        lower = [name.lower() for name in self.names]
        if len(set(lower)) < len(lower):
            twice = next(n for n in self.names if lower.count(n.lower()) > 1)
            raise TraceError(file, "each column name once", row=line, column=twice, value=twice)
        if not {"jobid", "state"} <= set(lower):
            raise TraceError(
                file,
                f"column names separated by {quote(self._mark)}",
                row=line,
                value=header,
                hint=_ADVICE,
            )
        self.job_id, self._state = lower.index("jobid"), lower.index("state")
        self._name = lower.index("jobname") if "jobname" in lower else -1
        self._one_free_text = self._mark != "," and not _FREE_TEXT & set(lower)
        self.used = [i for i, name in enumerate(lower) if name in _USED]

    def _split(self, text: str, line: int) -> list[str]:
        if self._mark != ",":
            return text.split(self._mark)
        try:  # never sacct's own hand: TRES hold commas, so somebody has quoted them
            return next(csv.reader([text], strict=True))
        except csv.Error as error:
            raise TraceError(
                self._file, "well-formed CSV", row=line, hint=f"({error}) {_ADVICE}"
            ) from error

    def fields(self, text: str, line: int, *, is_last: bool) -> tuple[list[str], bool]:
        """Return the fields of a row, and whether its name held separators.

        Raises:
            TraceError: too few fields, or too many and nobody can tell where they belong.
        """
        fields = self._split(text, line)
        wanted = len(self.names)
        whole = not self._trailing or fields[-1] == ""
        if self._trailing and whole:
            fields.pop()
        surplus = len(fields) - wanted
        if surplus < 0 or not whole:
            hint = "It is the last line: the file seems to be cut." if is_last else ""
            expected = f"{wanted} fields, found {len(fields)}"
            if surplus >= 0:
                expected = "a separator at the end of the row, as in the header"
            raise TraceError(self._file, expected, row=line, hint=hint)
        if surplus == 0:
            return fields, False
        at = self._name
        if at >= 0 and self._one_free_text:
            joined = self._mark.join(fields[at : at + surplus + 1])
            fields[at : at + surplus + 1] = [joined]
            if state_word(fields[self._state].strip()) in STATES:
                return fields, True
        raise TraceError(
            self._file,
            f"{wanted} fields, found {wanted + surplus}",
            row=line,
            hint="A separator stands inside a text, and JobName is not the only one that can hold "
            f"it: choose another --delimiter. {_ADVICE}",
        )


def _words(header: str) -> set[str]:
    return {name.lower() for name in _NAME.findall(header)}


def _separator(header: str, file: str, line: int) -> str:
    """Return what stands between the names of a header line."""
    gaps = _NAME.split(header)[1:-1]
    mark = gaps[0]
    if any(not gap.strip(" ") for gap in gaps):
        _refuse_human(file, line, header)
    if any(gap != mark for gap in gaps):
        raise TraceError(
            file, "one separator between all column names", row=line, value=header, hint=_ADVICE
        )
    return mark


def _refuse_human(file: str, line: int, header: str) -> NoReturn:
    raise TraceError(
        file,
        "fields with separators (sacct -P)",
        row=line,
        value=header.strip(),
        hint="This is sacct's table for people, which cuts what does not fit its columns "
        f"('CANCELLED+'). {_ADVICE}",
    )


def refuse_cut(table: SacctTable) -> None:
    """Refuse a log whose states were cut to fit a column.

    Raises:
        TraceError: a state ends in ``+``.
    """
    for row, cell in enumerate(table.cells("state")):
        if cell.endswith("+"):
            raise table.bad(
                "state", row, "a whole state", f"sacct's table for people cuts it. {_ADVICE}"
            )
