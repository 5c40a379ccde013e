"""Published curves: real shapes of pickles are read, and no pickle is ever run."""

from __future__ import annotations

import base64
import contextlib
import os
import pickle
import struct
import subprocess
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windtunnel.errors import TraceError
from windtunnel.telemetry.published import CURVES, percentiles

#: ``[Series([1.5, 2.5]), Series([10., 100.], name="y", index=[3, 4])]`` as pandas 1.5.3 and numpy
#: 1.26 write it, protocol 4: names and layouts that newer ones no longer write.
OLD_PANDAS = (
    "gASVwAMAAAAAAABdlCiMEnBhbmRhcy5jb3JlLnNlcmllc5SMBlNlcmllc5STlCmBlH2UKIwEX21ncpSMHnBhbmRh"
    "cy5jb3JlLmludGVybmFscy5tYW5hZ2Vyc5SMElNpbmdsZUJsb2NrTWFuYWdlcpSTlCmBlChdlIwYcGFuZGFzLmNv"
    "cmUuaW5kZXhlcy5iYXNllIwKX25ld19JbmRleJSTlIwZcGFuZGFzLmNvcmUuaW5kZXhlcy5yYW5nZZSMClJhbmdl"
    "SW5kZXiUk5R9lCiMBG5hbWWUTowFc3RhcnSUSwCMBHN0b3CUSwKMBHN0ZXCUSwF1hpRSlGFdlIwVbnVtcHkuY29y"
    "ZS5tdWx0aWFycmF5lIwMX3JlY29uc3RydWN0lJOUjAVudW1weZSMB25kYXJyYXmUk5RLAIWUQwFilIeUUpQoSwFL"
    "AoWUaB2MBWR0eXBllJOUjAJmOJSJiIeUUpQoSwOMATyUTk5OSv////9K/////0sAdJRiiUMQAAAAAAAA+D8AAAAA"
    "AAAEQJR0lGJhXZRoDmgRfZQoaBNOaBRLAGgVSwJoFksBdYaUUpRhfZSMBjAuMTQuMZR9lCiMBGF4ZXOUaAuMBmJs"
    "b2Nrc5RdlH2UKIwGdmFsdWVzlGgjjAhtZ3JfbG9jc5SMCGJ1aWx0aW5zlIwFc2xpY2WUk5RLAEsCSwGHlFKUdWF1"
    "c3SUYowEX3R5cJSMBnNlcmllc5SMCV9tZXRhZGF0YZRdlGgTYYwFYXR0cnOUfZSMBl9mbGFnc5R9lIwXYWxsb3dz"
    "X2R1cGxpY2F0ZV9sYWJlbHOUiHNoE051YmgDKYGUfZQoaAZoCSmBlChdlGgOjBtwYW5kYXMuY29yZS5pbmRleGVz"
    "Lm51bWVyaWOUjApJbnQ2NEluZGV4lJOUfZQojARkYXRhlGgcaB9LAIWUaCGHlFKUKEsBSwKFlGgmjAJpOJSJiIeU"
    "UpQoSwNoKk5OTkr/////Sv////9LAHSUYolDEAMAAAAAAAAABAAAAAAAAACUdJRiaBNOdYaUUpRhXZRoHGgfSwCF"
    "lGghh5RSlChLAUsChZRoKYlDEAAAAAAAACRAAAAAAAAAWUCUdJRiYV2UaA5oUH2UKGhSaBxoH0sAhZRoIYeUUpQo"
    "SwFLAoWUaFmJQxADAAAAAAAAAAQAAAAAAAAAlHSUYmgTTnWGlFKUYX2UaDN9lChoNWhNaDZdlH2UKGg5aGJoOmg9"
    "SwBLAksBh5RSlHVhdXN0lGJoQWhCaENoRGhFfZRoR32UaEmIc2gTjAF5lHViZS4="
)


