"""`Sleeper`: nodes that fall asleep by the CES rule, and wake for the jobs that wait.

Every ``step`` seconds the rule sees how many nodes were in use since the last step, at most, and
what the forecast expects: what was in use a day (or week) before. Idle nodes fall asleep, highest
index first. When jobs wait that a sleeping cluster cannot hold, the nodes they would get, and the
rule's buffer besides, are called at once and are ready ``wake_time`` seconds later.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING

from windtunnel.sim.power.ces import Ces

if TYPE_CHECKING:
    from windtunnel.sim.power.ledger import PoweredLedger
    from windtunnel.sim.power.plan import SleepPlan


class Sleeper:
    """Which nodes are awake.

    Args:
        plan: the rule and its times.
        ledger: the run.
        first: when the first step begins, s.
    """

    def __init__(self, plan: SleepPlan, ledger: PoweredLedger, first: float) -> None:
        self.plan = plan
        self.ledger = ledger
        self.nodes = len(ledger.problem.sizes)
        self.rule = Ces(plan.rule, self.nodes)
        #: Node -> place of its sleep in the ledger's list.
        self.asleep: dict[int, int] = {}
        #: Heap of (when it is ready, node).
        self.waking: list[tuple[float, int]] = []
        self._first = first
        self._step = 0
        self._peak = 0
        self._used: list[int] = []

    def next_time(self) -> float:
        """Return when a node is ready, or the rule is asked next, s."""
        ready = self.waking[0][0] if self.waking else math.inf
        return min(ready, self._next_step())

    def rouse(self, now: float) -> bool:
        """Let jobs use the nodes that are ready; return whether there are any."""
        ready = False
        while self.waking and self.waking[0][0] <= now:
            self.ledger.free.restore(heapq.heappop(self.waking)[1])
            ready = True
        if ready:
            self.ledger.given_back()
        return ready

    def look(self, now: float) -> None:
        """Ask the rule if it is time, and let nodes sleep or wake."""
        in_use = len(self.ledger.users)
        self._peak = max(self._peak, in_use)
        if now < self._next_step():
            return
        self._step += 1
        used, self._peak = self._peak, in_use
        self._used.append(used)
        target = self.rule.step(used, self._forecast(used))
        awake = self.nodes - len(self.asleep)
        if target < awake:
            self._put_to_sleep(awake - target, now)
        elif target > awake:
            self._wake(target - awake, now, ())
        self.rule.active = self.nodes - len(self.asleep)

    def wake_for_waiting(self, now: float) -> None:
        """Call the nodes that waiting jobs would get, and the rule's buffer of others."""
        ledger = self.ledger
        self._peak = max(self._peak, len(ledger.users))
        if not self.asleep or not ledger.waiting:
            return
        shown = ledger.free.copy()
        for node in [*self.asleep, *(node for _, node in self.waking)]:
            shown.restore(node)
        needed: dict[int, None] = {}
        hopeless: set[int] = set()
        for job in ledger.waiting:
            if ledger.class_of[job] in hopeless:
                continue
            where = ledger.placement.place(shown, ledger.demand[job])
            if where is None or not ledger.affords(job, where):
                hopeless.add(ledger.class_of[job])
                continue
            shown.take(where, ledger.demand[job])
            needed |= {node: None for node, _ in where if node in self.asleep}
        if needed:
            self._wake(len(needed) + self.plan.rule.buffer, now, tuple(needed))
            self.rule.woken(self.nodes - len(self.asleep))

    def _next_step(self) -> float:
        return self._first + (self._step + 1) * self.plan.step

    def _forecast(self, used: int) -> list[float]:
        """Return nodes expected in use at the next steps: those of the same time before."""
        ahead, back, now = 2 * self.plan.rule.future, self.plan.back, len(self._used)
        if not back:
            return [float(used)] * ahead
        places = [now + k - back for k in range(ahead)]
        return [float(self._used[i]) if 0 <= i < now else float(used) for i in places]

    def _put_to_sleep(self, number: int, now: float) -> None:
        ledger = self.ledger
        ready = {node for _, node in self.waking}
        idle = [
            node
            for node in range(self.nodes - 1, -1, -1)
            if node not in ledger.users and node not in self.asleep and node not in ready
        ]
        for node in idle[:number]:
            ledger.free.withhold(node)
            self.asleep[node] = len(ledger.sleeps)
            ledger.sleeps.append([node, now, math.nan])
            if ledger.plan.cap is not None:
                ledger.add_base(-ledger.cap.wake_w[node])

    def _wake(self, number: int, now: float, wanted: tuple[int, ...]) -> None:
        """Call so many nodes as the cap allows: those wanted, then the lowest by index."""
        ledger = self.ledger
        others = sorted(node for node in self.asleep if node not in wanted)
        for node in [*wanted, *others][:number]:
            if ledger.plan.cap is not None:
                ledger.add_base(ledger.cap.wake_w[node])
                if ledger.floor_sum > max(ledger.budget, 0):
                    ledger.add_base(-ledger.cap.wake_w[node])
                    return
            ledger.sleeps[self.asleep.pop(node)][2] = now
            ledger.wakes += 1
            heapq.heappush(self.waking, (now + self.plan.wake_time, node))
