"""Closed loops: a hand-worked case, a closed queue in plain Python, theory, and every policy."""

from __future__ import annotations

import heapq
import math
import random
from typing import Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.errors import SpecError
from windtunnel.schema import as_jobs
from windtunnel.study.closed_loop import BREAK
from windtunnel.study.grid.flying import jobs_at_load
from windtunnel.study.resolving import conditions_of, resolved


def log_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return a log: rows of user, submit_time, start_time, duration, and GPUs where not one."""
    names = ("user", "submit_time", "start_time", "duration", "num_gpus", "status")
    plain = {"num_gpus": 1.0, "status": "completed"}
    return {name: [(plain | row).get(name) for row in rows] for name in names}


def alone(lives: dict[str, list[tuple[float, float]]]) -> dict[str, list[Any]]:
    """Return the log of users who never waited: each thinks, runs a job, thinks ..."""
    rows = []
    for user, steps in lives.items():
        time = 0.0
        for think, length in steps:
            time += think
            rows.append({"user": user, "submit_time": time, "start_time": time, "duration": length})
            time += length
    return log_of(sorted(rows, key=lambda row: float(row["submit_time"])))


def closed_queue(
    lives: dict[str, list[tuple[float, float]]], servers: int
) -> dict[str, list[tuple[float, float]]]:
    """Return (submission, end) of each user's jobs, first come first served, in plain Python."""
    steps = {user: list(reversed(of)) for user, of in lives.items()}
    coming = [(of[-1][0], user) for user, of in steps.items() if of]
    heapq.heapify(coming)
    free = [0.0] * servers
    found: dict[str, list[tuple[float, float]]] = {user: [] for user in lives}
    while coming:
        submit, user = heapq.heappop(coming)
        _, length = steps[user].pop()
        end = max(submit, heapq.heappop(free)) + length
        heapq.heappush(free, end)
        found[user].append((submit, end))
        if steps[user]:
            heapq.heappush(coming, (end + steps[user][-1][0], user))
    return found


def drawn_lives(
    seed: int, users: int, jobs: int, think: float
) -> dict[str, list[tuple[float, float]]]:
    """Return exponential think times of this mean, and run times of mean 1 minute."""
    draw = np.random.default_rng(seed)
    return {
        f"u{user}": [(draw.exponential(think), draw.exponential(60.0)) for _ in range(jobs)]
        for user in range(users)
    }


def test_a_case_by_hand() -> None:
    # On one GPU. Ann: 0-10, thinks 5, a failed job 15-20, again after 1: 21-31. Bob: 2, a second
    # of the batch 3 s behind it. On the record nobody waited; on one GPU they do:
    # 0-10 a1, 10-30 b1 (came at 2), 30-34 b2 (came at 5), and a2 came at 15: 34-39;
    # a3 follows the failure by 1: 40-50.
    rows = [
        {"user": "ann", "submit_time": 0.0, "start_time": 0.0, "duration": 10.0},
        {"user": "bob", "submit_time": 2.0, "start_time": 2.0, "duration": 20.0},
        {"user": "bob", "submit_time": 5.0, "start_time": 5.0, "duration": 4.0},
        {"user": "ann", "submit_time": 15.0, "start_time": 15.0, "duration": 5.0},
        {"user": "ann", "submit_time": 21.0, "start_time": 21.0, "duration": 10.0},
    ]
    rows[3]["status"] = "failed"
    out = wt.simulate(log_of(rows), "pool:1", "fifo", arrivals="closed")
    assert out.jobs["submit_time"].to_pylist() == [0.0, 2.0, 5.0, 15.0, 40.0]
    assert out.table["end_time"].to_pylist() == [10.0, 30.0, 34.0, 39.0, 50.0]
    assert out.settings["arrivals"] == "closed"
    # Two users who come back the next day do so at their hour, unless the job is not over.
    late = [
        {"user": "ann", "submit_time": 0.0, "start_time": 0.0, "duration": 10.0},
        {"user": "bob", "submit_time": 1.0, "start_time": 1.0, "duration": 9_000.0},
        {"user": "ann", "submit_time": 2_000.0, "start_time": 2_000.0, "duration": 10.0},
        {"user": "bob", "submit_time": 90_000.0, "start_time": 90_000.0, "duration": 10.0},
        {"user": "ann", "submit_time": 8_000.0, "start_time": 8_000.0, "duration": 10.0},
    ]
    out = wt.simulate(log_of(late), "pool:1", "fifo", arrivals="closed")
    # Ann's third job came 5,990 s after her second was over; now that is over at 9,020.
    assert out.jobs["submit_time"].to_pylist() == [0.0, 1.0, 2_000.0, 90_000.0, 9_020.0]
    in_session = wt.simulate(log_of(late), "pool:1", "fifo", arrivals="closed:2h")
    assert in_session.jobs["submit_time"].to_pylist()[4] == 9_020.0 + 5_990.0


