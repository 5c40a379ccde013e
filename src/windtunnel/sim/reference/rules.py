"""Queueing rules: what happens at a job that does not fit; `strict` and `skip`.

A rule with a preemptive policy first lets `windtunnel.sim.reference.preemption` choose who runs, in
rank order up to the first job that cannot, and deals with the rest in its own way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from windtunnel.cluster.free import Where
    from windtunnel.sim.reference.order import Order
    from windtunnel.sim.reference.state import State


class Scheduler(Protocol):
    """What the loop and the sources tell whoever decides.

    Attributes:
        alarms: instants at which it wants to decide, though nothing happens, s; the first is next.
    """

    alarms: list[float]

    def came(self, job: int, now: float, *, was_stopped: bool = False) -> None:
        """Note that a job waits: it arrived, or an outage or a falling cap stopped it."""

    def gone(self, job: int) -> None:
        """Note that a job is over, or out of the queue for now."""

    def moves(self, job: int) -> None:
        """Note that a job goes on with other nodes, as one of its own failed."""

    def decide(self, now: float) -> None:
        """Start who may start."""

    def rekey(self, now: float) -> None:
        """Ask keys again: a round begins."""


class Preemption(Protocol):
    """What chooses who runs (`windtunnel.sim.reference.preemption`)."""

    def walk(self, rule: Rule, now: float, *, past_refused: bool) -> list[int]:
        """Choose who runs, and let it be so; return who is left to the rule, in order."""


class Rule:
    """What all rules share; by itself it is none.

    Args:
        state: the run.
        order: who is next.
        preemption: chooses who runs; None = nobody is preempted.
    """

    def __init__(self, state: State, order: Order, preemption: Preemption | None) -> None:
        self.state, self.order, self.preemption = state, order, preemption
        self.rekey = order.rekey
        self.alarms: list[float] = []

    def came(self, job: int, now: float, *, was_stopped: bool = False) -> None:  # noqa: ARG002 - no matter here
        """Ask a job's key."""
        self.order.ask([job], now)

    def gone(self, job: int) -> None:
        """Do nothing: who is over has no turn."""

    moves = gone

    def decide(self, now: float) -> None:
        """Start who may start."""
        raise NotImplementedError

    def start(self, job: int, now: float, where: Where) -> None:
        """Start a waiting job."""
        self.state.begin(job, now, where)

    def start_in_order(self, now: float) -> list[int]:
        """Start jobs up to the first that does not fit; return it, and those behind it."""
        if self.preemption is not None:
            return self.preemption.walk(self, now, past_refused=False)
        waiting = self.order.waiting(now)
        for number, job in enumerate(waiting):
            where = self.state.fit(job)
            if where is None:
                return waiting[number:]
            self.start(job, now, where)
        return []


class Strict(Rule):
    """Start jobs in order; stop at the first that does not fit."""

    def decide(self, now: float) -> None:
        """Start who may start."""
        self.start_in_order(now)


class Skip(Rule):
    """Try every waiting job in order, going on past those that do not fit."""

    def decide(self, now: float) -> None:
        """Start who may start."""
        if self.preemption is not None:
            self.preemption.walk(self, now, past_refused=True)
            return
        for job in self.order.waiting(now):
            where = self.state.fit(job)
            if where is not None:
                self.start(job, now, where)
