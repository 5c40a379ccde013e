"""Whatever a file holds: a trace or one clear error, no row lost, never a traceback."""

from __future__ import annotations

import gzip
import io
import json
import sys
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windtunnel.errors import MAX_QUOTED, TraceError, WindtunnelError
from windtunnel.traces import open_trace, source, write_parquet
from windtunnel.traces.native import read_native

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.traces.trace import Trace

NATIVE = "job_id,submit_time,duration,num_gpus,user\n" + "".join(
    f"j{i},{i * 10},{60 + i},{1 + i % 8},u{i % 3}\n" for i in range(12)
)
SWF = "; Version: 2.2\n" + "".join(
    f"{i + 1} {i * 10} 5 {60 + i} 4 -1 -1 4 100 -1 1 2 1 -1 1 1 -1 -1\n" for i in range(12)
)
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n" + "".join(
    f"2017-10-{i + 1:02d} 07:00:00,{60 + i}.0,1,{60 + i}.0,v{i % 2}\n" for i in range(12)
)
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
) + "".join(f"p{i},4000,1024,1,460,,LS,Running,{i},{100 + i},{i + 1}\n" for i in range(12))
RAW = json.dumps(
    [
        {
            "status": "Pass",
            "vc": "v",
            "jobid": f"j{i}",
            "user": "u",
            "submitted_time": f"2017-10-{i + 1:02d} 07:00:00",
            "attempts": [
                {
                    "start_time": f"2017-10-{i + 1:02d} 08:00:00",
                    "end_time": f"2017-10-{i + 1:02d} 09:00:00",
                    "detail": [{"ip": "m", "gpus": ["gpu0"]}],
                }
            ],
        }
        for i in range(12)
    ],
    indent=1,
)
FORMATS = {
    "native": ("t.csv", NATIVE),
    "swf": ("t.swf", SWF),
    "philly": ("t.csv", PHILLY),
    "openb": ("t.csv", OPENB),
    "philly-raw": ("t.json", RAW),
}
EACH = pytest.mark.parametrize("name", list(FORMATS))


def file_of(tmp_path: Path, name: str, data: bytes, suffix: str = "") -> Path:
    path = tmp_path / (FORMATS[name][0] + suffix)
    path.write_bytes(data)
    return path


def opened(path: Path, name: str) -> Trace | WindtunnelError:
    """Open a file, with its one error in place of the trace; any other error is a defect."""
    try:
        return open_trace(path, format=name)
    except WindtunnelError as error:
        return error


def accounted(trace: Trace) -> bool:
    return trace.metadata.rows_read == trace.jobs.num_rows + sum(trace.metadata.dropped.values())


@EACH
@pytest.mark.parametrize("explicit", [True, False])
def test_the_good_file_is_read_whole(tmp_path: Path, name: str, explicit: bool) -> None:  # noqa: FBT001
    path = file_of(tmp_path, name, FORMATS[name][1].encode())
    trace = open_trace(path, format=name if explicit else None)
    assert trace.jobs.num_rows == 12
    assert accounted(trace)


@EACH
def test_gzip_byte_order_mark_and_crlf_change_nothing(tmp_path: Path, name: str) -> None:
    plain = FORMATS[name][1].encode()
    jobs = open_trace(file_of(tmp_path, name, plain)).jobs
    marked = b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n")
    for data, suffix in (
        (marked, ""),
        (gzip.compress(plain), ".gz"),
        (gzip.compress(marked), ".gz"),
    ):
        assert open_trace(file_of(tmp_path, name, data, suffix)).jobs.equals(jobs)


@EACH
def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for pack in (bytes, gzip.compress):
        data = pack(FORMATS[name][1].encode())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert open_trace("-", format=name).jobs.num_rows == 12
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(TraceError, match=r"standard input: .*empty"):
        open_trace("-", format=name)


def test_standard_input_tells_its_format(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "JobID|State|AllocTRES\n7|COMPLETED|gres/gpu=2\n"
    for pack in (bytes, gzip.compress):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pack(text.encode()))))
        assert open_trace("-").jobs["num_gpus"].to_pylist() == [2.0]


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    for name in (None, "swf"):
        with pytest.raises(TraceError, match=r"standard input: .*closed"):
            open_trace("-", format=name)


