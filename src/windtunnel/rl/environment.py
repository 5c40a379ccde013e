"""`SchedulingEnv`: who of the waiting jobs starts next, asked one start at a time.

The environment is a tier-3 policy whose decisions are an agent's: a run of `windtunnel.simulate`
on the reference engine goes on in a thread of its own up to an instant at which a visible job could
start, and waits there for an action. So every option of `simulate` is at hand, and an agent that
acts like a policy gets that policy's outcome, bit for bit.
"""

from __future__ import annotations

import gc
import threading
import weakref
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel import schema
from windtunnel.errors import SpecError
from windtunnel.sim.contract import Policy, Start
from windtunnel.study.simulate import simulate

try:
    import gymnasium
    from gymnasium import spaces
except ImportError as error:
    raise ImportError("windtunnel.rl needs gymnasium: pip install 'windtunnel[rl]'") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.sim.jobs import JobView
    from windtunnel.sim.outcome import Outcome

    Observation = dict[str, np.ndarray]
    Agent = Callable[[Observation, dict[str, Any]], int]

#: Columns of the observation of jobs.
FEATURES: tuple[str, ...] = ("present", "num_gpus", "length", "waited", "fits")
#: Columns of the observation of the cluster.
CLUSTER_FEATURES: tuple[str, ...] = ("free_gpus", "num_gpus", "waiting", "running")
_HIGH = float(np.finfo(np.float32).max)


