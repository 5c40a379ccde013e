"""`DisruptedRun`: what outages ask of a run, whatever engine flies it.

They are written once (`windtunnel.sim.disruptions.source`), in Python, because they are rare. An
engine lends them its tables through these methods. Jobs are known by their arrival number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.cluster.free import Where


class DisruptedRun(Protocol):
    """A run with outages."""

    # What is so.

    @property
    def unfinished(self) -> int:
        """Jobs that are not over, those that have not arrived included."""

    def running_on(self, places: set[int]) -> Sequence[int]:
        """Return the jobs that run on any of these nodes, or pools, in order of start."""

    def where(self, job: int) -> Where:
        """Return the nodes and grants of a running job."""

    def sharing(self, job: int) -> Sequence[int]:
        """Return the jobs that share a running job's place, itself included."""

    def without(self, job: int) -> tuple[Callable[[int], int], Callable[[Where], bool]]:
        """Return what would be, were a running job gone.

        Returns:
            The GPU units of a node that nobody would hold, and whether the job could run elsewhere,
            as what it runs now: all is free, allowed and within its power.
        """

    def may_go_on(self, job: int, where: Where) -> bool:
        """Return whether the policy lets a running job go on elsewhere."""

    def free_in(self, place: int) -> int:
        """Return the GPU units free in a pool; negative where jobs hold more than there is."""

    def run_time(self, job: int) -> float:
        """Return the seconds on GPUs so far of an active job."""

    def launch_cost(self, job: int) -> float:
        """Return what every launch costs an elastic job, s; a job of another run nothing."""

    def lost(self, job: int) -> float:
        """Return the seconds of work that failures undid so far."""

    def saved_last(self, job: int) -> bool:
        """Return whether any work of a job's last stay was saved."""

    def failing(self) -> int:
        """Return the next job that fails by itself by now, -1 if there is none."""

    def take_failed(self) -> Sequence[int]:
        """Return the jobs that failed at their end since this was asked last, in order."""

    def secured(self, job: int) -> float:
        """Return a running job's work left if it failed now, s at full speed."""

    # What is done.

    def undo(self, job: int, left: float) -> None:
        """Let so much work be left (s) of a job that runs nowhere; more than that is lost."""

    def slow(self, place: int, speed: float) -> None:
        """Let what runs on a node go at this speed, 1 = as usual."""

    def hold(self, place: int, group: int, units: int) -> None:
        """Keep a node, or GPU units of a pool, for a group of jobs or for nobody."""

    def release(self, place: int, group: int, units: int) -> None:
        """Undo one `hold`."""

    def room_changes(self, *, announced: bool) -> None:
        """Note that room is taken out now or comes back, as was announced or not."""

    def fail_at(self, job: int, run_time: float) -> None:
        """Let a job fail by itself once it has been on its GPUs for so long, s."""

    def interrupt(self, job: int, *, loses: bool, goes_on: bool = False) -> None:
        """Take a running job off its GPUs; it loses what its checkpoints have not secured, or not.

        It is in no queue then; where it ``goes_on``, `go_on` follows.
        """

    def go_on(self, job: int, where: Where) -> None:
        """Let a job that was interrupted just now go on elsewhere at once."""

    def owes(self, job: int, seconds: float, *, restarts: bool) -> None:
        """Let a job pay so much (s) as it starts, or restarts: it was interrupted or failed."""

    def queue(self, job: int, now: float) -> None:
        """Let a job enter the queue again."""

    def end_failed(self, job: int) -> None:
        """Let a job that waits nowhere be over: it failed."""
