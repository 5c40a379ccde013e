"""Whatever an sacct log holds: a trace that accounts for every row, or one clear error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from windtunnel.errors import WindtunnelError
from windtunnel.traces.sacct import read_sacct
from windtunnel.traces.tres import parse_gres, parse_memory, parse_tres

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOG = (
    "JobID|JobName|User|Account|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|Timelimit|"
    "NNodes|NCPUS|ReqMem|ReqTRES|AllocTRES|NodeList|Reason\n"
    "1|train|ann|lab|gpu|COMPLETED|2025-10-26T01:00:00|2025-10-26T01:00:00|2025-10-26T02:10:00|"
    "2025-10-26T02:20:00|600|30|1|8|64Gn|gres/gpu:a100=2,gres/gpu=2|cpu=8,gres/gpu=2|n1|None\n"
    "1.batch|batch||lab||COMPLETED|2025-10-26T01:00:00|||2025-10-26T02:20:00|600||1|8|||cpu=8|n1|\n"
    "2_[3-9%2]|a|b|ann|lab|gpu|PENDING|2025-10-26T01:10:00|Unknown|Unknown|Unknown|0|1-00|1|8|4Gc|"
    "gres/gpu=1||None assigned|Priority\n"
    "3|x|bob||gpu|CANCELLED by 7|1761440400|1761440400|None|1761440500|0|UNLIMITED|1|8|0|"
    "gres/gpu=4||None assigned|None\n"
    "1|train|ann|lab|gpu|TIMEOUT|2025-10-26T05:00:00|2025-10-26T05:00:00|2025-10-26T05:10:00|"
    "2025-10-26T05:20:00|600|30|1|8|64Gn|gres/gpu=2|cpu=8,gres/gpu=2,mem=1.5T|n1|None\n"
)
PIECES = ["|", "\n", "\r", "+", ".", "-", "_[1-3]", "9", "\0", '"', "é", "\x85", "[", "%", " ", ","]


def change(text: str, kind: str, at: int, piece: str) -> str:
    """Return the log with one thing done to it."""
    where = at % (len(text) + 1)
    lines = text.split("\n")
    line = at % len(lines)
    marks = [i for i, c in enumerate(text) if c == "|"]
    cell = marks[at % len(marks)] if marks else 0
    after = next((i for i in range(cell + 1, len(text)) if text[i] in "|\n"), len(text))
    changes: dict[str, Callable[[], str]] = {
        "cut": lambda: text[:where],
        "insert": lambda: text[:where] + piece + text[where:],
        "delete": lambda: text[:where] + text[where + len(piece) :],
        "drop line": lambda: "\n".join(lines[:line] + lines[line + 1 :]),
        "twice line": lambda: "\n".join([*lines[:line], lines[line], *lines[line:]]),
        "cell": lambda: text[: cell + 1] + piece + text[after:],
        "trailing": lambda: text.replace("\n", "|\n"),
        "crlf": lambda: text.replace("\n", "\r\n"),
        "mark": lambda: text.replace("|", piece),
    }
    return changes[kind]()


KINDS = ["cut", "insert", "delete", "drop line", "twice line", "cell", "trailing", "crlf", "mark"]
CHANGE = st.tuples(
    st.sampled_from(KINDS),
    st.integers(0, 2000),
    st.one_of(st.sampled_from(PIECES), st.text(min_size=1, max_size=6)),
)


@pytest.mark.parametrize("zone", ["Europe/Berlin"])
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300
)
@given(changes=st.lists(CHANGE, max_size=3))
@example(changes=[])
def test_every_row_is_accounted_for(
    tmp_path: Path, zone: str, changes: list[tuple[str, int, str]]
) -> None:
    text = LOG
    for kind, at, piece in changes:
        text = change(text, kind, at, piece)
    path = tmp_path / "log.txt"
    path.write_bytes(text.encode(errors="surrogatepass"))
    try:
        trace = read_sacct(path, zone=zone)
    except WindtunnelError as error:
        assert str(path) in str(error)  # noqa: PT017 - any other error is the defect
        return
    about = trace.metadata
    dropped = sum(about.dropped.values())
    assert about.rows_read == trace.jobs.num_rows + dropped
    plain = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    records = sum(bool(line.strip()) for line in plain) - 1
    listed = [note for note in about.notes if note.startswith("Rows that list array tasks")]
    if not listed:
        assert about.rows_read == records
    else:
        tasks = next(note for note in about.notes if note.startswith("Array tasks in"))
        count, rows = (int(note.rpartition(" ")[2].strip(".").replace(",", "")) for note in
                       (tasks, listed[0]))  # fmt: skip
        assert about.rows_read == records - rows + count
    if not changes:
        assert trace.jobs.num_rows == 10


@given(
    text=st.one_of(
        st.text(max_size=20),
        st.lists(
            st.sampled_from(
                ["gres/gpu", ":a", "=", "1", ",", "mem", "K", "gpu", "(", ")", ".", "-"]
            )
        ).map("".join),
    )
)
def test_resources_parse_or_raise_value_error(text: str) -> None:
    for parse in (parse_tres, parse_gres, parse_memory):
        try:
            parse(text)
        except ValueError:
            continue
