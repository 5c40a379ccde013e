"""`Standstill`: whether those who wait while nobody runs will ever be started."""

from __future__ import annotations

import cython

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.state import State

#: Instants in a row in which nobody runs, arrives or is started, though somebody waits.
STANDSTILL_MOST = cython.declare(cython.int, 10_000)


@cython.final
@cython.cclass
class Standstill:
    """Counts the instants at which nobody runs or is started, though somebody waits.

    At the *quiet* ones of them nothing else is certain to come, whatever chance brings.

    Args:
        state: the run.
        patience: for so long, s, jobs are waited for that nobody starts.
        settles: jobs are given up on that nobody started in that time, though nobody ran and
            nothing was certain to come (`windtunnel.sim.run_rules`).

    Attributes:
        gave_up: nobody who waits will ever be started, as far as can be known.
    """

    gave_up: cython.bint
    _state: State
    _patience: cython.double
    _settles: cython.bint
    _num_idle: cython.int
    _num_quiet: cython.int
    _idle_since: cython.double
    _quiet_since: cython.double
    _stays: cython.int

    def __init__(self, state: State, patience: float, *, settles: bool) -> None:
        self._state, self._patience, self._settles = state, patience, settles
        self.gave_up = False

    @compiled
    def look(
        self, more_come: cython.bint, is_quiet: cython.bint, is_pending: cython.bint,
        has_alarm: cython.bint,
    ) -> cython.bint:  # fmt: skip
        """Return whether nobody who waits will ever be started, as far as can be known.

        Args:
            more_come: jobs have yet to arrive.
            is_quiet: nothing is certain to come.
            is_pending: a decision was called for that is made later.
            has_alarm: a decision is asked for though nothing happens.
        """
        idle: cython.bint = (
            not more_come
            and self._state.num_running == 0
            and self._state.stays.count == self._stays
            and self._state.num_waiting > 0
        )
        self._stays = self._state.stays.count
        self._num_idle = self._num_idle + 1 if idle else 0
        self._num_quiet = self._num_quiet + 1 if idle and is_quiet else 0
        if self._num_idle <= 1:
            self._idle_since = self._state.now
        if self._num_quiet <= 1:
            self._quiet_since = self._state.now
        if self._num_quiet == 0 or is_pending:
            return False
        if self._settles and self._num_quiet > 1 and not has_alarm:
            self.gave_up = self._state.now - self._quiet_since >= self._patience
        if self._num_idle > STANDSTILL_MOST:
            since = self._state.now - self._idle_since
            self.gave_up = self.gave_up or since >= self._patience
        return self.gave_up
