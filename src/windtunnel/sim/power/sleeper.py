"""`Sleeper`: nodes that fall asleep by the CES rule, and wake for the jobs that wait.

Every ``step`` seconds the rule sees how many nodes were in use since the last step, at most, and
what the forecast expects: what was in use a day (or week) before. Idle nodes fall asleep, highest
index first, but for those that waiting jobs would get. When jobs wait that a sleeping cluster
cannot hold, the nodes they would get, and the rule's buffer besides, are called at once and are
ready ``wake_time`` seconds later. Those on which backfilling plans a later start are called so
early that they are ready then, and do not fall asleep when it is too late for that.
"""

from __future__ import annotations

import heapq
import math
from typing import TYPE_CHECKING, Any

from windtunnel.sim.elastic.calling import nodes_for_options
from windtunnel.sim.power.ces import Ces

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from windtunnel.cluster.free import Where
    from windtunnel.sim.power.plan import SleepPlan

    #: Sets of nodes, None = all, in the order in which they are tried.
    NodeSets: TypeAlias = tuple[frozenset[int] | None, ...]


class Sleeper:
    """Which nodes are awake.

    ``draw_more``: (node, 1 it is called or -1 it sleeps) -> whether the power cap allows that; if
    so it counts from now on.

    Attributes:
        asleep: node -> place of its sleep in ``sleeps``.
        waking: heap of (when it is ready, node).
        sleeps: [node, when it fell asleep, when it was called (NaN = it sleeps)], s.
        wakes: nodes called in all.
    """

    def __init__(
        self, plan: SleepPlan, nodes: int, run: Any, first: float,
        draw_more: Callable[[int, int], bool],
    ) -> None:  # fmt: skip
        self.plan, self.nodes, self.run, self.draw_more = plan, nodes, run, draw_more
        self.rule = Ces(plan.rule, nodes)
        self.asleep: dict[int, int] = {}
        self.waking: list[tuple[float, int]] = []
        self.sleeps: list[list[float]] = []
        self.wakes = 0
        self._first = first
        self._step = 0
        self._peak = 0
        self._used: list[int] = []
        #: When nodes are called next for a start that is planned, s, if any sleeps.
        self._next_call = math.inf

    def next_time(self) -> float:
        """Return when a node is ready, or the rule is asked next, s."""
        ready = self.waking[0][0] if self.waking else math.inf
        call = self._next_call if self.asleep else math.inf
        return min(ready, call, self._next_step())

    def rouse(self, now: float) -> bool:
        """Let jobs use the nodes that are ready; return whether there are any."""
        ready = False
        while self.waking and self.waking[0][0] <= now:
            self.run.restore(heapq.heappop(self.waking)[1])
            ready = True
        return ready

    def look(self, now: float) -> bool:
        """Ask the rule if it is time, and let nodes sleep or wake; return whether any did."""
        if now < self._next_step():
            return False
        in_use = len(self.run.nodes_in_use())
        self._peak = max(self._peak, in_use, self.run.most_nodes_in_use())
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
        return self.rule.active != awake

    def wake_for_waiting(self, now: float) -> None:
        """Call the nodes that waiting jobs would get, and the rule's buffer of others."""
        if not self.asleep:
            return
        planned = sorted(self.run.scheduler.planned_starts())
        wanted = dict.fromkeys([*self._nodes_for_waiting(), *self._due(planned, now)])
        needed = tuple(node for node in wanted if node in self.asleep)
        if needed:
            self._wake(len(needed) + self.plan.rule.buffer, now, needed)
            self.rule.woken(self.nodes - len(self.asleep))
        calls = [
            start - self.plan.wake_time
            for start, nodes in planned
            if not self.asleep.keys().isdisjoint(nodes)
        ]
        self._next_call = min((call for call in calls if call > now), default=math.inf)

    def _next_step(self) -> float:
        return self._first + (self._step + 1) * self.plan.step

    def _forecast(self, used: int) -> list[float]:
        """Return nodes expected in use at the next steps: those of the same time before."""
        ahead, back, now = 2 * self.plan.rule.future, self.plan.back, len(self._used)
        if not back:
            return [float(used)] * ahead
        places = [now + k - back for k in range(ahead)]
        return [float(self._used[i]) if 0 <= i < now else float(used) for i in places]

    def _nodes_for_waiting(self) -> list[int]:
        """Return the nodes that waiting jobs would get if all were awake.

        In order of coming, each job besides those before it; then of each class of which one does
        not fit so, or has not the power, the first alone: it may be its turn before theirs. Where
        jobs are preempted, and no quotas limit the run, one that does not fit alone either may get
        its place from those ranked below it: that is tried for the first in rank of its class.
        Each node once, in the order in which it is needed. Elastic jobs have a rule of their own.
        """
        run, waiting = self.run, self.run.waiting_jobs()
        if not waiting:
            return []
        if run.works is not None:
            return nodes_for_options(run, self._not_awake())
        needed: dict[int, None] = {}
        hopeless: dict[tuple[int, NodeSets], int] = {}
        shown = self._all_awake()
        with run.trying_quotas():
            for job in waiting:
                kind = int(run.class_of[job]), run.node_sets_for(job)
                if kind in hopeless:
                    continue
                where = self._look(shown, job, kind[1], takes=True)
                if where is None:
                    hopeless[kind] = job
                else:
                    needed |= {node: None for node, _ in where}
        if hopeless:
            shown = self._all_awake()
            alone = [self._look(shown, job, kind[1]) for kind, job in hopeless.items()]
            for (line, _), where in zip(hopeless, alone, strict=True):
                there = self._look_below(line) if where is None and run.asks_below else where
                needed |= {node: None for node, _ in there or ()}
        return list(needed)

    def _look(self, shown: Any, job: int, sets: NodeSets, *, takes: bool = False) -> Where | None:
        """Return where a job would go, in the first set of nodes in which it has a place."""
        for nodes in sets:
            where: Where | None = self.run.look_in(shown, job, nodes, takes=takes)
            if where is not None:
                return where
        return None

    def _all_awake(self) -> Any:
        """Return what would be free if all nodes were awake."""
        return self.run.with_awake(self._not_awake())

    def _not_awake(self) -> list[int]:
        return [*self.asleep, *(node for _, node in self.waking)]

    def _look_below(self, kind: int) -> Where | None:
        """Return where the first of a class would go if the jobs ranked below it were gone."""
        first, below = self.run.scheduler.giving_way(kind)
        if not below:
            return None
        shown = self._all_awake()
        for job in below:
            self.run.give_in(shown, job)
        found: Where | None = self.run.look_in(shown, first, None)
        return found

    def _due(self, planned: list[tuple[float, list[int]]], now: float) -> list[int]:
        """Return the nodes of starts that are planned so soon that those asleep are called now."""
        due = (nodes for start, nodes in planned if start - self.plan.wake_time <= now)
        return [node for nodes in due for node in nodes]

    def _put_to_sleep(self, number: int, now: float) -> None:
        """Let so many nodes sleep, those that waiting jobs would get not among them."""
        taken = {*self.run.nodes_in_use(), *self.asleep, *(node for _, node in self.waking)}
        taken.update(self._nodes_for_waiting())
        taken.update(self._due(self.run.scheduler.planned_starts(), now))
        idle = [node for node in range(self.nodes - 1, -1, -1) if node not in taken]
        for node in idle[:number]:
            self.run.withhold(node)
            self.asleep[node] = len(self.sleeps)
            self.sleeps.append([node, now, math.nan])
            self.draw_more(node, -1)

    def _wake(self, number: int, now: float, wanted: tuple[int, ...]) -> None:
        """Call so many nodes as the cap allows: those wanted, then the lowest by index."""
        others = sorted(node for node in self.asleep if node not in wanted)
        for node in [*wanted, *others][:number]:
            if not self.draw_more(node, 1):
                return
            self.sleeps[self.asleep.pop(node)][2] = now
            self.wakes += 1
            heapq.heappush(self.waking, (now + self.plan.wake_time, node))
