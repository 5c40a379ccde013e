"""`Wanted`: who has a share of which GPU type, and who is owed most of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Decimals of the seconds owed that decide on an order.
_DIGITS = 6


@dataclass(frozen=True)
class Wanted:
    """Which units have a share of which types, by unit and type; arrays of shape (wanted,).

    Attributes:
        units: row of the unit in the decision.
        kinds: GPU type.
        shares: > 0.
        one: the unit's first job.
        other: its second, or `windtunnel.sim.rounds.ALONE`.
        gangs: GPUs of the unit.
    """

    units: np.ndarray
    kinds: np.ndarray
    shares: np.ndarray
    one: np.ndarray
    other: np.ndarray
    gangs: np.ndarray

    @classmethod
    def of(cls, members: np.ndarray, share: np.ndarray, gangs: np.ndarray) -> Wanted:
        """Return those of a decision.

        Args:
            members: jobs of each unit, shape (units, 2).
            share: shape (units, types).
            gangs: GPUs of each job, shape (jobs,).
        """
        units, kinds = np.nonzero(share > 0)
        one, other = members[units].T
        return cls(units, kinds, share[units, kinds], one, other, gangs[one])

    def most_owed_first(self, rows: np.ndarray, owed: np.ndarray, length: float) -> np.ndarray:
        """Return rows by what they will be owed at the round's end; then by share, unit and type.

        Args:
            rows: those to sort, ascending; shape (n,).
            owed: seconds owed to each unit, shape (units, types).
            length: of the round, s.
        """
        share = self.shares[rows]
        worth = owed[self.units[rows], self.kinds[rows]] + share * length
        # Seconds owed are sums over many rounds: their last digits are rounding, and no order.
        return np.asarray(rows[np.lexsort((-share, -worth.round(_DIGITS)))])