def test_parquet_on_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    write_parquet({"submit_time": [0.0], "duration": [1.0], "num_gpus": [1.0]}, path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    assert open_trace("-").jobs.num_rows == 1
    assert pq.read_table(path).num_rows == 1


@EACH
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: b"", "It is empty"),
        (lambda _: b"\n\n \n", "blank lines|valid JSON"),
        (lambda good: good.replace(b"1", b"\0", 1), "NUL bytes|valid JSON"),
        (lambda good: good.decode().encode("utf-16"), "UTF-16|UTF-8|valid JSON"),
        (lambda good: good[:-60] + b"\xff" + good[-59:], "UTF-8 text"),
    ],
)
def test_a_broken_file_is_one_clear_error(
    tmp_path: Path, name: str, change: Callable[[bytes], bytes], message: str
) -> None:
    good = FORMATS[name][1].encode()
    path = file_of(tmp_path, name, change(good))
    with pytest.raises(TraceError, match=message) as caught:
        open_trace(path, format=name)
    assert caught.value.file == str(path)
    assert "\n" not in str(caught.value)


@EACH
def test_gzip_that_is_cut_or_false(tmp_path: Path, name: str) -> None:
    packed = gzip.compress(FORMATS[name][1].encode())
    for cut in (5, 11, len(packed) // 2, len(packed) - 1):
        path = file_of(tmp_path, name, packed[:cut], ".gz")
        with pytest.raises(TraceError, match=r"whole packed file.*cut or damaged"):
            open_trace(path, format=name)
    flipped = bytearray(packed)
    flipped[-6] ^= 1
    with pytest.raises(TraceError, match=r"whole packed file"):
        open_trace(file_of(tmp_path, name, bytes(flipped), ".gz"), format=name)
    with pytest.raises(TraceError, match=r"gzip data, as the name ends in .gz"):
        open_trace(file_of(tmp_path, name, FORMATS[name][1].encode(), ".gz"), format=name)


@EACH
def test_no_such_file_a_folder_and_an_impossible_name(tmp_path: Path, name: str) -> None:
    for path, message in (
        (tmp_path / "nothing", "a file that exists"),
        (tmp_path, "It is a folder"),
        (tmp_path / "t" / "u", "a file that exists"),
        ("a\0b", "a file that can be read"),
        ("x" * 5000, "a file that can be read"),
    ):
        with pytest.raises(TraceError, match=message):
            open_trace(path, format=name)


@pytest.mark.parametrize("name", ["native", "philly", "openb"])
@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_another_delimiter_is_named(tmp_path: Path, name: str, mark: str) -> None:
    data = FORMATS[name][1].replace(",", mark).encode()
    with pytest.raises(TraceError, match=r"line 1: .*fields separated by a comma.*pass delimiter="):
        open_trace(file_of(tmp_path, name, data), format=name)


@pytest.mark.parametrize("name", ["native", "philly", "openb", "swf"])
def test_only_a_header(tmp_path: Path, name: str) -> None:
    header = FORMATS[name][1].splitlines()[0].encode() + b"\n"
    with pytest.raises(TraceError, match=r"no rows|only blank lines"):
        open_trace(file_of(tmp_path, name, header), format=name)


def test_a_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"0" * 50_000_000))
    monkeypatch.setattr(source, "RATIO_FLOOR", 10_000_000)
    with pytest.raises(TraceError, match=r"grows at most 200 times"):
        read_native(path)
    monkeypatch.setattr(source, "MAX_RATIO", 10_000)
    monkeypatch.setattr(source, "MAX_BYTES", 10_000_000)
    with pytest.raises(TraceError, match=r"at most 10,000,000 bytes"):
        read_native(path)


def test_a_hostile_cell_does_not_flood_or_colour_the_terminal(tmp_path: Path) -> None:
    text = NATIVE.replace("j3,30,", "j3,\x1b[31m" + "9" * 100_000 + "x,")
    with pytest.raises(TraceError) as caught:
        open_trace(file_of(tmp_path, "native", text.encode()))
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 3 * MAX_QUOTED + len(str(tmp_path))


