"""The published round mechanism, with every rule of the published simulator.

Shares are decided on at round boundaries, only if a job came or went since the last decision and
only if `Rules.gap` seconds passed, or nothing runs and nobody is to come. Jobs without shares yet
hold GPUs without running. A job does whole steps. A round ends when the last job of it does, and
early finishers leave their GPUs idle until then; arrivals are seen at boundaries. GPU time counts
from the end of the round before, idle gaps included.

Narayanan et al., OSDI'20, section 5; stanford-futuredata/gavel, ``scheduler/scheduler.py``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import PolicyError, SpecError, quote
from windtunnel.sim.rounds.accounts import Accounts
from windtunnel.sim.rounds.contract import ALONE
from windtunnel.sim.rounds.places import Places
from windtunnel.sim.rounds.record import RoundLog, Spot

if TYPE_CHECKING:
    from windtunnel.sim.rounds.contract import Allocator, Rules, Work

#: The order in which types are served; others come after them, by name.
TYPE_ORDER = ("v100", "p100", "k80")


@dataclass(frozen=True)
class _Chosen:
    """Units that run in a round, in order of choice: unit, type; shapes (n,)."""

    units: np.ndarray
    kinds: np.ndarray


def fly_as_published(work: Work, allocate: Allocator, rules: Rules) -> RoundLog:
    """Run the jobs as the published simulator does.

    Args:
        work: jobs and GPUs; speeds of spread gangs are not looked at.
        allocate: decides on shares.
        rules: the options; ``overhead`` is not known to this mechanism.

    Raises:
        SpecError: a round is too short for one step of some job.
        PolicyError: the shares let no job run, and nothing will change.
    """
    slow = (work.speeds > 0) & (work.speeds * rules.length < 1)
    if slow.any():
        job, kind = (int(at) for at in np.argwhere(slow)[0])
        raise SpecError(
            "round",
            f"a round of {rules.length:g} s is too short for one step of job "
            f"{quote(work.names[job])} on {work.gpu_types[kind]}, and the published simulator "
            "does whole steps.",
        )
    return _Flight(work, allocate, rules).run()


class _Flight:
    """One run's state."""

    def __init__(self, work: Work, allocate: Allocator, rules: Rules) -> None:
        self.work, self.allocate, self.rules = work, allocate, rules
        self.log = RoundLog(work)
        self.one_node = all(len(sizes) == 1 for sizes in work.node_sizes)
        self.accounts = Accounts(work, rules.length, packed=rules.packed)
        self.left = work.steps.astype(float).copy()
        self.active = np.empty(0, int)
        self.now = 0.0
        self.last_end = 0.0
        self.last_reset = 0.0
        self.changed = True
        self.arrived = 0
        # Python's own generator, as published: a simulation's draws, not a secret.
        self.rng = None if rules.shuffle is None else random.Random(rules.shuffle)  # noqa: S311
        spelt = [name.lower() for name in work.gpu_types]
        known = [spelt.index(name) for name in TYPE_ORDER if name in spelt]
        self.order = [*known, *(k for k in range(work.num_types) if k not in known)]

    def run(self) -> RoundLog:
        wanted = self._wanted()
        ran = False
        while wanted.any() and self.now < self.rules.until:
            more = self.arrived < self.work.num_jobs
            if not ran and more:
                self.now = max(self.now, float(self.work.submit[self.arrived]))
            elif not ran:
                self.last_reset = 0.0  # nobody is to come: decide now
            if self.now >= self.rules.until:
                break
            self._admit()
            solved = self._decide()
            chosen = self._choose()
            ran = bool(len(chosen.units))
            if ran:
                self._run_round(chosen)
                wanted &= np.isnan(self.log.end)
            elif solved and not more:
                message = "gives no job a GPU that it can use, and nothing will change"
                who = self.work.names[self.active[0]]
                raise PolicyError(self.rules.label, message, time=self.now, job=who)
        self.log.stopped_at = min(self.now, self.rules.until)
        return self.log

    def _wanted(self) -> np.ndarray:
        """Return which jobs must be done for the run to end."""
        if self.rules.stop_after is None:
            return np.ones(self.work.num_jobs, bool)
        wanted = np.zeros(self.work.num_jobs, bool)
        wanted[self.rules.stop_after] = True
        return wanted

    def _admit(self) -> None:
        while self.arrived < self.work.num_jobs and self.work.submit[self.arrived] <= self.now:
            self.accounts.add(self.arrived, self.active)
            self.active = np.append(self.active, self.arrived)
            self.arrived += 1
            self.changed = True

    def _decide(self) -> bool:
        """Decide on shares where the rules allow it; return whether there is a fresh decision."""
        elapsed = self.now - self.last_reset
        due = elapsed >= self.rules.gap or self.last_reset == 0.0
        if not (self.changed and due):
            return not self.changed
        self.accounts.reset(elapsed, self.allocate(self.now, self.active, self.left))
        self.log.solves += 1
        self.last_reset, self.changed = self.now, False
        return True

    def _choose(self) -> _Chosen:
        books = self.accounts
        order = list(self.order)
        if self.rng is not None:
            self.rng.shuffle(order)
        priority = books.priorities()
        left = self.work.num_gpus.tolist()
        gangs, members = books.gangs.tolist(), books.members.tolist()
        known = books.known.tolist()
        placed: set[int] = {ALONE}
        units, kinds = [], []
        for kind in order:
            able = books.runnable[:, kind] & (books.gangs <= left[kind])
            if self.rules.in_turn:
                able &= priority[:, kind] > 0
            rows = np.flatnonzero(able)
            keys = (-books.share[rows, kind], -books.deficit[rows, kind], -priority[rows, kind])
            for unit in rows[np.lexsort(keys)].tolist():
                one, other = members[unit]
                if one in placed or (other != ALONE and other in placed):
                    continue
                if gangs[unit] > left[kind]:
                    continue
                left[kind] -= gangs[unit]
                placed.update((one, other))
                if known[unit]:  # the others hold their GPUs without running
                    units.append(unit)
                    kinds.append(kind)
                if not left[kind]:
                    break
        if min(left) < 0:
            raise AssertionError(left)
        return _Chosen(np.array(units, int), np.array(kinds, int))

    def _run_round(self, chosen: _Chosen) -> None:
        """Run the chosen units to the end of the round, and book it."""
        books, length = self.accounts, self.rules.length
        members = books.members[chosen.units]
        speeds = books.speeds[chosen.units, chosen.kinds]
        here = members != ALONE
        left = np.where(here, self.left[members], 0.0)
        done = np.minimum(np.floor(speeds * length), left)
        took = np.divide(done, speeds, out=np.zeros_like(done), where=here)
        finish = (self.now + took).max(axis=1)
        self.left[members[here]] -= done[here]
        self._note_places(members, chosen.kinds)
        self.log.rounds += 1
        seconds = finish - self.last_end
        # What was before the first job is nobody's, in our utilisation as in its span.
        self._note_time(members, chosen.kinds, np.minimum(seconds, finish - self.work.submit[0]))
        books.charge(chosen.units, chosen.kinds, seconds)
        over = here & (self.left[members] <= 0)
        for job, when in zip(members[over], np.where(over, finish[:, None], 0)[over], strict=True):
            if when <= self.rules.until:
                self.log.finish(int(job), float(when))
        gone = members[over]
        if len(gone):
            books.drop(gone)
            self.active = self.active[~np.isin(self.active, gone)]
            self.changed = True
        self.now = self.last_end = float(finish.max())

    def _note_time(self, members: np.ndarray, kinds: np.ndarray, seconds: np.ndarray) -> None:
        paired = members[:, 1] != ALONE
        gpu_time = seconds * self.work.gangs[members[:, 0]] / np.where(paired, 2, 1)
        for member, which in ((0, slice(None)), (1, paired)):
            rows = members[which, member]
            self.log.gpu_time[rows] += gpu_time[which]
            self.log.type_time[rows, kinds[which]] += seconds[which]

    def _note_places(self, members: np.ndarray, kinds: np.ndarray) -> None:
        """Note where the round's jobs are, which has no effect on their speeds."""
        log = self.log
        spots = (
            self._on_one_node(members, kinds) if self.one_node else self._on_nodes(members, kinds)
        )
        idle = self.now > self.last_end
        for job in [job for job, spot in log.spots.items() if idle or spots.get(job) != spot]:
            log.stop(job, self.last_end)
        for job, spot in spots.items():
            if job not in log.spots:
                log.start(job, self.now, spot)

    def _on_one_node(self, members: np.ndarray, kinds: np.ndarray) -> dict[int, Spot]:
        """Return where jobs are if each type is one node: there is no choice."""
        spots: dict[int, Spot] = {}
        gangs = self.work.gangs[members[:, 0]].tolist()
        for unit, kind, gang in zip(members.tolist(), kinds.tolist(), gangs, strict=True):
            spot = Spot(kind, (int(self.work.node_index[kind][0]),), (gang,))
            spots.update((job, spot) for job in unit if job != ALONE)
        return spots

    def _on_nodes(self, members: np.ndarray, kinds: np.ndarray) -> dict[int, Spot]:
        """Return where jobs are: where they were, if they can; else largest first."""
        log, places = self.log, Places(self.work)
        spots: dict[int, Spot] = {}
        for one, kind in zip(members[:, 0].tolist(), kinds.tolist(), strict=True):
            spot = log.spots.get(one)
            if spot is not None and spot.kind == kind and places.fits(spot):
                places.take(spot)
                spots[one] = spot
        order = np.argsort(-self.work.gangs[members[:, 0]], kind="stable")
        for at in order.tolist():
            one, other = members[at].tolist()
            if one not in spots:
                spots[one] = places.place(int(kinds[at]), int(self.work.gangs[one]))
                places.take(spots[one])
            if other != ALONE:
                spots[other] = spots[one]
        return spots
