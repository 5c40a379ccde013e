"""`Minutes`: what jobs have used, and what those that run may still use, of limits on both.

``GrpTRESMins`` counts time of processors, memory, nodes or GPUs that was used; it decays as fair
shares do, but for a QOS with ``NoDecay``, and counts ``UsageFactor`` times. ``GrpTRESRunMins``
counts what running jobs may still use. slurmctld brings both up to date where it calculates
priorities, with multifactor ones alone (sacctmgr(1)); with basic ones nothing is ever used, and a
job holds all of its time until it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.sim.slurm.meters import MINUTES, RUN_MINUTES, TRES

if TYPE_CHECKING:
    from windtunnel.sim.slurm.tables import SlurmTables


class Minutes:
    """Seconds of each TRES by meter, given to the kernel's limits as they change."""

    def __init__(self, tables: SlurmTables, decay: float) -> None:
        self._tables, self._limits, meters = tables, tables.limits, tables.meters
        self._decay = [1.0 if stays else decay for stays in meters.is_kept]
        self._used_of = _limited(tables, MINUTES)
        self._running_of = _limited(tables, RUN_MINUTES)
        self._used = {cell: 0.0 for own in self._used_of for cell in own}
        #: Of the time that its jobs may run, how much of each running one is gone already, s.
        self._gone: dict[int, int] = {}

    @property
    def may_run_out(self) -> bool:
        """Whether anything is limited that running jobs use up."""
        return bool(self._used)

    def age(self, seconds: float) -> None:
        """Let usage decay for so long."""
        for cell in self._used:
            self._set(cell, self._used[cell] * self._decay[cell[0]] ** seconds)

    def use(self, job: int, weight: float, seconds: int) -> None:
        """Add what a running job used in so many seconds that end now."""
        if self._used_of[job]:
            held = self._held(job)
            for meter, tres in self._used_of[job]:
                lasting = seconds * self._decay[meter] ** seconds
                self._set((meter, tres), self._used[meter, tres] + held[tres] * weight * lasting)
        if self._running_of[job]:
            gone = self._gone.get(job, 0)
            now = min(gone + seconds, self._tables.limit(job))
            self._run_on(job, now - gone)
            self._gone[job] = now

    def end(self, job: int) -> None:
        """Let a job run no longer: what it held of its time is given back as a whole."""
        self._run_on(job, -self._gone.pop(job, 0))

    def _held(self, job: int) -> tuple[int, ...]:
        """Return what a job has of each TRES: processors, memory in MB, nodes and GPUs."""
        rows = self._tables.stays.of(job)
        cpus, memory, gpus = (sum(row[column] for row in rows) for column in (1, 2, 3))
        return cpus, memory, len(rows), gpus

    def _set(self, cell: tuple[int, int], used: float) -> None:
        self._used[cell] = used
        self._limits.use_seconds(*cell, used)

    def _run_on(self, job: int, seconds: int) -> None:
        """Let so much of the time that a job may run be gone, s."""
        if seconds and self._running_of[job]:
            held = self._held(job)
            for meter, tres in self._running_of[job]:
                self._limits.run_on(meter, tres, held[tres] * seconds)


def _limited(tables: SlurmTables, first: int) -> list[list[tuple[int, int]]]:
    """Return each job's meters with the TRES that they limit, by the first of four columns."""
    limits = tables.meters.limits
    return [
        [(at, tres) for at in own for tres in range(len(TRES)) if limits[at][first + tres] >= 0]
        for own in tables.own_meters
    ]
