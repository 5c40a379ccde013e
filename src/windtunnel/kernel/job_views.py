"""`JobView`: one job as policies in Python see it: a window on the kernel's tables, no copy."""

from __future__ import annotations

import cython
import numpy

from windtunnel.kernel.job_list import JobList
from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.state import STATE_FINISHED, STATE_RUNNING, State


@cython.final
@cython.freelist(1024)
@cython.cclass
class JobView:
    """One job: ``job.num_gpus``, ``job.user`` ... by column name; see `JobView` in `sim.jobs`.

    Attributes:
        number: its arrival number in the run.
        row: its row in the jobs table.
        submit_time, num_gpus, duration: of the jobs table.
    """

    _state: State
    _jobs: object
    number = cython.declare(cython.int, visibility="readonly")
    row = cython.declare(cython.longlong, visibility="readonly")
    submit_time = cython.declare(cython.double, visibility="readonly")
    num_gpus = cython.declare(cython.double, visibility="readonly")
    duration = cython.declare(cython.double, visibility="readonly")

    @property
    def running(self) -> bool:
        """Whether it holds GPUs now."""
        return bool(_view_runs(self._state, self.number))

    @property
    def run_time(self) -> float:
        """Seconds on GPUs so far."""
        return self._state.run_time(self.number)

    @property
    def remaining(self) -> float:
        """Work left at this instant, in seconds at full speed."""
        return _view_left(self._state, self.number)

    def __getattr__(self, name: str) -> object:
        value = getattr(self._jobs, name)[self.row]
        return float(value) if isinstance(value, numpy.floating) else value

    def __setattr__(self, name: str, value: object) -> None:
        message = (
            f"jobs cannot be changed: found job.{name} = {value!r}; keep what you note of jobs"
        )
        raise AttributeError(f"{message} in a dict of your own, by job.number.")

    def __repr__(self) -> str:
        return f"JobView({self.job_id!r}, num_gpus={self.num_gpus:g})"


@compiled
def _view_runs(state: State, job: cython.int) -> cython.bint:
    """Return whether a job holds GPUs now, or is shown to."""
    return state.status[job] == STATE_RUNNING and state.shown_stopped != job


@compiled
def _view_left(state: State, job: cython.int) -> cython.double:
    """Return a job's work left now, s at full speed."""
    if _view_runs(state, job):
        return state.work_left(job)
    if state.status[job] == STATE_FINISHED:
        return 0.0
    return state.left[job]


@cython.final
@cython.cclass
class JobViews:
    """The views of a run's jobs: each is made when it is first asked for, and then the same.

    Args:
        state: the run.
        problem: its jobs.

    Attributes:
        known: the view of each job, None where nobody has asked.
    """

    state: State
    known: list
    jobs: object
    rows: cython.longlong[::1]
    submit_time: cython.double[::1]
    num_gpus: cython.double[::1]
    duration: cython.double[::1]

    def __init__(self, state: State, problem: object) -> None:
        jobs, rows = problem.jobs, problem.rows
        self.state, self.jobs = state, jobs
        self.known = [None] * len(rows)
        self.rows = numpy.ascontiguousarray(rows, dtype=numpy.int64)
        self.submit_time = numpy.ascontiguousarray(jobs.submit_time[rows], dtype=numpy.float64)
        self.num_gpus = numpy.ascontiguousarray(jobs.num_gpus[rows], dtype=numpy.float64)
        self.duration = numpy.ascontiguousarray(jobs.duration[rows], dtype=numpy.float64)

    @cython.cfunc
    def of(self, job: cython.int) -> JobView:
        """Return a job's view."""
        found = self.known[job]
        if found is not None:
            return cython.cast(JobView, found)
        view: JobView = JobView.__new__(JobView)
        view._state = self.state
        view._jobs = self.jobs
        view.number = job
        view.row = self.rows[job]
        view.submit_time = self.submit_time[job]
        view.num_gpus = self.num_gpus[job]
        view.duration = self.duration[job]
        self.known[job] = view
        return view

    def view(self, job: int) -> JobView:
        """Return a job's view."""
        return self.of(job)

    def listed(self, jobs: JobList) -> list:
        """Return the views of some jobs, in order."""
        at: cython.int
        found: list = []
        for at in range(jobs.count):
            found.append(self.of(jobs.job[at]))
        return found

    def tell(self, policy: object) -> None:
        """Tell a policy that watches who has started and who has stopped since it last heard."""
        changes = self.state.changes
        if not changes:
            return
        self.state.changes = []
        for job, what, time in changes:
            if what > 0:
                policy.started(self.of(job), time)
            else:
                self.state.shown_stopped = job
                policy.stopped(self.of(job), time)
                self.state.shown_stopped = -1

    def columns(self, numbers: numpy.ndarray, name: str) -> numpy.ndarray:
        """Return what ``view.name`` is for each of these jobs, as an array.

        Args:
            numbers: Int32 array (k,), arrival numbers.
            name: a column of the jobs table, or ``number``, ``row``, ``remaining``, ``run_time``,
                ``running``.
        """
        if name == "number":
            return numbers.copy()  # a policy may write into what it is given
        if name in ("remaining", "run_time", "running"):
            return self._states(numbers, name)
        rows = numpy.asarray(self.rows)[numbers]
        return rows if name == "row" else getattr(self.jobs, name)[rows]

    def _states(self, numbers: numpy.ndarray, name: str) -> numpy.ndarray:
        at: cython.longlong
        job: cython.int
        count: cython.longlong = len(numbers)
        jobs: cython.int[::1] = numbers
        values: cython.double[::1] = numpy.empty(count)
        are_running: cython.bint = name == "running"
        are_left: cython.bint = name == "remaining"
        for at in range(count):
            job = jobs[at]
            if are_running:
                values[at] = _view_runs(self.state, job)
            elif are_left:
                values[at] = _view_left(self.state, job)
            else:
                values[at] = self.state.run_time(job)
        found = numpy.asarray(values)
        return found.astype(bool) if are_running else found


@cython.cfunc
def view_pairs(pairs: Pairs, begin: cython.longlong, end: cython.longlong) -> list:
    """Return (node, grant) pairs as policies have them."""
    at: cython.longlong
    found: list = []
    for at in range(begin, end):
        found.append((pairs.node[at], pairs.grant[at]))
    return found
