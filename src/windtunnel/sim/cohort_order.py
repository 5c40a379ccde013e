"""Quotas that queues of a cohort lend each other, as numbers alone: `CohortQuotas`, `CohortOrder`.

Who may start follows from what each queue uses. `CohortQuotas` limit any policy; a `CohortOrder`
also says whose turn it is, who gives way and who is put back: all that
`windtunnel.policies.quota` decides. It is what the compiled engine goes by; the policy's
``decide``, which the reference asks, must agree with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

#: Parts of a GPU that quotas are counted in.
PARTS = 1_000_000
#: Whose jobs give way, as in ``reclaims`` and ``within``.
GIVES_WAY: tuple[str, ...] = ("Never", "LowerPriority", "Any")


@dataclass(frozen=True, eq=False, kw_only=True)
class CohortQuotas:
    """A queues' quotas of F flavors, and what m jobs ask of them. Quantities in millionths of GPUs.

    Jobs of one *line* are of one queue and one demand class.

    Attributes:
        amount: Int array (m,), what each job asks for, by arrival number.
        priority: Float array (m,), larger first.
        line_of: Int array (m,), each job's line.
        queue_of: Int array (lines,), the line's queue.
        flavors: Int array (lines, F), flavors to try, in order; -1 behind the last.
        fits: Int array (lines, F), for each of them the demand that is placed, in ``demands``.
        demands: demands bound to the nodes of a flavor, and those of the problem before them.
        names: the GPU type of each flavor; ``""`` alone where quotas tell no types apart.
        order: Int array (A, F), flavors that a queue has, in the order to try; -1 behind the last.
        has: Bool array (A, F), whether a queue has quota of a flavor.
        nominal: Int array (A, F), nominal quotas; 0 where it has none.
        kept: Int array (A, F), the part of it that is not lent.
        limit: Int array (A, F), most that is borrowed; -1 = no limit.
        cohort: Int array (A,), -1 = none.
        weight: Float array (A,), in fair sharing.
        blocks: a job that waits for quota holds up those behind it.
        notes: what a reader of the numbers must know.
    """

    amount: np.ndarray
    priority: np.ndarray
    line_of: np.ndarray
    queue_of: np.ndarray
    flavors: np.ndarray
    fits: np.ndarray
    demands: tuple[Any, ...]
    names: tuple[str, ...]
    order: np.ndarray
    has: np.ndarray
    nominal: np.ndarray
    kept: np.ndarray
    limit: np.ndarray
    cohort: np.ndarray
    weight: np.ndarray
    blocks: bool = False
    notes: tuple[str, ...] = ()

    @property
    def by_type(self) -> bool:
        """Whether quotas tell GPU types apart."""
        return self.names != ("",)


@dataclass(frozen=True, eq=False, kw_only=True)
class CohortOrder(CohortQuotas):
    """Quotas, and who is next by them.

    Attributes:
        strict: Bool array (A,), a queue's first job holds up the others.
        fair: borrowers go by their share.
        reclaims: Int array (A,), which jobs of other queues give way: an index of `GIVES_WAY`.
        within: Int array (A,), which of the queue's own.
        timeout: seconds that a job may wait at the head of its queue; inf = no limit.
        backoff: seconds for which it is put aside then; doubled each further time.
        backoff_max: most seconds.
        evicts: it joins the queue again behind whoever waited when it was put back.
        report_put_back: called after the run with the number of times that a job was put back.
    """

    strict: np.ndarray
    fair: bool
    reclaims: np.ndarray
    within: np.ndarray
    timeout: float
    backoff: float
    backoff_max: float
    evicts: bool
    report_put_back: Callable[[int], None]
