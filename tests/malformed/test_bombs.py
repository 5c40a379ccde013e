"""Files that grow to gigabytes are refused in bounded time and memory, by every way of reading."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bombs import FAMILIES, PARQUET

pytestmark = pytest.mark.slow

#: Peak of the process, of which imports take about 270 MiB; each bomb would need thousands.
MAX_MIB = 900
#: CPU seconds of one bomb.
MAX_S = 10.0


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    folder = tmp_path_factory.mktemp("bombs")
    program = Path(__file__).with_name("bombs.py")
    ran = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-W", "error", str(program), str(folder)],
        capture_output=True,
        check=False,
        text=True,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_every_bomb_is_refused_by_name_in_bounded_memory(readings: list[dict[str, object]]) -> None:
    assert {line["name"] for line in readings} == {*FAMILIES, *PARQUET}
    for line in readings:
        assert "grows at most" in str(line["answer"]) or "a line of at most" in str(line["answer"])
        assert float(str(line["peak_mib"])) < MAX_MIB, line
        assert float(str(line["seconds"])) < MAX_S, line
