"""Planted cheats: each would gain by what no scheduler knows, or is not the same twice."""

from __future__ import annotations

import ctypes
import gc
import os
import pathlib
import random
import socket
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np

import windtunnel as wt

FOUND: dict[str, Any] = {}


def true_duration(jobs: Any) -> Any:
    return jobs.duration


def by_another_name(jobs: Any) -> Any:
    return getattr(jobs, "dura" + "tion")


def swallowed(jobs: Any) -> Any:
    try:
        return jobs.duration
    except BaseException:  # noqa: BLE001 - that is the cheat
        return jobs.submit_time


def recorded_end(jobs: Any) -> Any:
    return jobs.end_time - jobs.start_time


def the_whole_table(jobs: Any) -> Any:
    return np.array(jobs.table["duration"].to_pylist())


def inner_columns(jobs: Any) -> Any:
    return np.array(jobs._known.columns["duration"])


def remaining(job: Any, now: float) -> float:
    return job.remaining


def others_fates(job: Any, now: float) -> float:
    return float(job.status == "failed")


class ByRemaining(wt.Policy):
    preemptive = True
    by_remaining = True

    def key(self, job: Any, now: float) -> float:
        return job.submit_time


class Fills(wt.Policy):
    every = 60.0
    fills = True

    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        yield from ()

    def fill(self, now: float, queue: Any, cluster: Any) -> Any:
        """Start nobody."""
        return ()


class PerfectEstimates(wt.Policy):
    queueing = "easy"
    estimates = "perfect"

    def rank(self, jobs: Any) -> Any:
        return jobs.submit_time


class ByOracle(wt.Policy):
    by = ("oracle",)

    def rank(self, jobs: Any) -> Any:
        return jobs.oracle


class FasterThanLight(wt.Policy):
    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        for job in queue.startable:
            yield wt.Start(job, rate=1000.0)


class TheSimulator(wt.Policy):
    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        lengths = cluster.deciding.driver.problem.duration
        for job in sorted(queue, key=lambda job: lengths[job.number]):
            yield wt.Start(job)


class NotYetArrived(wt.Policy):
    def decide(self, now: float, queue: Any, cluster: Any) -> Any:
        job = next(iter(queue), None)
        if job is not None:
            job.number += 100
            yield wt.Start(job)


def the_clock(jobs: Any) -> Any:
    return np.array([time.perf_counter_ns() % 97 for _ in range(len(jobs))], dtype=float)


def chance(jobs: Any) -> Any:
    return np.array([random.random() for _ in range(len(jobs))])  # noqa: S311 - that is the cheat


def numpys_chance(jobs: Any) -> Any:
    return np.random.default_rng().random(len(jobs))


def the_order_of_a_set(jobs: Any) -> Any:
    return np.array([hash(str(name)) % 97 for name in jobs.job_id], dtype=float)


def a_file(jobs: Any) -> Any:
    return np.loadtxt(pathlib.Path(__file__).with_name("lengths.txt"))


def a_swallowed_file(jobs: Any) -> Any:
    try:
        pathlib.Path("/proc/self/maps").read_text(encoding="utf-8")
    except Exception:  # noqa: BLE001 - that is the cheat
        return jobs.submit_time
    return jobs.estimate


def notes_for_later(jobs: Any) -> Any:
    pathlib.Path("seen.txt").write_text(str(len(jobs)), encoding="utf-8")
    return jobs.submit_time


def the_parents_memory(jobs: Any) -> Any:
    with open(f"/proc/{os.getppid()}/mem", "rb") as memory:  # noqa: PTH123 - that is the cheat
        memory.read(1)
    return jobs.submit_time


def another_process(jobs: Any) -> Any:
    subprocess.run(["true"], check=True)  # noqa: S607 - that is the cheat
    return jobs.submit_time


def the_network(jobs: Any) -> Any:
    socket.socket()
    return jobs.submit_time


def memory_by_hand(jobs: Any) -> Any:
    ctypes.CDLL(None)
    return jobs.submit_time


def every_object(jobs: Any) -> Any:
    gc.get_objects()
    return jobs.submit_time


def frames_of_the_caller(jobs: Any) -> Any:
    frame = sys._getframe()
    while frame is not None:
        for value in frame.f_locals.values():
            if hasattr(value, "duration"):
                return value.duration
        frame = frame.f_back
    raise LookupError("no frame has it")


def a_thread(jobs: Any) -> Any:
    threading.Thread(target=time.sleep, args=(1,)).start()
    return jobs.submit_time


def its_own_flight(jobs: Any) -> Any:
    return wt.simulate({"submit_time": [0], "duration": [1], "num_gpus": [1]}, "pool:1")


def the_scenario_itself(jobs: Any) -> Any:
    from windtunnel.board.workloads import draw

    return jobs.submit_time


def for_ever(jobs: Any) -> Any:
    while True:
        pass


def all_memory(jobs: Any) -> Any:
    FOUND["much"] = [np.ones(1 << 28) for _ in range(64)]
    return jobs.submit_time


def once_before(jobs: Any) -> Any:
    """Not caught but empty-handed: no run remembers another."""
    FOUND["runs"] = FOUND.get("runs", 0) + (len(jobs) == 1)
    return jobs.submit_time if FOUND["runs"] <= 1 else -jobs.submit_time


def jobs_to_come(jobs: Any) -> Any:
    """Not caught but empty-handed: the last submission that it sees is now."""
    return jobs.submit_time + 1e-3 * (jobs.submit_time.max() - jobs.submit_time)
