"""GPUs kept for the first job that has waited too long: when it will fit, and what may pass it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windtunnel.cluster.free import Where
    from windtunnel.policies.morphling.draft import Draft, Held
    from windtunnel.policies.morphling.ladder import Ladder
    from windtunnel.sim.elastic.work import Option
    from windtunnel.sim.jobs import JobView


@dataclass
class Shadow:
    """A reservation: as in EASY backfilling, but run times are known.

    Attributes:
        at: when the job fits, s.
        done: when it then completes, s.
        spare: what is free then besides its place.
    """

    at: float
    done: float
    spare: Any

    @classmethod
    def of(cls, draft: Draft, job: JobView, ladder: Ladder) -> Shadow | None:
        """Return the reservation with which a job completes first, running jobs going on.

        Args:
            draft: who runs.
            job: the job, which does not fit now.
            ladder: its options.
        """
        free = draft.free.copy()
        best: tuple[float, float, Any] | None = None
        for held in sorted(draft.held.values(), key=lambda h: (h.until, h.job.number)):
            free.give(held.where, held.option, held.job.number)
            if best is not None and held.until >= best[0]:
                break
            for option in ladder.options:
                where = draft.fit(job, option, free)
                if where is None:
                    continue
                done = held.until + draft.runtime(job, option)
                if best is None or done < best[0]:
                    spare = free.copy()
                    spare.take(where, option, job.number)
                    best = (done, held.until, spare)
        return None if best is None else cls(best[1], best[0], best[2])

    def fit(self, draft: Draft, job: JobView, option: Option, where: Where) -> Where | None:
        """Return where an option may go that does not delay the reservation, or None.

        Args:
            draft: who runs.
            job: another job.
            option: how it would run.
            where: where it would go, were there no reservation.
        """
        if draft.now + draft.runtime(job, option) <= self.at:
            return where
        both = draft.free.copy()
        both.meet(self.spare)
        return draft.fit(job, option, both)

    def note(self, held: Held) -> None:
        """Count a job that was launched past the reservation."""
        if held.until > self.at:
            self.spare.take(held.where, held.option, held.job.number)
