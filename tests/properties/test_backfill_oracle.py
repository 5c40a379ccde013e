"""Backfilling on a pool against a second simulator: lists, sums and every instant looked through.

It is written from the published definitions (Lifka, JSSPP 1995; Mu'alem and Feitelson, TPDS 2001)
as plainly as they read, and takes nothing from `windtunnel.sim`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windtunnel as wt

GPUS = 4
Row = tuple[int, int, int, int]
#: (submit, duration, seconds asked for beyond it, GPUs); many jobs at few instants.
ROWS = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.integers(1, 6),
        st.sampled_from((0, 0, 1, 2, 9)),
        st.integers(1, GPUS),
    ),
    min_size=2,
    max_size=11,
)
ENGINES = ("reference", "compiled")


@dataclass(eq=False)
class Job:
    """One job; ``promise`` is of conservative backfilling."""

    submit: int
    duration: int
    estimate: int
    gpus: int
    start: int = -1
    promise: int = -1

    @property
    def end(self) -> int:
        return self.start + self.duration

    @property
    def expected(self) -> int:
        return self.start + self.estimate


@dataclass
class Line:
    """The jobs that wait and that run, in order of arrival and of start."""

    rule: str
    waiting: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)

    def free(self, gone: list[Job]) -> int:
        return GPUS - sum(job.gpus for job in self.running if job not in gone)

    def start(self, job: Job, now: int) -> None:
        job.start = now
        self.waiting.remove(job)
        self.running.append(job)

    def promise(self, job: Job, now: int) -> None:
        """Promise the earliest hole beside what runs and all other promises."""
        busy = [(other.start, other.expected, other.gpus) for other in self.running]
        busy += [
            (other.promise, other.promise + other.estimate, other.gpus)
            for other in self.waiting
            if other is not job and other.promise >= 0
        ]

        def fits(at: int) -> bool:
            return job.gpus + sum(g for begin, end, g in busy if begin <= at < end) <= GPUS

        job.promise = now
        while not all(fits(at) for at in range(job.promise, job.promise + job.estimate)):
            job.promise += 1

    def promise_anew(self, now: int) -> None:
        """Promise everybody anew in order, until nobody moves."""
        before: list[int] = []
        while before != [job.promise for job in self.waiting]:
            before = [job.promise for job in self.waiting]
            for job in self.waiting:
                self.promise(job, now)

    def decide(self, now: int, gone: list[Job]) -> None:
        if self.rule == "conservative":
            for job in [job for job in self.waiting if job.promise == now]:
                self.start(job, now)
            return
        while self.waiting and self.waiting[0].gpus <= self.free(gone):
            self.start(self.waiting[0], now)
        if self.waiting:
            self.backfill(now, gone)

    def backfill(self, now: int, gone: list[Job]) -> None:
        """Start others that do not delay the head."""
        head, free = self.waiting[0], self.free(gone)
        staying = [job for job in self.running if job not in gone]
        shadow, then = now - 1, free
        while then < head.gpus:
            shadow += 1
            then = free + sum(job.gpus for job in staying if job.expected <= shadow)
        extra = then - head.gpus
        others = self.waiting[1:]
        if self.rule == "easy_sjbf":
            others.sort(key=lambda job: job.estimate)
        for job in others:
            if job.gpus > self.free(gone):
                continue
            if now + job.estimate > shadow:
                if job.gpus > extra:
                    continue
                extra -= job.gpus
            self.start(job, now)


@dataclass
class Plain:
    """The second simulator: one second after the other."""

    jobs: list[Job]
    line: Line
    events: str

    def gone(self, now: int) -> list[Job]:
        """Running jobs that count as gone already."""
        if self.events != "submissions_first":
            return []
        return [job for job in self.line.running if job.end == now and job.expected <= now]

    def complete(self, now: int) -> None:
        line, alone = self.line, self.events != "batch"
        while ending := [job for job in line.running if job.end == now]:
            done = ending[:1] if alone else ending
            line.running = [job for job in line.running if job not in done]
            line.promise_anew(now)
            if alone:
                line.decide(now, self.gone(now))

    def arrive(self, now: int) -> None:
        for job in self.jobs:
            if job.submit == now:
                self.line.waiting.append(job)
                self.line.promise(job, now)
                if self.events != "batch":
                    self.line.decide(now, self.gone(now))

    def fly(self) -> list[int]:
        """Return when each job starts."""
        now = 0
        while any(job.start < 0 for job in self.jobs):
            happen = [self.complete, self.arrive]
            for each in reversed(happen) if self.events == "submissions_first" else happen:
                each(now)
            if self.events == "batch":
                self.line.decide(now, [])
            now += 1
        return [job.start for job in self.jobs]


def starts(rows: list[Row], rule: str, events: str) -> list[int]:
    """Return when each job starts in the second simulator."""
    jobs = [Job(submit, run, run + more, gpus) for submit, run, more, gpus in rows]
    return Plain(jobs, Line(rule), events).fly()


def flown(rows: list[Row], rule: str, events: str, engine: str) -> list[float | None]:
    """Return when each job starts in our own run."""
    jobs = {
        "submit_time": [submit for submit, _, _, _ in rows],
        "duration": [run for _, run, _, _ in rows],
        "estimate": [run + more for _, run, more, _ in rows],
        "num_gpus": [gpus for _, _, _, gpus in rows],
    }
    out = wt.simulate(jobs, f"pool:{GPUS}", "fifo", queueing=rule, events=events, engine=engine)
    found: list[float | None] = out.table["start_time"].to_pylist()
    return found


@settings(max_examples=60)
@given(ROWS, st.sampled_from(("easy", "easy_sjbf", "conservative")))
def test_a_plain_simulator_gives_the_same_starts(rows: list[Row], rule: str) -> None:
    expected = starts(rows, rule, "batch")
    for engine in ENGINES:
        assert flown(rows, rule, "batch", engine) == expected


@settings(max_examples=60)
@given(
    ROWS,
    st.sampled_from(("easy", "easy_sjbf")),
    st.sampled_from(("submissions_first", "completions_first")),
)
def test_so_it_does_with_one_event_at_a_time(rows: list[Row], rule: str, events: str) -> None:
    expected = starts(rows, rule, events)
    for engine in ENGINES:
        assert flown(rows, rule, events, engine) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_a_promise_is_kept_though_nothing_else_happens_then(engine: str) -> None:
    """Worked by hand.

    At 0 the third job is promised 6, when the first is expected to end; at 1 the fourth is promised
    4. At 3 the first ends. Promised anew in order, the third job now stands behind the fourth, at
    5; then the fourth moves forward to 3; and then the third to 4, when the second is expected to
    end. The second ends at 3 already, the third job still at its promise: nothing happens then.
    """
    pool = {
        "submit_time": [0, 0, 0, 1],
        "duration": [3, 4, 1, 1],
        "estimate": [6, 4, 1, 1],
        "num_gpus": [1, 1, 2, 1],
    }
    out = wt.simulate(pool, "pool:2", "conservative", engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 0, 4, 3]


@pytest.mark.parametrize("engine", ENGINES)
def test_promises_move_until_none_can(engine: str) -> None:
    """Worked by hand.

    The job of 16 GPUs is promised 68, the last one 39. At 34 the first ends, and with one pass the
    large job would stand behind the last one's promise, at 41, though that one then moves to 34.
    """
    jobs = {
        "submit_time": [0, 3, 26, 29],
        "duration": [34, 1, 13, 2],
        "num_gpus": [1, 16, 14, 2],
        "estimate": [68, 4, 13, 2],
    }
    out = wt.simulate(jobs, "pool:16", "conservative", engine=engine)
    assert out.table["start_time"].to_pylist() == [0, 39, 26, 34]


@pytest.mark.parametrize("engine", ENGINES)
def test_who_is_expected_to_have_gone_has_gone_for_every_decision(engine: str) -> None:
    """Worked by hand.

    At 4 both jobs end, first the one of which 9 s were expected: with it the other counts as gone,
    and there is room for the third.
    """
    rows = [(0, 4, 5, 2), (0, 4, 0, 2), (1, 5, 0, 4), (1, 2, 0, 2)]
    assert flown(rows, "easy", "submissions_first", engine) == [0, 0, 4, 9]
