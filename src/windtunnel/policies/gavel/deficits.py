"""`Deficits`: what part of its share of each GPU type each job has not had yet.

A *unit* is a job alone, or two jobs that share GPUs. Its deficit on a type is its share of the time
since it was first decided on, less what it had: those of Narayanan et al., OSDI'20, section 5, kept
across decisions, so that deciding anew in every round starves nobody whose share is small. It never
falls below minus one round: GPUs that nobody else wanted are not held against anybody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from windtunnel.policies.gavel.work import ALONE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.policies.gavel.work import Decision, Work

#: A job and `ALONE`, or two jobs that share GPUs.
Unit: TypeAlias = tuple[int, int]
#: Decimals of the seconds of a deficit that decide on an order, and of shares.
_DIGITS, _SHARE_DIGITS = 6, 9


class Deficits:
    """Shares and deficits of the units of the last decision.

    Args:
        work: jobs and GPUs.
        length: seconds a round.
        charges: what a job had before shares were decided on for it counts, too.

    Attributes:
        now: until when they are booked, s.
        kind_of: GPU type that each job runs on, -1 = none; shape (jobs,).
        mate_of: with whom it shares its GPUs, `ALONE` = nobody; shape (jobs,).
        type_time: seconds each job spent on each GPU type, shape (jobs, types).
    """

    def __init__(self, work: Work, length: float, *, charges: bool = False) -> None:
        self._work, self._length, self._charges = work, length, charges
        self.now = 0.0
        self.kind_of = np.full(work.num_jobs, -1)
        self.mate_of = np.full(work.num_jobs, ALONE)
        self.type_time = np.zeros((work.num_jobs, work.num_types))
        self._decided_with = self.type_time
        self._unit_on = np.full(work.num_jobs, -1)
        self._row_of = np.full(work.num_jobs, -1)
        self._pair_at: dict[Unit, int] = {}
        self._num_with_mates = 0
        self._share = np.empty((0, work.num_types))
        self._deficit = np.empty((0, work.num_types))
        self._entries = [np.empty(0, int)] * 3
        self._cells = np.empty(0, int)
        self._shares = np.empty(0)
        self._running: list[np.ndarray] | None = None

    def advance(self, when: float) -> None:
        """Book what jobs were to have, and what they had, until ``when`` (s)."""
        seconds = when - self.now
        if seconds <= 0:
            return
        self.now = when
        if self._running is None:
            jobs = (self.kind_of >= 0).nonzero()[0]
            kinds, units = self.kind_of[jobs], self._unit_on[jobs]
            pays = units >= 0
            types = self._work.num_types
            self._running = [jobs * types + kinds, units[pays] * types + kinds[pays]]
        cells, paid = self._running
        self.type_time.ravel()[cells] += seconds
        deficit = self._deficit
        deficit += self._share * seconds
        deficit.ravel()[paid] -= seconds
        np.maximum(deficit, -self._length, out=deficit)

    def decide(self, decision: Decision) -> None:
        """Go by another decision from now on; units keep their deficits."""
        members = decision.members
        # A blind policy may give a job a share where it cannot run: that is nobody's. The last
        # digits are a solver's rounding: no share, and no order of equal ones.
        share = decision.shares.round(_SHARE_DIGITS)
        share = np.where(self._work.runnable(members), share, 0.0)
        kept = np.zeros_like(share)
        alone = (members[:, 1] == ALONE).nonzero()[0]
        before = self._row_of[members[alone, 0]]
        kept[alone[before >= 0]] = self._deficit[before[before >= 0]]
        if self._charges:
            new = alone[before < 0]
            jobs = members[new, 0]
            had = self.type_time[jobs] - self._decided_with[jobs]
            kept[new] = np.maximum(-had, -self._length)
            self._decided_with = self.type_time.copy()
        pair_at: dict[Unit, int] = {}
        if len(alone) < len(members):
            pairs = (members[:, 1] != ALONE).nonzero()[0].tolist()
            pair_at = {
                (a, b): at for (a, b), at in zip(members[pairs].tolist(), pairs, strict=True)
            }
        for unit in pair_at.keys() & self._pair_at.keys():
            kept[pair_at[unit]] = self._deficit[self._pair_at[unit]]
        kept[share <= 0] = 0.0  # what a unit has no share of any more it does not lack
        self._share, self._deficit, self._pair_at = share, kept, pair_at
        self._row_of[:] = -1
        self._row_of[members[alone, 0]] = alone
        units, kinds = np.nonzero(share > 0)
        one, other = members[units].T
        self._cells = units * self._work.num_types + kinds
        self._shares = share[units, kinds]
        self._entries = [one, other, kinds]
        running = (self.kind_of >= 0).nonzero()[0]
        self._unit_on[running] = self._row_of[running]
        for job in running[self.mate_of[running] != ALONE].tolist():
            self._unit_on[job] = self._pays(job)
        self._running = None

    def runs(self, job: int, mate: int, kind: int) -> None:
        """Note that a job runs on a GPU type, alone or with another; -1 = it runs no more."""
        self._num_with_mates += int(mate != ALONE) - int(self.mate_of[job] != ALONE)
        self.kind_of[job], self.mate_of[job] = kind, mate
        if kind >= 0:
            self._unit_on[job] = self._row_of[job] if mate == ALONE else self._pays(job)
        self._running = None

    def _pays(self, job: int) -> int:
        """Return the row of the pair that pays for one of its jobs: the first pays for both."""
        return self._pair_at.get((job, int(self.mate_of[job])), -1)

    @property
    def has_pairs(self) -> bool:
        """Whether any jobs share GPUs, or are to."""
        return bool(self._pair_at) or self._num_with_mates > 0

    def due(self, able: np.ndarray) -> Iterator[tuple[int, int, int]]:
        """Return units that have a share, those first that will lack most at the round's end.

        Equal ones go by share, unit and type.

        Args:
            able: which jobs may run, shape (jobs + 1,); the last is nobody, found by `ALONE`.

        Returns:
            (first job, second job or `ALONE`, GPU type) of each.
        """
        one, other = self._entries[:2]
        rows = (able[one] & able[other]).nonzero()[0]
        share = self._shares[rows]
        lacks = self._deficit.ravel()[self._cells[rows]] + share * self._length
        # Deficits are sums over many rounds: their last digits are rounding, and no order.
        rows = rows[np.lexsort((-share, -lacks.round(_DIGITS)))]
        columns = [column[rows].tolist() for column in self._entries]
        return zip(*columns, strict=True)
