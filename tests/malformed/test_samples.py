"""The samples, which mutations start from: valid, whole, counted alike by two counters."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest
from catalogue import SAMPLES

from windtunnel.telemetry.open import TELEMETRY_FORMATS
from windtunnel.traces.readers import READERS

if TYPE_CHECKING:
    from pathlib import Path

EACH = pytest.mark.parametrize("name", SAMPLES)


def test_every_reader_has_a_sample() -> None:
    sampled = {name.partition(" ")[0] for name in SAMPLES}
    assert set(READERS) - {"helios-release"} <= sampled  # its logs are those of helios
    assert set(TELEMETRY_FORMATS) - {"genai"} <= sampled
    assert {"genai-telemetry", "curves"} <= sampled


@EACH
def test_a_sample_is_read_whole(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    reading = sample.read(sample.write(tmp_path, sample.data))
    assert reading.rows_read == sample.records
    assert reading.rows_read == reading.table.num_rows + sum(reading.dropped.values())
    if reading.trace is not None and sample.ids:
        ids = [one for given in sample.ids for one in given.split("\n") if one]
        assert sorted(reading.table["job_id"].to_pylist()) == sorted(ids)


@EACH
def test_the_other_counter_finds_as_many_records(name: str) -> None:
    sample = SAMPLES[name]
    assert sample.count(sample.data) in {sample.records, None}
    if sample.grid is not None:
        assert sample.grid.text().encode() == sample.data
        assert len(sample.grid.rows) >= 5


@pytest.mark.sample(13)
@EACH
def test_gzip_byte_order_mark_and_crlf_change_nothing(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    plain = sample.read(sample.write(tmp_path, sample.data))
    variants = {}
    if sample.table is None:
        variants["gzip"] = gzip.compress(sample.data, mtime=0)
    if sample.table is None and "curves" not in name:
        marked = b"\xef\xbb\xbf" + sample.data.replace(b"\n", b"\r\n")
        variants |= {"mark and crlf": marked, "all": gzip.compress(marked, mtime=0)}
    for kind, data in variants.items():
        reading = sample.read(sample.write(tmp_path, data))
        assert reading.table.equals(plain.table), kind
        assert reading.rows_read == plain.rows_read