@pytest.mark.parametrize("seed", range(6))
def test_first_come_first_served_is_the_closed_queue(seed: int) -> None:
    lives = drawn_lives(seed, users=2 + seed, jobs=12, think=30.0 * (1 + seed % 3))
    servers = 1 + seed % 2
    found = closed_queue(lives, servers)
    log = alone(lives)
    for engine in ("compiled", "reference"):
        out = wt.simulate(log, f"pool:{servers}", "fifo", arrivals="closed", engine=engine)
        times = zip(out.jobs["submit_time"].to_pylist(), out.table["end_time"], strict=True)
        by_user: dict[str, list[tuple[float, float]]] = {user: [] for user in lives}
        for user, (submit, end) in zip(log["user"], times, strict=True):
            by_user[user].append((submit, end.as_py()))
        for user, of in by_user.items():
            assert np.allclose(of, found[user], rtol=0, atol=1e-6)


@pytest.mark.slow
def test_the_machine_repairman() -> None:
    # M/M/1//N: N machines run for Z on average, one repairman takes S. Utilisation is
    # 1 - 1 / sum_k N!/(N-k)! (S/Z)^k, and by Little's law a stay takes N S / utilisation - Z.
    users, think, service = 4, 120.0, 60.0
    weights = [math.perm(users, k) * (service / think) ** k for k in range(users + 1)]
    busy = 1 - 1 / sum(weights)
    stays = []
    for seed in range(12):
        log = alone(drawn_lives(100 + seed, users, 80, think))
        out = wt.simulate(log, "pool:1", "fifo", arrivals="closed:30d")
        jct = out.table["jct"].to_numpy()
        # The first jobs (nobody waits yet) and the last (others have left) do not count.
        submit = out.jobs["submit_time"].to_numpy()
        inside = (submit > np.quantile(submit, 0.1)) & (submit < np.quantile(submit, 0.8))
        stays.append(jct[inside].mean())
    error = np.std(stays, ddof=1) / math.sqrt(len(stays))
    expected = users * service / busy - think
    assert error < 0.06 * expected
    assert abs(np.mean(stays) - expected) < 3 * error


def follows(jobs: Any, row: int, pause: float) -> tuple[str, int, float] | None:
    """Return what a job follows, in plain words: the last event of its user, an end or a job."""
    user, submit = jobs["user"], jobs["submit_time"]
    order = sorted(range(len(user)), key=lambda other: (submit[other], other))
    before = [o for o in order[: order.index(row)] if user[o] == user[row]]
    ended = [o for o in before if submit[o] + jobs["duration"][o] <= submit[row]]
    last = max(ended, key=lambda o: (submit[o] + jobs["duration"][o], order.index(o)), default=None)
    end = -math.inf if last is None else submit[last] + jobs["duration"][last]
    if before and before[-1] not in ended and submit[before[-1]] >= end:
        gap = submit[row] - submit[before[-1]]
        if gap <= pause:
            return "submission", before[-1], gap
    if last is None:
        return None
    return ("end", last, submit[row] - end) if submit[row] - end <= pause else ("break", last, 0.0)


POLICIES = (
    *("fifo", "srtf", "las:quantum=7", "fair-share", "edf:slack=2", "quota", "conservative"),
    *(
        pytest.param("pollux:sia:interval=10", marks=pytest.mark.slow),
        "morphling",
        "gavel:max_min_fairness:round=10",
        "shockwave:market:round=10",
    ),
    "gavel:fifo_packed:round=10",
)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_submission_follows_an_event_of_the_flight(policy: str) -> None:
    pick = random.Random(policy)  # noqa: S311 - a test's own chance
    for pause in (5.0, 40.0, BREAK):
        rows: list[dict[str, Any]] = []
        time = 0.0
        for _ in range(24):
            time += pick.choice((0, 0, 1, 3, 9, 40))
            length = float(pick.choice((0, 2, 10, 30, 80)))
            rows.append({"user": pick.choice(("ann", "bob", None)), "submit_time": time})
            rows[-1] |= {"duration": length, "num_gpus": float(pick.choice((1, 2, 4)))}
            rows[-1]["start_time"] = None
        log = log_of(rows) | {"estimate": [row["duration"] + 5 for row in rows]}
        log["vc"] = [pick.choice("xy") for _ in rows]
        out = wt.simulate(log, "2x4:A", policy, arrivals=f"closed:{pause:g}")
        submit, end = out.jobs["submit_time"].to_pylist(), out.table["end_time"].to_pylist()
        for row, asked in enumerate(log["submit_time"]):
            found = None if log["user"][row] is None else follows(log, row, pause)
            if found is None:
                assert submit[row] == asked
                continue
            kind, other, delay = found
            at = submit[other] if kind == "submission" else end[other]
            wanted = max(at, asked) if kind == "break" else at + delay
            assert submit[row] == pytest.approx(wanted, abs=1e-6)
            if kind != "submission":
                assert submit[row] >= at


