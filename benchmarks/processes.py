"""Run a command in a process of its own, and say what it took by the system's own accounting."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import NamedTuple

# The peak of a process counts from its parent's: the system notes what it held before it became
# the command. So a small process starts the command, not the one that holds the benchmarks' data.
_STARTER = """
import json, os, subprocess, sys, time
begin = time.monotonic()
process = subprocess.Popen(sys.argv[1:])
_, status, usage = os.wait4(process.pid, 0)
took = [usage.ru_utime, usage.ru_stime, time.monotonic() - begin, usage.ru_maxrss / 2**20]
print(json.dumps([os.waitstatus_to_exitcode(status), *took]), file=sys.stderr)
"""


class Measured(NamedTuple):
    """What a process printed and what it took: CPU and wall time in s, peak memory in GiB."""

    printed: str
    user: float
    system: float
    wall: float
    memory: float

    @property
    def cpu(self) -> float:
        """Return the CPU time."""
        return self.user + self.system


def measured(command: list[str]) -> Measured:
    """Run a command to its end; one that fails is an error of the benchmark."""
    begun = [sys.executable, "-S", "-c", _STARTER, *command]
    ended = subprocess.run(begun, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    *said, last = ended.stderr.splitlines()
    code, *took = json.loads(last)
    assert code == 0, "\n".join(said)
    return Measured(ended.stdout, *took)
