"""No memory for what the loop has to remember: the run ends with MemoryError."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: Flies jobs that come at once under a policy that, asked for the last one's key, leaves it 6 MiB
#: of memory: the flight recorder's rows of why each job waits need more.
FLIGHT = """
import resource, sys
from pathlib import Path
import numpy as np, windtunnel as wt

asked, count = [], 200_000
sys.unraisablehook = lambda _: None  # a sentence each time takes longer than the run

def key(job, now):
    asked.append(now)
    if len(asked) == count:
        most = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (most + 6_000 * 1024,) * 2)
    return 0.0

jobs = dict(submit_time=np.zeros(count), duration=np.arange(count) % 100 + 1.0,
            num_gpus=np.ones(count))
try:
    wt.simulate(jobs, "8x8", key, queueing="strict", record=sys.argv[1])
except MemoryError as error:
    print("MemoryError")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="it needs Linux")
@pytest.mark.skipif(
    os.environ.get("WINDTUNNEL_KERNEL") == "sanitized", reason="sanitizers need memory themselves"
)
def test_a_run_without_memory_ends(tmp_path: Path) -> None:
    """An array that is to grow cannot, inside of what can raise nothing."""
    command = [sys.executable, "-c", FLIGHT, str(tmp_path / "run.parquet")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603 - our own words
    assert ran.returncode == 0, ran.stderr[-500:]
    assert ran.stdout == "MemoryError\n"
