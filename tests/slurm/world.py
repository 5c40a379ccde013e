"""What else happened in a recorded run: nodes, holds, cancellations, reservations, requeues."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from dependencies import Dependencies
from records import Record, table

from windtunnel.site.host_list import hosts
from windtunnel.site.slurm import SlurmReservation

if TYPE_CHECKING:
    from records import Stay

#: A requeued job waits until its credentials have run out, s.
REQUEUE = 121
_RESERVED = re.compile(r"Created reservation=(\S+) users=(\S+) nodes=(\S+) ")
_SPAN = re.compile(r" start=(\S+) end=(\S+)")


class World:
    """The recorded state of everything but the jobs that run."""

    def __init__(self, record: Record, t0: int) -> None:
        self.record = record
        self.t0 = t0
        self.dependencies = Dependencies(record)
        self.names = {row["job"]: at for at, row in enumerate(record.rows)}
        self.downs: list[tuple[float, str, bool]] = []
        self.kills: list[tuple[float, str]] = []
        self.holds: list[tuple[float, int, bool]] = []
        self.reservations: list[SlurmReservation] = []
        events = table(record.folder / "events.csv")
        for event in sorted(events, key=lambda e: float(e["second"])):
            self._act(float(event["second"]), event["action"], event["args"])
        for now, words in record.events:
            self._log(now, words)
        self.downs.sort(key=lambda d: d[0])
        self.eligible = self._eligibilities()
        # A job is submitted within a second; what else makes it eligible is looked at by the loops.
        works, firsts = record.work, self.eligible
        self.known = [
            when + (0 if work["dependency"] or work["begin"] else 0.1)
            for when, work in zip(firsts, works, strict=True)
        ]
        self.gone = [float(r["end"]) if r["end"] else math.inf for r in record.rows]
        self.again = {job: at for at, job in enumerate(s.job for s in record.stays)}

    def _act(self, now: float, action: str, args: str) -> None:
        fields = dict(w.partition("=")[::2] for w in args.split() if "=" in w)
        if action == "kill_node":
            self._notice(now, args)
        elif action == "start_node":
            self.downs.append((now, args, False))
        elif args.startswith(("hold", "release")):
            verb, name = args.split()
            if name in self.names:
                self.holds.append((now, self.names[name], verb == "hold"))
        elif "NodeName" in fields:
            state = fields.get("State", "").upper()
            for name in hosts(fields["NodeName"]):
                self.downs.append((now, name, state != "RESUME"))
                if state == "DOWN":
                    self.kills.append((now, name))
        elif args.startswith("create reservation"):
            self._flags = fields.get("Flags", "")
            self._reserved = fields

    def _notice(self, now: float, node: str) -> None:
        """Take a node out when the first launch fails: when it was missed is not recorded."""
        for when, words in self.record.events:
            if when > now and "per user/system request" in words:
                self.downs.append((when, node, True))
                return

    def _log(self, now: float, words: str) -> None:
        found = re.search(r"Nodes (\S+) not responding, setting DOWN", words)
        if found:
            self.downs += [(now, name, True) for name in hosts(found[1])]
            self.kills += [(now, name) for name in hosts(found[1])]
        found = re.search(r"node_did_resp: node (\S+) returned to service", words)
        if found:
            self.downs.append((now, found[1], False))
        found = _RESERVED.search(words)
        if found:
            self.reservations.append(self._reservation(now, words, found[1], found[2], found[3]))

    def _reservation(
        self, now: float, words: str, name: str, users: str, nodes: str
    ) -> SlurmReservation:
        start, end = (self._seconds(text) for text in _SPAN.search(words).groups())
        flags = ""
        for event in table(self.record.folder / "events.csv"):
            if f"ReservationName={name}" in event["args"]:
                flags = re.search(r"Flags=(\S+)|$", event["args"])[1] or ""
        return SlurmReservation(
            name, tuple(hosts(nodes)), start, end, frozenset(users.split(",")),
            flags=frozenset(flags.upper().split(",")) - {""}, made=now,
        )  # fmt: skip

    def _seconds(self, stamp: str) -> float:
        import calendar
        import time

        return calendar.timegm(time.strptime(stamp, "%Y-%m-%dT%H:%M:%S")) - self.t0

    def _eligibilities(self) -> list[float]:
        """Return when each job first could run; tasks of an array when the first of them could."""
        arrays: dict[str, float] = {}
        found = []
        for row, detail, work in zip(
            self.record.rows, self.record.details, self.record.work, strict=True
        ):
            when = float(row["eligible"]) if row["eligible"] else math.inf
            if not work["dependency"] and not work["begin"]:
                when = float(row["submit"])
            if int(row["restarts"] or 0):
                when = -math.inf
            array = detail.get("ArrayJobId", "")
            if array:
                arrays[array] = min(arrays.get(array, math.inf), when)
            found.append(when)
        submits = [float(w["submit"]) for w in self.record.work]
        return [
            max(arrays.get(d.get("ArrayJobId", ""), when), submit)
            for when, d, submit in zip(found, self.record.details, submits, strict=True)
        ]

    def is_down(self, now: float) -> set[str]:
        """Return the nodes that may not be used."""
        state = {name: is_down for when, name, is_down in self.downs if when < now}
        return {name for name, is_down in state.items() if is_down}

    def held(self, now: float) -> set[int]:
        """Return the jobs that are held."""
        state = {job: is_held for when, job, is_held in self.holds if when < now}
        return {job for job, is_held in state.items() if is_held}

    def reserved(self, now: float) -> list[SlurmReservation]:
        """Return the reservations that were made and are not over."""
        return [hold for hold in self.reservations if hold.made < now < hold.end]

    def waits(self, job: int, now: float, last: Stay | None) -> bool:
        """Return whether a job that does not run waits; ``last`` is its attempt before."""
        if last is None:
            if now >= self.gone[job] and not self.record.stays_of(job):
                return False
            return self.known[job] <= now
        later = any(s.job == job and s.start >= now for s in self.record.stays)
        if not later or last.end is None:
            return False
        return now >= last.queued_again + REQUEUE
