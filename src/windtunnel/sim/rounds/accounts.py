"""The published books: time received of each GPU type since the last decision, and deficits.

A *unit* is a job alone, or two jobs that share GPUs. Narayanan et al., OSDI'20, section 5, and
the published simulator, to the letter where it differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.sim.rounds.contract import ALONE

if TYPE_CHECKING:
    from windtunnel.sim.rounds.contract import Decision, Work


class Accounts:
    """Received time, deficits and priorities of the units of the jobs that are here.

    Units are kept in the order in which the published dictionaries hold them: a job, then its
    pairs with the jobs before it.

    Args:
        work: the jobs.
        length: seconds a round; half of it is what a job counts as having received at first.
        packed: whether there are pairs.

    Attributes:
        members: jobs of each unit, shape (units, 2).
        speeds: steps per second of each member on each type, shape (units, types, 2).
        gangs: GPUs of each unit, shape (units,).
        runnable: where a unit can run, shape (units, types).
        known: whether the unit was there at the last decision, shape (units,).
        share: of the last decision, shape (units, types).
        deficit: seconds, shape (units, types).
        received: seconds since the last decision, shape (units, types).
        total: seconds that all jobs received of each type since then, shape (types,).
    """

    def __init__(self, work: Work, length: float, *, packed: bool) -> None:
        self._work, self._half, self._packed = work, length / 2, packed
        types = work.num_types
        self.members = np.empty((0, 2), int)
        self.speeds = np.empty((0, types, 2))
        self.gangs = np.empty(0, int)
        self.runnable = np.empty((0, types), bool)
        self.known = np.empty(0, bool)
        self.share, self.deficit, self.received = (np.empty((0, types)) for _ in range(3))
        self.total = np.zeros(types)

    def add(self, job: int, active: np.ndarray) -> None:
        """Add a job that arrived, and its pairs with the jobs that are here already."""
        members = np.array([[job, ALONE]])
        if self._packed:
            pairs = self._work.pairs_among(np.append(active, job))
            members = np.concatenate([members, pairs[pairs[:, 1] == job]])
        speeds, runs = self._work.unit_speeds(members), self._work.runnable(members)
        received = np.zeros((len(members), self._work.num_types))
        received[0] = self._half  # pairs begin with none, as published
        nothing = np.zeros_like(received)
        self.members = np.concatenate([self.members, members])
        self.speeds = np.concatenate([self.speeds, speeds])
        self.gangs = np.append(self.gangs, self._work.gangs[members[:, 0]])
        self.runnable = np.concatenate([self.runnable, runs])
        self.known = np.append(self.known, np.zeros(len(members), bool))
        self.share = np.concatenate([self.share, nothing])
        self.deficit = np.concatenate([self.deficit, nothing])
        self.received = np.concatenate([self.received, received])

    def drop(self, jobs: np.ndarray) -> None:
        """Remove jobs that are done, and their pairs; what they received still counts in all."""
        keep = ~np.isin(self.members, jobs).any(axis=1)
        for name in ("members", "speeds", "gangs", "runnable", "known", "share", "deficit"):
            setattr(self, name, getattr(self, name)[keep])
        self.received = self.received[keep]

    def reset(self, elapsed: float, decision: Decision) -> None:
        """Close the books of the last decision, ``elapsed`` seconds old, and open the next."""
        self.deficit += self.share * elapsed - (self.received - self._half)
        self.received[:] = self._half
        self.total = self.received.sum(axis=0)
        place = {key: at for at, key in enumerate(map(tuple, self.members.tolist()))}
        self.share[:] = 0.0
        self.known[:] = True
        for unit, shares in zip(decision.members.tolist(), decision.shares, strict=True):
            at = place.get(tuple(unit))
            if at is not None:
                self.share[at] = shares

    def charge(self, units: np.ndarray, kinds: np.ndarray, seconds: np.ndarray) -> None:
        """Book what units received of the types they ran on, s; shapes (n,)."""
        self.received[units, kinds] += seconds
        np.add.at(self.total, kinds, seconds)

    def priorities(self) -> np.ndarray:
        """Return share over the part of the type's time that was received; (units, types)."""
        share = np.where(self.runnable & self.known[:, None], self.share, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = self.received / self.total
            return np.where(share > 0, np.where(part > 0, share / part, share * 1e9), 0.0)
