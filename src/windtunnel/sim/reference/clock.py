"""When decisions are made: at rounds, at the multiples of an interval, at what happens."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from windtunnel.errors import PolicyError
from windtunnel.sim.headway import Headway

if TYPE_CHECKING:
    from windtunnel.sim.reference.lent import Lent
    from windtunnel.sim.run_rules import Rules

#: Instants in a row on an idle cluster at which nobody is started.
MAX_IDLE = 10_000


class Clock:
    """Rounds at k x ``every``, visited only while a job is active, and the next decision.

    At a round keys are asked again; a tier-3 policy with rounds decides at rounds only, or fills
    between them, too. With an interval a decision that is called for is made at the next multiple
    of it.

    Attributes:
        pending: when a decision that was called for is made, s; inf = none was.
        points: decisions made.
        gave_up: nobody has been started for so long that nobody ever will be.
    """

    def __init__(self, state: Lent, rules: Rules) -> None:
        policy = state.policy
        self.state, self.every, self.interval = state, policy.every, rules.decide_every
        self._decides_itself = policy.tier == 3  # noqa: PLR2004 - the tier's name
        in_rounds = policy.every is not None and self._decides_itself
        self.at_rounds_only = in_rounds and not policy.fills
        self.may_wait, self.patience = rules.may_wait(policy), rules.patience(policy)
        self.settles = rules.settles(policy)
        self.pending, self.points, self.gave_up = math.inf, 0, False
        self._headway = Headway(policy, rules, state.work_left)
        self._rounds = self._starts = 0
        #: Instants in a row at which nobody ran or was started; of these, with nothing to come.
        self._idle, self._quiet = list[float](), list[float]()
        #: Whether an alarm went off at this instant, and whether one did since the last decision.
        self._is_awake = self._has_rung = False

    def next_time(self, event: float, *, held: int) -> float:
        """Return the next round or decision, s, where the next arrival or completion is an event.

        ``held``: how many jobs arrived and are not in the queue yet.
        """
        time = min(self.pending, self._next_alarm())
        if self.every is None:
            return time
        if not self.state.running and not self.state.waiting and not held:
            if event == math.inf:
                return time
            self._rounds = max(self._rounds, math.ceil(event / self.every))
        return min(time, self._rounds * self.every)

    def begins_round(self, now: float) -> bool:
        """Return whether a round begins at ``now`` (s); ask keys again then."""
        if self.every is None or self._rounds * self.every != now:
            return False
        self._rounds += 1
        if not self._decides_itself:
            self._look_at_headway(now)
        self.state.scheduler.rekey()
        return True

    def wake(self, now: float) -> None:
        """Note whether the scheduler wants to decide at ``now`` (s); once is enough."""
        self._is_awake = self._next_alarm() <= now
        self._has_rung |= self._is_awake

    def _next_alarm(self) -> float:
        return math.inf if self._has_rung else min(self.state.scheduler.alarms, default=math.inf)

    def is_due(self, now: float) -> bool:
        """Return whether a decision is called for at ``now`` (s), though nothing happened."""
        return self._is_awake or self.pending <= now

    def _delayed(self, time: float) -> float:
        """Return when a decision is made that is called for at a time, s."""
        if self.interval is None or time == -math.inf:
            return time
        due = math.ceil(time / self.interval) * self.interval
        return due if due >= time else due + self.interval  # the quotient was rounded down

    def call(self, now: float, *, at_round: bool = False) -> None:
        """Call for a decision at ``now`` (s); it is made at once, or is pending."""
        if self.at_rounds_only and not at_round and self.pending > now:
            return
        self.state.at_round |= at_round
        self.pending = min(self.pending, self._delayed(now))
        if self.pending > now:
            return
        self.pending, self._has_rung = math.inf, False
        self.points += 1
        if self._decides_itself:
            self._look_at_headway(now)
        self.state.begin_decision()
        self.state.scheduler.decide()
        self.state.at_round = False
        if self.state.recorder is not None:
            self.state.recorder.decided(self.points)

    def note_cap(self, now: float) -> None:
        """See to it that jobs get on though the power cap changes, now (s) again."""
        if self.points >= self._headway.cap_due:
            self._look_at_headway(now)

    def _look_at_headway(self, now: float) -> None:
        if self.points >= self._headway.due:
            self._headway.look(now, self.points, len(self.state.stays))

    def note_idle(self, now: float, *, arrived: bool, certain: bool) -> None:
        """Note whether anybody runs, or was started.

        ``arrived``: no job is to come; ``certain``: capacity will come, whatever chance brings.

        Raises:
            PolicyError: nobody has been for too long, and all capacity and power is there.
        """
        state = self.state
        idle = arrived and not state.running and len(state.stays) == self._starts and state.waiting
        self._starts = len(state.stays)
        for spell, lasts in ((self._idle, idle), (self._quiet, idle and not certain)):
            if lasts:
                spell.append(now)
            else:
                spell.clear()
        if not self._quiet or self.pending < math.inf:
            return
        settled = self.settles and len(self._quiet) > 1 and not state.scheduler.alarms
        settled = settled and now - self._quiet[0] >= self.patience
        if not settled and (len(self._idle) <= MAX_IDLE or now - self._idle[0] < self.patience):
            return
        self.gave_up = True
        if not self.may_wait:
            message = f"starts none of {len(state.waiting)} waiting jobs on an idle cluster"
            raise PolicyError(state.policy.label, message, time=now)
