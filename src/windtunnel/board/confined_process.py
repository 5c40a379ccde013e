"""The process in which a policy that nobody vouches for decides; started by `confined`.

It is sent what a scheduler may know when it may know it, and nothing else is in it. The module is
imported once; each run is a fork of that moment, so that no run remembers another. What a policy
has no business with ends the process, whatever the policy catches: `_FORBIDDEN`, and `_DECIDING`
while a run is on, in which no file can be opened either (`RLIMIT_NOFILE`).

Messages are msgpack behind their length, 8 bytes. Requests come with ``do``, answers have ``is``:
``answer``, ``ask`` (a question about the cluster), ``decision``, ``caught`` or ``error``.
"""

from __future__ import annotations

import os
import resource
import signal
import struct
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Audit events (PEP 578) that no policy has a reason for: beginnings of their names.
_FORBIDDEN: tuple[str, ...] = (
    *("subprocess.", "socket.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork"),
    *("os.kill", "os.truncate", "os.remove", "os.rename", "os.mkdir", "os.link", "os.symlink"),
    *("ctypes.", "gc.", "pty.", "shutil.", "sqlite3.", "urllib.", "mmap.", "resource.", "signal."),
    *("sys._current_frames", "sys.addaudithook", "webbrowser.", "syslog.", "winreg.", "fcntl."),
)
#: And while it decides.
_DECIDING: tuple[str, ...] = (
    *("open", "os.", "import", "_thread.start_new_thread", "glob.", "tempfile.", "pathlib."),
)
#: Packages of windtunnel that make jobs or fly them.
_PACKAGES: tuple[str, ...] = tuple(
    f"windtunnel.{package}"
    for package in ("board", "traces", "study", "report", "cli", "lab", "testing", "rl")
)
#: Address space over what the process has before it knows the policy, bytes.
_MEMORY = 2 << 30
_ENDING = {signal.SIGXCPU: "it took more CPU time than it has", signal.SIGKILL: "it was killed"}


class Line:
    """The line to the simulator."""

    def __init__(self) -> None:
        self.source, self.sink = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)

    def get(self) -> Any:
        """Return the next request; the process ends with the other side."""
        return msgspec.msgpack.decode(self._read(struct.unpack("<q", self._read(8))[0]))

    def _read(self, size: int) -> bytes:
        parts = []
        while size:
            part = os.read(self.source, size)
            if not part:
                os._exit(0)
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def put(self, kind: str, **content: Any) -> None:
        """Send an answer."""
        sent = msgspec.msgpack.encode({"is": kind, **content})
        sent = struct.pack("<q", len(sent)) + sent
        while sent:
            sent = sent[os.write(self.sink, sent) :]


class Guard:
    """What ends the process where a policy does what it has no business with.

    Args:
        line: where it is reported.
    """

    def __init__(self, line: Line) -> None:
        self.line, self.deciding, self.own = line, False, False

    def watch(self) -> None:
        """Watch from now on; nothing stops it."""
        sys.addaudithook(self._heard)

    def _heard(self, event: str, given: tuple[Any, ...]) -> None:
        if self.own:
            return
        if event.startswith(_FORBIDDEN) or (self.deciding and event.startswith(_DECIDING)):
            what = f" {given[0]!r}" if given and isinstance(given[0], str | bytes | int) else ""
            self.caught(f"{event}{what[:80]}")
        elif event == "open" and not self.deciding and _writes(given):
            self.caught(f"opens {given[0]!r} to write")
        elif event == "import" and str(given[0]).startswith(_PACKAGES):
            self.caught(f"imports {given[0]}, which has the jobs")

    def caught(self, what: str) -> NoReturn:
        """Tell what the policy did, and end."""
        self.own = True
        self.line.put("caught", what=what, deciding=self.deciding)
        os._exit(3)


def _writes(given: tuple[Any, ...]) -> bool:
    mode, flags = given[1], given[2]
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return bool(isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _load(line: Line, guard: Guard, path: str) -> Any:
    """Return the policy, its module imported under guard, and tell what it is like."""
    from windtunnel.errors import WindtunnelError
    from windtunnel.policies import POLICIES, resolve_policy

    list(POLICIES)  # imports what is built in, which needs no watching
    guard.watch()
    try:
        policy = resolve_policy(path)
    except WindtunnelError as error:
        line.put("error", what=str(error))
        os._exit(1)
    names = ["label", "tier", "queueing", "preemptive", "every", "turn", "elastic", "estimates"]
    names += ["by", "by_remaining", "by_service", "chooses_nodes", "fills", "watches"]
    like = {name: getattr(policy, name) for name in names}
    levels = None if policy.levels is None else [policy.levels.bounds, policy.levels.keys]
    line.put("answer", of={**like, "levels": levels})
    return policy


def _warm() -> None:
    """Import what policies use, so that nothing is left to open while they decide."""
    import bisect
    import collections
    import copy
    import ctypes
    import functools
    import heapq
    import itertools
    import math
    import random
    import statistics

    import numpy as np
    import numpy.fft
    import numpy.linalg
    import numpy.random

    import windtunnel as wt
    from windtunnel.board import seen

    _ = (bisect, collections, copy, ctypes, functools, heapq, itertools, math, random, statistics)
    _ = (np, numpy.fft, numpy.linalg, numpy.random, seen)
    _ = [
        wt.Policy,
        wt.policy,
        wt.Start,
        wt.Preempt,
        wt.Wake,
        wt.Move,
        wt.Resize,
        wt.Jobs,
        wt.JobView,
    ]


def _limit(seconds: float) -> None:
    """Bound what a run may take: CPU seconds, memory, files (none)."""
    pages = 0
    if os.path.exists("/proc/self/statm"):  # noqa: PTH110 - the process is small
        with open("/proc/self/statm", encoding="ascii") as about:  # noqa: PTH123 - ditto
            pages = int(about.read().split()[0])
    whole = max(int(seconds), 1)
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + _MEMORY,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def serve(line: Line, requests: Iterable[Any]) -> None:
    """Import the policy, then fork a process a run."""
    guard = Guard(line)
    policy: Any = None
    for request in requests:
        if request["do"] == "load":
            _warm()
            policy = _load(line, guard, request["path"])
            continue
        if request["do"] == "end":  # of a run that has ended by itself
            continue
        guard.own = True
        child = os.fork()
        if child == 0:
            _fly(line, guard, policy, request)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        guard.own = False
        if os.WIFSIGNALED(status):
            ending = _ENDING.get(
                signal.Signals(os.WTERMSIG(status)), f"signal {os.WTERMSIG(status)}"
            )
            line.put("caught", what=ending, deciding=True)


def _fly(line: Line, guard: Guard, policy: Any, request: Any) -> None:
    """Answer for one run."""
    from windtunnel.board.seen import Answering

    _limit(request["seconds"])
    guard.deciding, guard.own = True, False
    try:
        Answering(line, guard, policy, request).answer()
    except MemoryError:
        guard.own = True
        line.put("caught", what="it took more memory than it has", deciding=True)
    except Exception as error:  # noqa: BLE001 - whatever a policy raises
        guard.own = True
        line.put("error", what=f"{type(error).__name__}: {error}"[:500])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other side's business
    wire = Line()
    serve(wire, iter(wire.get, None))