def test_what_it_refuses() -> None:
    log = log_of([{"user": None, "submit_time": 0.0, "start_time": 0.0, "duration": 1.0}])
    with pytest.raises(SpecError, match="no job has one; expected a column user"):
        wt.simulate(log, "pool:1", "fifo", arrivals="closed")
    log["user"] = ["ann"]
    with pytest.raises(SpecError, match=r"expected closed, or closed:20m"):
        wt.simulate(log, "pool:1", "fifo", arrivals="closed:")
    with pytest.raises(SpecError, match="expected seconds"):
        wt.simulate(log, "pool:1", "fifo", arrivals="closed:soon")
    asked = resolved(conditions_of("pool:1", "fifo", arrivals="closed"))
    with pytest.raises(SpecError, match="in a closed loop the load is what comes out"):
        jobs_at_load(as_jobs(log), asked, 0.9)


def test_a_policy_that_knows_the_future_is_refused() -> None:
    class Late(wt.Policy):
        """The first job goes the later, the sooner the last one comes."""

        name = "late"

        def rank(self, jobs: wt.Jobs) -> Any:
            last = jobs.submit_time.max() < 60
            return np.where(jobs.user == "ann", 1.0 if last else -1.0, 0.0)

    rows = [
        {"user": "bob", "submit_time": 0.0, "start_time": 0.0, "duration": 10.0},
        {"user": "ann", "submit_time": 1.0, "start_time": 1.0, "duration": 10.0},
        {"user": "cat", "submit_time": 2.0, "start_time": 2.0, "duration": 10.0},
        {"user": "dan", "submit_time": 2.0, "start_time": 2.0, "duration": 10.0},
        {"user": "ann", "submit_time": 36.0, "start_time": 36.0, "duration": 10.0},
    ]
    with pytest.raises(SpecError, match="decides by jobs that are still to come"):
        wt.simulate(log_of(rows), "pool:1", Late(), arrivals="closed")


def test_behind_a_job_that_is_never_over_nobody_comes() -> None:
    rows = [
        {"user": "ann", "submit_time": 0.0, "start_time": 0.0, "duration": 50.0, "num_gpus": 8.0},
        {"user": "ann", "submit_time": 60.0, "start_time": 60.0, "duration": 5.0},
        {"user": "bob", "submit_time": 0.0, "start_time": 0.0, "duration": 5.0},
    ]
    gone = {"capacity_changes": [{"time": 0.0, "remove": [0]}]}
    out = wt.simulate(
        log_of(rows), "2x4", "fifo", queueing="skip", arrivals="closed", disruptions=gone
    )
    assert out.table["status"].to_pylist()[1:] == ["rejected", "finished"]
    assert out.table["reason"].to_pylist()[1] == "its user waits for a job for ever"
    cut = wt.simulate(log_of(rows), "2x4", "fifo", arrivals="closed", until=30)
    assert cut.table["status"].to_pylist() == ["running", "not_submitted", "waiting"]


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_who_is_to_follow_a_job_does_not_bring_its_end(engine: str) -> None:
    """Two that wait start each other; the second of a user is not there before her first is over.

    The loop flew for ever: each flight put her second job behind the end that its coming brought.
    """

    class Pairs(wt.Policy):
        """Jobs start where two wait."""

        name = "pairs"

        def decide(self, now: float, queue: Any, cluster: Any) -> Any:
            if len(queue) > 1:
                yield from (wt.Start(job) for job in queue)

    rows = [
        {"user": "ann", "submit_time": 0.0, "start_time": 0.0, "duration": 0.0},
        {"user": "ann", "submit_time": 0.0, "start_time": 0.0, "duration": 5.0},
        {"user": "bob", "submit_time": 10.0, "start_time": 10.0, "duration": 1.0},
        {"user": "cat", "submit_time": 20.0, "start_time": 20.0, "duration": 1.0},
    ]
    out = wt.simulate(log_of(rows), "pool:4", Pairs(), arrivals="closed", engine=engine)
    came = math.nextafter(10.0, math.inf)
    assert out.jobs["submit_time"].to_pylist() == [0.0, came, 10.0, 20.0]
    assert out.table["start_time"].to_pylist() == [10.0, 20.0, 10.0, 20.0]
