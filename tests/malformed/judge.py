"""The invariants of a mutated file: a whole trace, or one clear error that says where and what."""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from grids import Record, records
from samples import Reading, Sample, unpacked

from windtunnel.errors import SchemaError, SpecError, TraceError, Violation
from windtunnel.schema import validate

if TYPE_CHECKING:
    from pathlib import Path

    from grids import Grid
    from mutants import Mutant

#: CPU seconds that any file may take.
DEADLINE_S = 5.0
MAX_MESSAGE = 4000
#: Of a cell no more than this is quoted.
MAX_RUN = 100
_TIMES = re.compile(r"(?<!think)(?<!wait)_time$|^deadline$")


def judge(sample: Sample, mutant: Mutant, folder: Path) -> None:
    """Read a mutated file and check everything that must hold, whatever is in it.

    Any exception but the package's own, and every warning, passes through: it is the defect.
    """
    path = sample.write(folder, mutant.data, mutant.suffix)
    began = time.process_time()
    try:
        reading = sample.read(path)
    except (TraceError, SchemaError, SpecError) as error:
        _check_message(error, path)
        content = unpacked(mutant.data)
        if sample.grid is not None and content is not None and str(path) in _file_of(error):
            _check_place(error, sample.grid, content, mutant)
    else:
        _check_account(sample, mutant, reading)
        if mutant.cell is not None:
            _check_neighbours(sample, mutant, reading, folder)
    assert time.process_time() - began < DEADLINE_S


def _file_of(error: TraceError | SchemaError | SpecError) -> str:
    if isinstance(error, TraceError):
        return error.file
    return error.source if isinstance(error, SchemaError) else error.path


def _check_message(error: TraceError | SchemaError | SpecError, path: Path) -> None:
    message = str(error)
    assert str(path) in message or str(path.parent) in _file_of(error), message[:500]
    assert len(message) < MAX_MESSAGE + len(str(path)), message[:500]
    lines = message.split("\n") if isinstance(error, SchemaError) else [message]
    for line in lines:
        assert line.isprintable(), repr(line[:500])
    assert not re.search(rf"(.)\1{{{MAX_RUN},}}", message), message[:500]


def _check_place(error: Any, grid: Grid, content: bytes, mutant: Mutant) -> None:
    """Check that line, column and value of an error are those of the file."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return
    if "\0" in text:
        return
    found = {r.line: r for r in _records(text, grid)}
    names = list(found[min(found)].cells) if grid.has_header and found else list(grid.columns)
    if isinstance(error, SchemaError):
        for violation in error.violations:
            _check_violation(violation, found, mutant, grid)
    elif isinstance(error, TraceError) and error.row is not None:
        _check_cell(error, found, [name.strip() for name in names])
        if mutant.cell is not None:
            assert error.row == grid.first_line + mutant.cell[0], str(error)


def _records(text: str, grid: Grid) -> list[Record]:
    if not grid.before:
        return records(text, grid.mark, quoted=grid.quoted)
    found = records(text, grid.mark, quoted=grid.quoted)
    return [record for record in found if not record.cells[0].startswith(grid.before[0])]


def _check_cell(error: TraceError, found: dict[int, Record], names: list[str]) -> None:
    if error.column is None or error.value is None or not isinstance(error.value, str):
        return
    assert error.row is not None
    record = found.get(error.row)
    if error.column not in names or names.count(error.column) > 1:
        return
    assert record is not None, str(error)
    cells = record.cells
    if len(cells) == len(names):
        cell = cells[names.index(error.column)]
        # The short name of a zone may stand behind a time.
        assert cell.strip().startswith(error.value.strip()), (cell[:100], str(error))
    else:
        assert any(error.value.strip() in cell for cell in cells), str(error)


def _check_violation(
    violation: Violation, found: dict[int, Record], mutant: Mutant, grid: Grid
) -> None:
    if violation.row is None:
        return
    assert violation.row in found, str(violation)
    if mutant.cell is not None and violation.rule != "each id once":
        # Of quoted line ends there are none here: line and record are one.
        assert violation.row == grid.first_line + mutant.cell[0], str(violation)
        assert violation.count == 1


def _check_account(sample: Sample, mutant: Mutant, reading: Reading) -> None:
    kept, dropped = reading.table.num_rows, sum(reading.dropped.values())
    assert reading.rows_read == kept + dropped
    assert all(count > 0 for count in reading.dropped.values())
    if reading.trace is not None:
        validate(reading.trace.jobs)
    content = unpacked(mutant.data)
    if content is not None:
        expected = sample.count(content)
        assert expected in {None, reading.rows_read}, (expected, reading.rows_read)


def _check_neighbours(sample: Sample, mutant: Mutant, reading: Reading, folder: Path) -> None:
    """Check that one changed cell changed nothing but its own record."""
    assert mutant.cell is not None
    row, column = mutant.cell
    if column in sample.coupled:
        return
    before = sample.read(sample.write(folder, sample.data))
    own = set(sample.ids[row].split("\n")) if sample.ids else set()
    if reading.trace is None:
        lost = _rows(before, None) - _rows(reading, None)
        width = sample.records // len(sample.grid.rows) if sample.grid is not None else 10**9
        assert lost.total() <= width, lost
        return
    if not sample.ids:  # the file stands beside the trace: jobs stay as they are
        return
    others = [name for name in before.table["job_id"].to_pylist() if name not in own]
    lost = _rows(before, others) - _rows(reading, others)
    assert {dict(kept)["job_id"] for kept in lost} <= own, lost


def _rows(reading: Reading, others: list[str] | None) -> Counter[Any]:
    """Count the rows, times counted from the first of ``others``: the epoch may have moved."""
    rows = reading.table.to_pylist()
    zero = 0.0
    if others is not None:
        times = {row["job_id"]: row["submit_time"] for row in rows}
        known = [times.get(name) for name in others]
        zero = next((time for time in known if time is not None), 0.0)
    return Counter(
        tuple((name, _comparable(name, value, zero)) for name, value in row.items()) for row in rows
    )


def _comparable(name: str, value: Any, zero: float) -> Any:
    if isinstance(value, float) and _TIMES.search(name):
        return round(value - zero, 3)
    return str(value) if isinstance(value, list) else value
