"""`Jobs` and `JobView`: the jobs table as a policy sees it."""

from __future__ import annotations

from abc import ABCMeta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence


class Jobs:
    """A jobs table as numpy columns: ``jobs.num_gpus``, ``jobs.user`` ...

    Numbers are float64 arrays of shape (n,) with NaN for unknown; text columns are object arrays
    with None. Row order = the table's. Extra columns of the source are there too.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._columns: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_") or name == "table":
            raise AttributeError(name)
        if name not in self._columns:
            if name not in self.table.column_names:
                known = ", ".join(self.table.column_names)
                raise AttributeError(f"jobs have no column {name!r}; they have: {known}")
            values = self.table[name]
            if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
                array = np.asarray(values.cast(pa.float64()).to_numpy(), dtype=np.float64)
            else:
                array = np.array(values.to_pylist(), dtype=object)
            array.flags.writeable = False
            self._columns[name] = array
        return self._columns[name]

    @cached_property
    def views(self) -> Sequence[JobView]:
        """One `JobView` a row; built on first use."""
        return [JobView(self, row) for row in range(len(self))]


class JobView(metaclass=ABCMeta):  # the kernel has views of its own
    """One job, for tier-2 and tier-3 policies: ``job.num_gpus``, ``job.user`` ... by column name.

    Attributes:
        row: its row in the jobs table.
        number: its arrival number in the run, -1 outside one.
        remaining: work left in seconds under its recorded allocation, at the current instant.
        run_time: seconds spent on GPUs so far (attained service / GPUs).
        running: whether it holds GPUs now.
    """

    __slots__ = ("_jobs", "duration", "num_gpus", "number", "remaining", "row", "run_time",
                 "running", "submit_time")  # fmt: skip

    _jobs: Jobs
    row: int
    number: int
    submit_time: float
    num_gpus: float
    duration: float
    remaining: float
    run_time: float
    running: bool

    def __init__(self, jobs: Jobs, row: int, number: int = -1) -> None:
        # The columns that policies read at every decision are plain attributes; the rest is looked
        # up by name.
        duration = float(jobs.duration[row])
        show(
            self,
            _jobs=jobs,
            row=row,
            number=number,
            submit_time=float(jobs.submit_time[row]),
            num_gpus=float(jobs.num_gpus[row]),
            duration=duration,
            remaining=duration,
            run_time=0.0,
            running=False,
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # a copy asks, before it has any attribute
            raise AttributeError(name)
        value = getattr(self._jobs, name)[self.row]
        return float(value) if isinstance(value, np.floating) else value

    def __setattr__(self, name: str, value: object) -> None:
        message = (
            f"jobs cannot be changed: found job.{name} = {value!r}; keep what you note of jobs"
        )
        raise AttributeError(f"{message} in a dict of your own, by job.number.")

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        show(self, **state[1])

    def __repr__(self) -> str:
        return f"JobView({self.job_id!r}, num_gpus={self.num_gpus:g})"


def show(view: JobView, **values: Any) -> None:
    """Let a view of a job show these values; policies cannot."""
    for name, value in values.items():
        object.__setattr__(view, name, value)
