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
from windtunnel.policies.gavel.record import RoundLog, Spot
from windtunnel.policies.gavel.work import ALONE

if TYPE_CHECKING:
    from windtunnel.policies.gavel.work import Allocator, Decision, Rules, Work

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
        rules: the options; this mechanism knows no cost of resuming.

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
        self.accounts = _Accounts(work, rules.length, packed=rules.packed)
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
        log, places = self.log, _Places(self.work)
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


class _Accounts:
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


class _Places:
    """The free GPUs of each node, type by type.

    Args:
        work: the nodes.
    """

    def __init__(self, work: Work) -> None:
        self._index = work.node_index
        self._free = [sizes.copy() for sizes in work.node_sizes]
        self._at = [{int(n): at for at, n in enumerate(index)} for index in work.node_index]

    def place(self, kind: int, gang: int) -> Spot:
        """Return where a gang goes on a type that has room for it; nothing is taken yet."""
        free, index = self._free[kind], self._index[kind]
        if len(free) == 1:
            return Spot(kind, (int(index[0]),), (gang,))
        enough = (free >= gang).nonzero()[0]
        if len(enough):
            best = int(enough[free[enough].argmin()])
            return Spot(kind, (int(index[best]),), (gang,))
        nodes, gpus, wanted = [], [], gang
        for at in np.argsort(-free, kind="stable").tolist():
            taken = min(int(free[at]), wanted)
            nodes.append(int(index[at]))
            gpus.append(taken)
            wanted -= taken
            if not wanted:
                break
        return Spot(kind, tuple(nodes), tuple(gpus))

    def fits(self, spot: Spot) -> bool:
        """Return whether a place is free."""
        at, free = self._at[spot.kind], self._free[spot.kind]
        return all(free[at[n]] >= g for n, g in zip(spot.nodes, spot.gpus, strict=True))

    def take(self, spot: Spot) -> None:
        """Take a place.

        Raises:
            AssertionError: it is not free: more GPUs would be used than there are.
        """
        at, free = self._at[spot.kind], self._free[spot.kind]
        for node, gpus in zip(spot.nodes, spot.gpus, strict=True):
            free[at[node]] -= gpus
            if free[at[node]] < 0:
                raise AssertionError(spot)
