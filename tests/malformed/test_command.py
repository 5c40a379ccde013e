"""Mutated files through the command: one message and nothing written, or a whole file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from catalogue import SAMPLES
from click.testing import CliRunner
from drawn import MORE, mutated
from hypothesis import given, note, settings

from windtunnel.cli.root import windtunnel

if TYPE_CHECKING:
    from pathlib import Path

    from mutants import Mutant

#: Samples that the command reads by themselves, one of each way of reading.
NAMES = ("native", "swf", "sacct", "philly-raw", "kueue", "batsim", "opendc parquet", "helios")


@pytest.mark.parametrize("name", NAMES)
def test_convert_refuses_in_one_message_or_writes_a_whole_file(tmp_path: Path, name: str) -> None:
    sample = SAMPLES[name]
    out = tmp_path / "out.parquet"
    codes: set[int] = set()
    whole = ["convert", str(sample.write(tmp_path, sample.data)), str(out)]
    assert CliRunner().invoke(windtunnel, whole).exit_code == 0
    out.unlink()

    @settings(max_examples=15 * MORE)
    @given(mutant=mutated(sample))
    def each(mutant: Mutant) -> None:
        note(mutant.changes)
        path = sample.write(tmp_path, mutant.data, mutant.suffix)
        words = ["convert", str(path), str(out), "--format", name.partition(" ")[0]]
        ran = CliRunner().invoke(windtunnel, words)
        assert ran.exception is None or isinstance(ran.exception, SystemExit)
        assert "Traceback" not in ran.stderr
        codes.add(ran.exit_code)
        if ran.exit_code == 0:
            assert pq.ParquetFile(out).metadata.num_rows > 0
            out.unlink()
        else:
            assert ran.exit_code == 2
            assert ran.stdout == ""
            assert ran.stderr.startswith("Error: ")
            assert ran.stderr.count("Error: ") == 1
            assert str(path) in ran.stderr.replace("\n", "") or path.name in ran.stderr
        path.unlink()
        assert {entry.name for entry in tmp_path.iterdir()} <= set(sample.beside)

    each()
    assert codes <= {0, 2}
