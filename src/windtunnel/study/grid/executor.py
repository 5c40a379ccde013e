"""What flies the runs of a study: an executor, and how it gets the jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from windtunnel.study.grid.inputs import MappedTable

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from windtunnel.study.grid.flying import ShippedTable
    from windtunnel.study.grid.inputs import Input


class StudyExecutor(ABC):
    """Who flies runs: an executor, made when it is first needed.

    Attributes:
        workers: runs flown at a time.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._executor: Executor | None = None

    @property
    def executor(self) -> Executor:
        """The executor.

        Raises:
            SpecError: there is none.
        """
        if self._executor is None:
            self._executor = self._start()
        return self._executor

    def renew(self) -> None:
        """Let go of an executor that broke; the next one is another."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None

    def close(self, *, landed: bool) -> None:
        """End the workers: after all runs have landed, or at once, whatever they fly."""
        if self._executor is not None:
            self._executor.shutdown(wait=landed, cancel_futures=True)
            self._executor = None

    def ship(self, given: Input) -> ShippedTable:
        """Return a jobs table as the workers get it: a file to map."""
        return MappedTable(str(given.path.absolute()))

    @abstractmethod
    def _start(self) -> Executor:
        """Return a new executor.

        Raises:
            SpecError: there is none.
        """
