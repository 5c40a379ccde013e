"""Who flies the runs: processes of this machine, a Ray cluster, or any executor that is given."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from windtunnel.checked import checked_count
from windtunnel.errors import SpecError, quote
from windtunnel.study.grid.executor import StudyExecutor
from windtunnel.study.worker_processes import WorkerProcesses, end_if_importing

if TYPE_CHECKING:
    from concurrent.futures import Executor

#: Words for who flies the runs.
EXECUTORS: tuple[str, ...] = ("processes", "ray")


def executor_for(on: str | Executor, workers: int | None) -> StudyExecutor:
    """Return who is to fly the runs.

    Args:
        on: ``processes``, ``ray`` (a cluster that ``RAY_ADDRESS`` names, else one of this machine),
            ``ray://HOST:PORT`` (through Ray's client), ``ray:HOST:PORT``, or an executor.
        workers: runs at a time; None = one a core of the machine or cluster.

    Raises:
        SpecError: an unknown word, or no worker.
    """
    check_executor(on, workers)
    if not isinstance(on, str):
        return GivenExecutor(on, workers or _cores())
    if on == "processes":
        return Processes(workers or _cores())
    from windtunnel.study.grid.ray_executor import RayCluster

    return RayCluster(on, workers)


def check_executor(on: str | Executor, workers: int | None) -> None:
    """Check who is to fly, before anything is opened or written.

    Raises:
        SpecError: an unknown word, or no worker.
    """
    if workers is not None:
        checked_count("--workers", workers, "at least 1")
    if on == "processes":
        end_if_importing()
    if isinstance(on, str) and on not in EXECUTORS and not on.startswith("ray:"):
        message = f"found {quote(on)}; expected processes, ray or ray://HOST:PORT."
        raise SpecError("--on", message)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Processes(StudyExecutor):
    """Worker processes of this machine."""

    def _start(self) -> Executor:
        return WorkerProcesses(self.workers)

    def close(self, *, landed: bool) -> None:
        """End the workers."""
        if not landed and isinstance(self._executor, WorkerProcesses):
            self._executor.let_go()
        super().close(landed=landed)


class GivenExecutor(StudyExecutor):
    """An executor that somebody else made, keeps and ends; it must reach this machine's files."""

    def __init__(self, executor: Executor, workers: int) -> None:
        super().__init__(workers)
        self._executor = executor

    def _start(self) -> Executor:
        raise SpecError("executor", "it broke; expected one whose workers live.")

    def renew(self) -> None:
        """Do without: only the owner could replace it."""
        self._executor = None

    def close(self, *, landed: bool) -> None:  # noqa: ARG002 - either way
        """Leave the executor to its owner."""
        self._executor = None
