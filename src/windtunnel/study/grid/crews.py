"""Who flies the runs: processes of this machine, a Ray cluster, or any executor that is given."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import connection, get_context, parent_process
from typing import TYPE_CHECKING, Protocol

from windtunnel.errors import SpecError, quote
from windtunnel.study.grid.inputs import MappedTable

if TYPE_CHECKING:
    from windtunnel.study.grid.flying import ShippedTable
    from windtunnel.study.grid.inputs import Input

#: Words for who flies the runs.
CREWS: tuple[str, ...] = ("processes", "ray")


class WorkerDiedError(Exception):
    """The worker that flew a run died; the executor itself lives on."""


class Crew(Protocol):
    """Who flies runs.

    Attributes:
        workers: runs flown at a time.
    """

    workers: int

    def start(self) -> Executor:
        """Return an executor; called again where one broke.

        Raises:
            SpecError: there is none.
        """

    def ship(self, given: Input) -> ShippedTable:
        """Return a jobs table as the workers get it."""

    def close(self) -> None:
        """Let go of what `start` took besides the executor."""


def crew_for(on: str | Executor, workers: int | None) -> Crew:
    """Return who is to fly the runs.

    Args:
        on: ``processes``, ``ray`` (a cluster that ``RAY_ADDRESS`` names, else one of this machine),
            ``ray://HOST:PORT`` (through Ray's client), ``ray:HOST:PORT``, or an executor.
        workers: runs at a time; None = one a core of the machine or cluster.

    Raises:
        SpecError: an unknown word, or no worker.
    """
    if workers is not None and workers < 1:
        raise SpecError("--workers", f"found {workers}; expected at least 1.")
    if not isinstance(on, str):
        return GivenExecutor(on, workers or _cores())
    if on == "processes":
        return Processes(workers or _cores())
    if on == "ray" or on.startswith("ray:"):
        from windtunnel.study.grid.ray_crew import RayCluster

        return RayCluster(on, workers)
    message = f"found {quote(on)}; expected processes, ray or ray://HOST:PORT."
    raise SpecError("--on", message)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Processes:
    """Worker processes of this machine, started afresh (no copy of this process's threads)."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def start(self) -> Executor:
        """Return a pool of processes."""
        context = get_context("spawn")
        return ProcessPoolExecutor(self.workers, mp_context=context, initializer=die_with_parent)

    def ship(self, given: Input) -> ShippedTable:
        """Return the table as a file to map."""
        return MappedTable(str(given.path.absolute()))

    def close(self) -> None:
        """Do nothing: the executor is all there is."""


class GivenExecutor:
    """An executor that somebody else made, keeps and ends; it must reach this machine's files."""

    def __init__(self, executor: Executor, workers: int) -> None:
        self.workers = workers
        self._executor: Executor | None = executor

    def start(self) -> Executor:
        """Return the executor, once.

        Raises:
            SpecError: it broke, and only its owner could replace it.
        """
        executor, self._executor = self._executor, None
        if executor is None:
            raise SpecError("executor", "it broke; expected one whose workers live.")
        return _Borrowed(executor)

    def ship(self, given: Input) -> ShippedTable:
        """Return the table as a file to map."""
        return MappedTable(str(given.path.absolute()))

    def close(self) -> None:
        """Leave the executor to its owner."""


class _Borrowed(Executor):
    """An executor that is not shut down."""

    def __init__(self, executor: Executor) -> None:
        self.submit = executor.submit  # type: ignore[method-assign] # the same signature

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - the executors' signature
        """Leave the executor as it is."""


def die_with_parent() -> None:
    """End this worker when the process that started it dies, even by SIGKILL."""
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