class SchedulingEnv(gymnasium.Env[Any, Any]):  # type: ignore[misc] # of an extra: not followed
    """The scheduling of a trace's jobs on a cluster.

    Observation, a dict of float32 arrays: ``jobs`` (window, 5), the first waiting jobs by arrival:
    present (0 or 1), GPUs asked for, length in s, seconds waited so far, and whether it fits now
    (0 or 1); rows of absent jobs are 0. ``cluster`` (4,): free GPUs, all GPUs, jobs that wait, jobs
    that run.

    Action: the row of the job to start now, or ``window``: start no (more) job at this instant. A
    row whose job is absent or does not fit means that, too. Where nothing runs somebody has to
    start, lest jobs wait for ever: then these actions mean the first that fits.
    ``info["action_mask"]`` (int8, window + 1) tells which actions mean what they say. Nobody is
    asked where no visible job fits.

    Reward: minus the time that jobs spent in the system since the last action, s, over the number
    of jobs: the rewards of an episode add up to minus the mean completion time, where every job
    finishes. An episode ends with the run; it is never truncated.

    Args:
        jobs: as for `windtunnel.simulate`.
        cluster: likewise.
        window: waiting jobs that are visible.
        length: what is shown as a job's length: ``duration`` (as if it were known) or ``estimate``.
        episode_jobs: jobs of an episode, which follow each other in the trace from a place drawn at
            `reset`; None = all of them.
        options: further options of `windtunnel.simulate`, but for policy, queueing, engine and
            events.

    Raises:
        SpecError: an option is wrong, or jobs lack what is shown as their length.
        SchemaError: the jobs break the schema.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - gymnasium's own type

    def __init__(
        self,
        jobs: Any,
        cluster: ClusterSpec | str,
        *,
        window: int = 16,
        length: str = "duration",
        episode_jobs: int | None = None,
        **options: Any,
    ) -> None:
        table = schema.as_jobs(jobs)
        if window < 1:
            raise SpecError("window", f"found {window}; expected at least 1 job.")
        if length not in {"duration", "estimate"}:
            raise SpecError.unknown("length", length, ("duration", "estimate"))
        if table.num_rows < 1 or not 1 <= (episode_jobs or 1) <= table.num_rows:
            message = f"found {episode_jobs} of {table.num_rows:,} jobs; expected some of them."
            raise SpecError("episode_jobs", message)
        for name in ("policy", "queueing", "engine", "events"):
            if name in options:
                raise SpecError(name, "the environment decides that itself.")
        unknown = table[length].null_count
        if unknown:
            raise SpecError("length", f"{unknown:,} job(s) have no {length}; expected it known.")
        self._table = table.sort_by("submit_time")
        self._cluster = cluster
        self._window = window
        self._length = length
        self._episode_jobs = episode_jobs
        self._options = options
        self._run: _Run | None = None
        self._end: weakref.finalize[..., SchedulingEnv] | None = None
        self._outcome: Outcome | None = None
        rows = spaces.Box(0.0, _HIGH, (window, len(FEATURES)), np.float32)
        whole = spaces.Box(0.0, _HIGH, (len(CLUSTER_FEATURES),), np.float32)
        self.observation_space = spaces.Dict({"jobs": rows, "cluster": whole})
        self.action_space = spaces.Discrete(window + 1)

    @property
    def outcome(self) -> Outcome:
        """The outcome of the last episode.

        Raises:
            RuntimeError: no episode has ended since the last `reset`.
        """
        if self._outcome is None:
            raise RuntimeError("no episode has ended yet")
        return self._outcome

    @property
    def over(self) -> bool:
        """Whether no episode is going on: it has ended, perhaps without a single choice."""
        return self._run is None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; return the first observation and its info.

        Args:
            seed: of the places that episodes begin at.
            options: ``{"first": row}`` begins the episode at that job, by submission.
        """
        super().reset(seed=seed)
        self.close()
        self._outcome = None
        table = self._table
        if self._episode_jobs is not None:
            last = table.num_rows - self._episode_jobs
            first = (options or {}).get("first")
            place = int(self.np_random.integers(last + 1)) if first is None else int(first)
            table = table.slice(min(max(place, 0), last), self._episode_jobs)
        self._run = _Run(table, self._cluster, self._window, self._options)
        if self._end is not None:
            self._end.detach()  # else every episode were kept as long as the environment
        self._end = weakref.finalize(self, self._run.stop)  # nobody need close an environment
        self._listen()
        return self._observed()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Start a job, or none (more) at this instant; go on to the next choice.

        Raises:
            RuntimeError: the episode is over, or none was begun.
        """
        run = self._run
        if run is None:
            raise RuntimeError("no episode is going on; call reset()")
        run.answer(run.meant(int(action)))
        self._listen()
        reward = -run.spent() / run.num_jobs
        observation, info = self._observed()
        return observation, reward, self._run is None, False, info

    def close(self) -> None:
        """End the episode that is going on, if any."""
        if self._run is not None:
            self._run.stop()
            self._run = None

    def _listen(self) -> None:
        """Wait for the run's next question, or its end."""
        assert self._run is not None  # noqa: S101 - for the type checker: callers have a run
        outcome = self._run.listen()
        if outcome is not None:
            self._outcome = outcome
            self._run = None

    def _observed(self) -> tuple[Observation, dict[str, Any]]:
        jobs = np.zeros((self._window, len(FEATURES)), dtype=np.float32)
        cluster = np.zeros(len(CLUSTER_FEATURES), dtype=np.float32)
        mask = np.zeros(self._window + 1, dtype=np.int8)
        info: dict[str, Any] = {"action_mask": mask}
        run = self._run
        if run is not None:
            for row, (job, fits) in enumerate(run.visible):
                length = job.duration if self._length == "duration" else job.estimate
                jobs[row] = (1.0, job.num_gpus, length, run.now - job.submit_time, fits)
                mask[row] = fits
            cluster[:] = run.counts()
            mask[-1] = run.counts()[-1] > 0
            info["time"] = run.now
        return {"jobs": jobs, "cluster": cluster}, info


def first_come(observation: Observation, info: dict[str, Any]) -> int:  # noqa: ARG001 - an agent
    """Return the action of ``fifo`` with ``queueing="strict"``: the first job, once it fits."""
    jobs = observation["jobs"]
    return 0 if jobs[0, FEATURES.index("fits")] else len(jobs)


def shortest_that_fits(observation: Observation, info: dict[str, Any]) -> int:  # noqa: ARG001
    """Return the action of ``sjf`` with ``queueing="skip"``, as far as the window goes."""
    jobs = observation["jobs"]
    fits = jobs[:, FEATURES.index("fits")] > 0
    if not fits.any():
        return len(jobs)
    return int(np.argmin(np.where(fits, jobs[:, FEATURES.index("length")], np.inf)))


def play(env: SchedulingEnv, agent: Agent, *, seed: int | None = None) -> Outcome:
    """Fly an episode under an agent and return its outcome.

    Args:
        env: the environment.
        agent: (observation, info) -> action.
        seed: of the episode.
    """
    observation, info = env.reset(seed=seed)
    while not env.over:
        observation, _, _, _, info = env.step(agent(observation, info))
    return env.outcome


class _StoppedError(Exception):
    """The episode is no longer wanted."""