MUTATION = st.one_of(
    st.tuples(st.just("cut"), st.integers(0, 2000)),
    st.tuples(st.just("drop line"), st.integers(0, 14)),
    st.tuples(st.just("twice line"), st.integers(0, 14)),
    st.tuples(st.just("swap columns"), st.integers(0, 10)),
    st.tuples(st.just("drop column"), st.integers(0, 10)),
    st.tuples(st.just("byte"), st.integers(0, 2000)),
    st.tuples(st.just("nul"), st.integers(0, 2000)),
    st.tuples(st.just("quote"), st.integers(0, 2000)),
    st.tuples(st.just("bom"), st.just(0)),
    st.tuples(st.just("crlf"), st.just(0)),
    st.tuples(st.just("cr"), st.just(0)),
    st.tuples(st.just("blank lines"), st.integers(1, 5)),
    st.tuples(st.just("encoding"), st.sampled_from([0, 1, 2])),
    st.tuples(st.just("delimiter"), st.just(0)),
    st.tuples(st.just("negative"), st.integers(0, 30)),
    st.tuples(st.just("gzip cut"), st.integers(0, 200)),
)


def mutate(data: bytes, kind: str, where: int) -> bytes:
    """Return the file with one thing done to it."""
    lines = data.split(b"\n")
    mark = b" " if data.startswith(b";") else b","
    at = where % max(len(data), 1)
    line = where % max(len(lines), 1)

    def columns(change: Callable[[list[bytes]], list[bytes]]) -> bytes:
        return b"\n".join(mark.join(change(row.split(mark))) for row in lines)

    def swapped(cells: list[bytes]) -> list[bytes]:
        i = where % max(len(cells), 1)
        return [*cells[i:], *cells[:i]]

    changes: dict[str, Callable[[], Any]] = {
        "cut": lambda: data[:at],
        "drop line": lambda: b"\n".join(lines[:line] + lines[line + 1 :]),
        "twice line": lambda: b"\n".join([*lines[:line], lines[line], *lines[line:]]),
        "swap columns": lambda: columns(swapped),
        "drop column": lambda: columns(lambda c: c[: where % len(c)] + c[where % len(c) + 1 :]),
        "byte": lambda: data[:at] + b"\xe9" + data[at + 1 :],
        "nul": lambda: data[:at] + b"\0" + data[at:],
        "quote": lambda: data[:at] + b'"' + data[at:],
        "bom": lambda: b"\xef\xbb\xbf" + data,
        "crlf": lambda: data.replace(b"\n", b"\r\n"),
        "cr": lambda: data.replace(b"\n", b"\r"),
        "blank lines": lambda: data.replace(b"\n", b"\n" * (where + 1)),
        "encoding": lambda: data.decode(errors="replace").encode(
            ("utf-16", "utf-32", "utf-7")[where]
        ),
        "delimiter": lambda: data.replace(mark, b";"),
        "negative": lambda: data.replace(b",", b",-", where).replace(b" 6", b" -6", where),
        "gzip cut": lambda: gzip.compress(data, mtime=0)[: max(1, len(data) // 5 - where)],
    }
    result: bytes = changes[kind]()
    return result


def records_in(name: str, data: bytes) -> int | None:
    """Count the records of a file in the plainest way; None where it has no plain answer."""
    text = data.decode("utf-8-sig", errors="replace")  # comments of SWF may hold any byte
    if name == "philly-raw":
        return len(json.loads(text))
    if '"' in text:
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    if name == "swf":
        return sum(not line.lstrip().startswith(";") for line in lines)
    return len(lines) - 1


@pytest.mark.sample(2)
@EACH
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150
)
@given(mutations=st.lists(MUTATION, min_size=1, max_size=3))
def test_mutated_files_give_a_whole_trace_or_one_clear_error(
    tmp_path: Path, name: str, mutations: list[tuple[str, int]]
) -> None:
    data = FORMATS[name][1].encode()
    for kind, where in mutations:
        data = mutate(data, kind, where)
    path = file_of(tmp_path, name, data)
    trace = opened(path, name)
    if isinstance(trace, WindtunnelError):
        assert str(path) in str(trace)
        return
    assert accounted(trace)
    content = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    expected = records_in(name, content)
    assert expected is None or trace.metadata.rows_read == expected
    assert trace.jobs.num_rows > 0