def curves_of(path: Path, arrays: list[Any], protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(arrays, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", ["<f8", ">f8", "<f4", "<i8", "<i4", "|u1"])
def test_arrays_of_numpy_in_every_protocol(tmp_path: Path, protocol: int, kind: str) -> None:
    x, y = np.arange(5).astype(kind), np.linspace(0, 100, 5)
    table = percentiles(curves_of(tmp_path / "gpu_power_seren.pkl", [x, y], protocol))
    assert table.column_names == ["source", "metric", "value", "percent"]
    assert table["value"].to_pylist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert table["percent"].to_pylist() == [0.0, 25.0, 50.0, 75.0, 100.0]
    assert set(table["metric"].to_pylist()) == {"power_w"}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_series_of_pandas_in_every_protocol(tmp_path: Path, protocol: int) -> None:
    pandas = pytest.importorskip("pandas")
    x = pandas.Series([1.5, 2.5, 9.0])
    y = pandas.Series([10.0, 50.0, 100.0], name="y", index=[3, 4, 7])
    path = curves_of(tmp_path / "mine.pkl", [x, y, np.ones(2), np.zeros(2)], protocol)
    table = percentiles(path)
    assert table["metric"].to_pylist() == ["curve 1"] * 3 + ["curve 2"] * 2
    assert table["value"].to_pylist() == [1.5, 2.5, 9.0, 1.0, 1.0]
    assert table["percent"].to_pylist() == [10.0, 50.0, 100.0, 0.0, 0.0]


def test_series_of_a_pandas_before_2(tmp_path: Path) -> None:
    path = tmp_path / "util_gpu_pai.pkl"
    path.write_bytes(base64.b64decode(OLD_PANDAS))
    table = percentiles(path)
    assert table["value"].to_pylist() == [1.5, 2.5]
    assert table["percent"].to_pylist() == [10.0, 100.0]
    assert set(table["metric"].to_pylist()) == {"gpu_util_pct"}


class Evil:
    """Pickles as a call of anything."""

    def __init__(self, call: Any, *arguments: Any) -> None:
        self.made = (call, arguments)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.made


def _evil(mark: str) -> dict[str, Any]:
    array = np.arange(3.0)
    return {
        "os.system": Evil(os.system, f"touch {mark}"),
        "eval": Evil(eval, f"open({mark!r}, 'w')"),
        "exec": Evil(exec, f"open({mark!r}, 'w')"),
        "open": Evil(open, mark, "w"),
        "getattr": Evil(getattr, Evil(__import__, "os"), "system"),
        "import": Evil(__import__, "os"),
        "popen": Evil(subprocess.Popen, ["touch", mark]),
        "in the list": [array, Evil(os.system, f"touch {mark}")],
        "beside arrays": [array, array, {"x": [(Evil(os.system, f"touch {mark}"),)]}],
        "objects": [np.array([Evil(os.system, f"touch {mark}")], dtype=object), array],
        "other class": OrderedDict(a=1),
        "numpy load": Evil(np.load, mark),
        "numpy fromfile": Evil(np.fromfile, mark),
    }


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_nothing_that_a_pickle_names_is_run(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "it ran"
    for name, evil in _evil(str(mark)).items():
        path = curves_of(tmp_path / "evil.pkl", evil, protocol)
        with pytest.raises(TraceError, match="pickle") as caught:
            percentiles(path)
        assert len(str(caught.value)) < 500, name
        assert not mark.exists(), name


def _op(*parts: bytes) -> bytes:
    return b"\x80\x04" + b"".join(parts) + b"."


def _text(word: str) -> bytes:
    return b"\x8c" + bytes([len(word)]) + word.encode()


@pytest.mark.parametrize(
    "data",
    [
        _op(b"cos\nsystem\n", _text("touch it"), b"\x85R"),
        _op(b"(", _text("touch it"), b"ios\nsystem\n"),  # INST
        _op(b"(cos\nsystem\n", _text("touch it"), b"o"),  # OBJ
        _op(_text("os"), _text("system"), b"\x93", _text("touch it"), b"\x85R"),
        _op(_text("numpy"), _text("core.multiarray.os.system"), b"\x93)R"),
        _op(_text("numpy.dtype"), _text("__init__.__globals__"), b"\x93"),
        _op(_text("numpy"), b"\x94", _text("ndarray.__class__"), b"\x93)R"),
        _op(b"cnumpy\nndarray\ncbuiltins\neval\n\x85R"),
        _op(b"\x82\x01"),  # EXT1: the registry of extensions
        _op(_text("id"), b"Q"),  # BINPERSID
        _op(b"Pid\n"),
        _op(b"]\x94h\x00a"),  # a list in itself
        _op(b"cnumpy\nndarray\n)\x81}b"),
        _op(b"cnumpy\nndarray\n)}\x92"),  # NEWOBJ_EX
        _op(b"]", b"cnumpy\nndarray\n", b"a"),
        _op(b"]", b"cnumpy.core.multiarray\n_reconstruct\n", b"cnumpy\nndarray\n",
            b"J\xff\xff\xff\x7f\x85C\x01b\x87Ra"),  # 2^31 rows of nothing
        _op(b"](K\x01K\x02e"),
        _op(b"\x97"),  # NEXT_BUFFER
        _op(b"e"),
        _op(b"h\x07"),
        _op(b"0"),
        _op(b"}(K\x01K\x02u"),
        b".",
        b"",
        b"not a pickle at all",
        b"\x80\xff.",
    ],
)  # fmt: skip
def test_tricks_end_in_one_message(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "util_gpu_pai.pkl"
    path.write_bytes(data)
    before = set(tmp_path.iterdir()) | set(Path.cwd().glob("it"))
    with pytest.raises(TraceError):
        percentiles(path)
    assert set(tmp_path.iterdir()) | set(Path.cwd().glob("it")) == before


def _array_pickle(kind: bytes, shape: bytes, raw: bytes) -> bytes:
    return _op(
        b"]cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R",
        b"(K\x01", shape, b"\x85cnumpy\ndtype\n", kind, b"\x89\x88\x87R",
        b"(K\x03", _text("<"), b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89", raw, b"tba",
    )  # fmt: skip


def test_bombs_take_no_memory(tmp_path: Path) -> None:
    """Claims of size without bytes behind them, and structures that double at each step."""
    nested = b")" + b"".join(
        b"\x940h" + bytes([n]) + b"h" + bytes([n]) + b"\x86" for n in range(64)
    )
    bombs = {
        "a long text that is not there": _op(b"\x8d" + struct.pack("<Q", 2**40)),
        "long bytes that are not there": _op(b"\x8e" + struct.pack("<Q", 2**62)),
        "a memo far out": _op(b"]r\xff\xff\xff\xff"),
        "a huge shape": _array_pickle(
            _text("f8"), b"\x8a\x06" + b"\xff" * 5 + b"\x00", b"C\x08" + b"0" * 8
        ),
        "a negative shape": _array_pickle(_text("f8"), b"J\xff\xff\xff\xff", b"C\x00"),
        "objects": _array_pickle(_text("O8"), b"K\x01", b"C\x08" + b"0" * 8),
        "a long number": _op(b"I" + b"9" * 100_000 + b"\n"),
        "tuples of tuples as a key": _op(b"}" + nested + b"K\x01s"),
        "tuples of tuples": _op(b"]" + nested + b"a"),
    }
    for name, data in bombs.items():
        path = tmp_path / "bomb.pkl"
        path.write_bytes(data)
        with pytest.raises(TraceError) as caught:
            percentiles(path)
        assert len(str(caught.value)) < 500, name
    good = _array_pickle(_text("f8"), b"K\x01", b"C\x08" + struct.pack("<d", 4.5))
    path.write_bytes(good)
    with pytest.raises(TraceError, match="pairs"):
        percentiles(path)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "steps", [b"(", b"]a", b"K\x01", b"cnumpy\nndarray\n", b"(cnumpy\nndarray\n)R", b"\x85"]
)
def test_millions_of_steps_are_refused_at_once(tmp_path: Path, steps: bytes) -> None:
    path = tmp_path / "long.pkl"
    path.write_bytes(_op(b"])" + steps * (20_000_000 // len(steps))))
    began = time.process_time()
    with pytest.raises(TraceError, match="steps"):
        percentiles(path)
    assert time.process_time() - began < 2.0


@pytest.mark.sample(2)
@pytest.mark.parametrize("protocol", range(6))
def test_as_many_arrays_as_anybody_has_are_read(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "many.pkl"
    path.write_bytes(pickle.dumps([np.arange(9.0) for _ in range(2000)], protocol=protocol))
    assert percentiles(path).num_rows == 9000


@pytest.mark.sample(2)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_a_cut_pickle_is_refused(tmp_path: Path, protocol: int) -> None:
    whole = pickle.dumps([np.arange(4.0), np.arange(4.0)], protocol=protocol)
    path = tmp_path / "cut.pkl"
    for size in range(1, len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(TraceError, match="pickle"):
            percentiles(path)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_pickle_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    protocol = data.draw(st.integers(0, 5))
    whole = bytearray(pickle.dumps([np.arange(3.0), np.arange(3.0)], protocol=protocol))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "x.pkl"
    path.write_bytes(bytes(whole))
    with contextlib.suppress(TraceError):
        assert percentiles(path).num_rows <= 3


def test_curves_that_do_not_match(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="pairs of values"):
        percentiles(curves_of(tmp_path / "x.pkl", [np.ones(2)]))
    with pytest.raises(TraceError, match="2 values and 3 percents"):
        percentiles(curves_of(tmp_path / "x.pkl", [np.ones(2), np.ones(3)]))
    with pytest.raises(TraceError, match="Item 0"):
        percentiles(curves_of(tmp_path / "x.pkl", [np.ones((2, 2)), np.ones(3)]))
    with pytest.raises(TraceError, match="no list"):
        percentiles(curves_of(tmp_path / "x.pkl", np.ones(2)))  # type: ignore[arg-type]
    with pytest.raises(TraceError, match="at least one curve"):
        percentiles(curves_of(tmp_path / "x.pkl", []))


def test_a_saved_file_with_objects_is_refused(tmp_path: Path) -> None:
    mark = tmp_path / "it ran"
    path = tmp_path / "x.npz"
    np.savez(path, a__b__x=np.array([Evil(os.system, f"touch {mark}")], dtype=object))
    with pytest.raises(TraceError, match="npz"):
        percentiles(path)
    assert not mark.exists()
    np.savez(path, a__b__x=np.ones(2))
    with pytest.raises(TraceError, match="SOURCE__METRIC__x"):
        percentiles(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(TraceError, match="npz"):
        percentiles(path)


#: p10, p25, p50, p75, p90, p99 of AcmeTrace's pickles, as printed (three figures or so).
QUANTILES: dict[tuple[str, str], tuple[float | None, ...]] = {
    ("util_gpu_seren", "gpu_util_pct"): (0, 0, 99, 99, 100, 100),
    ("util_gpu_kalos", "gpu_util_pct"): (0, 0, 97, 100, 100, 100),
    ("util_gpu_kalos_full", "gpu_util_pct"): (0, 0, 98, 99, 100, 100),
    ("util_gpu_philly", "gpu_util_pct"): (0, 0, 48.45, 92.0, 99.27, 100),
    ("util_gpu_seren", "gpu_mem_pct"): (0, 0, 39.28, 60.85, 82.68, 98.9),
    ("util_gpu_kalos_full", "gpu_mem_pct"): (0, 0, 75.41, 77.38, 88.10, 97.3),
    ("util_gpu_seren", "sm_activity_pct"): (0, 0, 50.16, 73.03, 80.87, 92.2),
    ("util_gpu_kalos_full", "sm_activity_pct"): (0, 0, 33.26, 72.84, 91.35, 99.1),
    ("util_gpu_seren", "tc_or_occupancy_pct"): (0, 0, 13.96, 20.37, 23.77, 49.0),
    ("util_gpu_kalos_full", "tc_or_occupancy_pct"): (0, 0, 9.31, 20.55, 25.03, 50.4),
    ("util_cpu_mem_seren", "cpu_util_pct"): (0.29, 0.64, 7.98, 13.7, 45.0, 73.3),
    ("util_cpu_mem_kalos", "cpu_util_pct"): (1.34, 3.23, 20.1, 27.6, 39.5, 95.8),
    ("util_cpu_mem_seren", "cpu_mem_pct"): (3.67, 7.05, 15.0, 23.9, 33.0, 51.8),
    ("util_cpu_mem_kalos", "cpu_mem_pct"): (4.08, 4.98, 7.18, 9.28, 18.6, 43.4),
    ("gpu_power_seren", "power_w"): (63.0, 66.2, 96.5, 290.2, 395.1, 436.6),
    ("gpu_power_kalos", "power_w"): (63.0, 66.4, 101.4, 371.8, 403.6, 439.7),
    ("gpu_temp_seren", "gpu_temp_c"): (28, 31, 39, 53, 61, 69),
    ("gpu_temp_kalos", "gpu_temp_c"): (27, 30, 40, 51, 58, 66),
    ("server_power", "gpu_server_w"): (1512, 1692.5, 2520, 4284, 4851, 5418),
    ("server_power", "cpu_server_w"): (522, 540, 546, 648, 678, 732),
    ("ib_seren", "ib_send"): (0, 0, 0, 3557.7, 5446.1, 7352.3),
}


@pytest.mark.data
def test_the_published_quantiles(data_dir: Path) -> None:
    table = percentiles(data_dir / "acme" / "utilization_quantiles.npz")
    source, metric = (np.array(table[name].to_pylist()) for name in ("source", "metric"))
    value, percent = (table[name].to_numpy() for name in ("value", "percent"))
    known = {(s, m) for s, metrics in CURVES.items() for m in metrics}
    assert set(zip(source.tolist(), metric.tolist(), strict=True)) == known
    assert len(known) == 27 + 1
    for (of, what), printed in QUANTILES.items():
        curve = (source == of) & (metric == what)
        found = np.interp([10, 25, 50, 75, 90, 99], percent[curve], value[curve])
        for got, expected in zip(found, printed, strict=True):
            assert got == pytest.approx(expected, rel=6e-3, abs=0.06), (of, what)
    pai = (source == "util_gpu_pai") & (metric == "gpu_util_pct")
    assert (int(pai.sum()), round(float(percent[pai][0]), 2)) == (74, 36.07)
    for of, share in (
        ("util_gpu_seren", 31.4),
        ("util_gpu_kalos", 33.8),
        ("util_gpu_philly", 32.2),
    ):
        curve = (source == of) & (metric == "gpu_util_pct")
        assert percent[curve][value[curve] == 0].max() == pytest.approx(share, abs=0.1)
