"""Bytes that Arrow parses are given back, whether it is a table or not."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv as pcsv
import pytest

from windtunnel.arrow_csv import parsed_csv


@pytest.mark.parametrize("good", [True, False])
def test_nobody_holds_the_bytes_of_a_table(*, good: bool) -> None:
    lines = [b"a,b"] + [b"%d,x" % number for number in range(50_000)]
    data = bytearray(b"\n".join([*lines, b"1,x" if good else b"1"]))
    options = pcsv.ReadOptions(block_size=1 << 12)
    for _ in range(20):
        if good:
            assert parsed_csv(memoryview(data), read_options=options).num_rows == 50_001
        else:
            with pytest.raises(pa.ArrowInvalid):
                parsed_csv(memoryview(data), read_options=options)
        data.extend(b"")  # what a view of it forbids
        data[-1:] = data[-1:] + b""
        data.append(data.pop())
