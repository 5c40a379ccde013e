"""The same inputs, settings and seed give the same bytes, wherever and however they are flown."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

TRACE = "synthetic:kalos:jobs=500"
STUDY = """\
policies = ["fifo", "sjf"]
clusters = ["302x8"]
seeds = 2
[[traces]]
trace = "synthetic:kalos:jobs=300"
"""
COMMANDS = {
    "outcome": f"simulate {TRACE} --placement random --seed 7 --out out.csv",
    "table": f"simulate {TRACE} --policy las --out out.parquet",
    "timeline": f"simulate {TRACE} --policy srtf --timeline out.json",
    "page": f"compare {TRACE} --policies fifo,srtf --out out.html",
    "log": f"report {TRACE} --out out.html",
    "surface": f"whatif {TRACE} --anyway --surface nodes=300..302/2,policy=fifo,sjf --out out.html",
    "twin": f"fit {TRACE} --out out.twin.json",
    "study": "study run study.toml --out out --workers WORKERS",
}
#: Hash seed, locale, zone, threads, workers.
WORLDS = (("0", "C", "UTC", "1", "1"), ("12345", "C.UTF-8", "Asia/Kathmandu", "4", "2"))


def _written(place: Path, command: str, world: tuple[str, ...]) -> dict[str, bytes]:
    seed, locale, zone, threads, workers = world
    place.mkdir()
    (place / "study.toml").write_text(STUDY)
    limits = ("OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS", "ARROW_IO_THREADS")
    subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-m", "windtunnel", *command.replace("WORKERS", workers).split()],
        cwd=place,
        env={
            **os.environ,
            **dict.fromkeys(limits, threads),
            "PYTHONHASHSEED": seed,
            "LC_ALL": locale,
            "LANG": locale,
            "TZ": zone,
        },
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=200,
    )
    # How long a study's runs took is kept apart, and is never the same.
    files = (path for path in sorted(place.rglob("*")) if path.is_file())
    files = (path for path in files if path.name != "timings.jsonl")
    return {str(path.relative_to(place)): path.read_bytes() for path in files}


@pytest.mark.parametrize("what", COMMANDS)
def test_two_worlds_write_the_same_bytes(what: str, tmp_path: Path) -> None:
    one, other = (
        _written(tmp_path / str(number), COMMANDS[what], world)
        for number, world in enumerate(WORLDS)
    )
    assert len(one) > 1
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []
