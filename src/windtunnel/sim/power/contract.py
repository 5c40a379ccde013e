"""`PoweredRun`: what policies of power ask of a run, whatever engine flies it.

The policies (`windtunnel.sim.power.sources`) are written once, in Python, because what they do is
rare: rows of a cap, nodes that sleep, jobs held until later, limits. An engine lends them its
tables through these methods. Jobs are known by their arrival number, stays by theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class PoweredRun(Protocol):
    """A run under policies of power."""

    # What is so.

    @property
    def unfinished(self) -> int:
        """Jobs that are not over, those that have not arrived included."""

    def running_jobs(self) -> Sequence[int]:
        """Return running jobs in order of start."""

    def waiting_jobs(self) -> Sequence[int]:
        """Return the jobs in the queue, in order of coming."""

    def stay_of(self, job: int) -> int:
        """Return the number of a running job's stay."""

    def attained(self, job: int, now: float) -> tuple[float, float]:
        """Return (seconds on GPUs so far, work left) of an active job."""

    def time_left(self, job: int, now: float) -> float:
        """Return an active job's work left with what it owes for resuming, s."""

    def resume_cost(self, job: int) -> float:
        """Return the seconds that a job pays when it goes on after a stop."""

    def nodes_in_use(self) -> Collection[int]:
        """Return the nodes on which any job runs."""

    def most_nodes_in_use(self) -> int:
        """Return the most nodes in use at any instant since this was asked last.

        That is after completions and arrivals, and after decisions.
        """

    def nodes_for_waiting(self, nodes: Collection[int]) -> Sequence[int]:
        """Return which of some nodes waiting jobs would get if all of them were restored.

        In order of coming, each job besides those before it; a class of which one does not fit, or
        has not the power, is passed over. Each node once, in the order in which it is needed.
        """

    def floor(self, job: int) -> int:
        """Return the least that a running job adds to the draw, nanowatts; 0 = it counts nowhere.

        Of jobs that share a place, the first counts for all.
        """

    def floor_sum(self) -> int:
        """Return the sum of that over running jobs, nanowatts."""

    # What is done.

    def set_budget(self, nanowatts: int) -> None:
        """Let jobs add so much to the draw from now on; whoever was refused may try again."""

    def withhold(self, node: int) -> None:
        """Keep a node from everybody: it sleeps. It is not down."""

    def restore(self, node: int) -> None:
        """Undo that: the node is awake."""

    def queue(self, job: int, now: float) -> None:
        """Let a job enter the queue that was held, its work saved."""

    def pause(self, job: int, now: float) -> None:
        """Take a running job off its GPUs with its work saved; it counts as preempted."""

    def cut(self, job: int, now: float) -> None:
        """Do the same, and queue it again."""