class _Asking(Policy):
    """The policy that asks: it hands every choice over and waits for the answer."""

    name = "agent"

    def __init__(self, run: _Run) -> None:
        self._run = run

    def decide(self, now: float, queue: Any, cluster: Any) -> Iterator[Start]:
        """Ask who starts, until nobody does or can."""
        self._run.comes_to(now, len(queue) + len(cluster.running))
        while (job := self._run.ask(queue, cluster)) is not None:
            yield Start(job)


class _Run:
    """A run in a thread of its own, which stands still whenever it waits for an answer.

    Attributes:
        num_jobs: jobs of the run.
        now: the instant at which it stands, s.
        visible: waiting jobs with whether they fit, while it stands.
    """

    def __init__(
        self, table: Any, cluster: ClusterSpec | str, window: int, options: dict[str, Any]
    ) -> None:
        self.num_jobs = table.num_rows
        self.now = 0.0
        self.visible: list[tuple[JobView, bool]] = []
        self._window = window
        self._until: float | None = options.get("until")
        self._collects = gc.isenabled()
        self._active = 0
        self._spent = 0.0
        self._seen: tuple[Any, Any] | None = None
        self._questions: SimpleQueue[Outcome | BaseException | None] = SimpleQueue()
        self._answers: SimpleQueue[JobView | type[_StoppedError] | None] = SimpleQueue()
        self._thread = threading.Thread(
            target=self._fly, args=(table, cluster, options), name="windtunnel run", daemon=True
        )
        self._thread.start()

    # What the environment calls, while the run stands still.

    def listen(self) -> Outcome | None:
        """Wait until the run asks; return its outcome if it has ended instead.

        Raises:
            WindtunnelError: the run cannot be flown.
        """
        question = self._questions.get()
        if isinstance(question, BaseException):
            raise question
        return question

    def meant(self, action: int) -> JobView | None:
        """Return the job that an action starts; None = nobody."""
        if 0 <= action < len(self.visible) and self.visible[action][1]:
            return self.visible[action][0]
        if self.counts()[-1] > 0:
            return None
        return next(job for job, fits in self.visible if fits)

    def answer(self, job: JobView | None) -> None:
        """Say who starts; None = nobody (more)."""
        self._answers.put(job)

    def stop(self) -> None:
        """End the run where it stands."""
        self._answers.put(_StoppedError)
        if threading.current_thread() is not self._thread:  # which may collect the garbage
            self._thread.join()

    def spent(self) -> float:
        """Return the time that jobs spent in the system since this was last asked, s."""
        spent, self._spent = self._spent, 0.0
        return spent

    def counts(self) -> tuple[float, float, int, int]:
        """Return what `CLUSTER_FEATURES` names."""
        assert self._seen is not None  # noqa: S101 - for the type checker: the run stands
        queue, cluster = self._seen
        return cluster.free_gpus, cluster.num_gpus, len(queue), len(cluster.running)

    # What the run calls, in its own thread.

    def comes_to(self, now: float, active: int) -> None:
        """Note an instant, and how many jobs are in the system from it on."""
        self._spent += self._active * (now - self.now)
        self.now, self._active = now, active

    def ask(self, queue: Any, cluster: Any) -> JobView | None:
        """Return who starts, as the agent says; do not ask where nobody visible fits.

        Raises:
            _StoppedError: the episode is no longer wanted.
        """
        first = [queue[at] for at in range(min(self._window, len(queue)))]
        self.visible = [(job, cluster.fit(job) is not None) for job in first]
        if not any(fits for _, fits in self.visible):
            return None
        if self._collects:
            gc.enable()  # the engine pauses it; an agent that learns meanwhile needs it
        self._seen = (queue, cluster)
        self._questions.put(None)
        job = self._answers.get()
        if job is _StoppedError:
            raise _StoppedError
        return job  # type: ignore[return-value] # the class itself is never a job

    def _fly(self, table: Any, cluster: ClusterSpec | str, options: dict[str, Any]) -> None:
        try:
            outcome = simulate(table, cluster, _Asking(self), engine="reference", **options)
        except _StoppedError:
            return
        except BaseException as error:  # noqa: BLE001 - raised where the run is listened to
            self._questions.put(error)
            return
        if self._until is not None:
            self.comes_to(max(self.now, float(self._until)), 0)
        self._questions.put(outcome)
