"""`CohortOrder`: quotas that queues of a cohort lend each other, as numbers alone.

It holds for quotas under which nobody gives way and nobody is put back: the jobs of a queue stand
by priority, then arrival, and who starts follows from what each queue uses
(`windtunnel.policies.quota` has the rules). It is what the compiled engine goes by; the policy's
``decide`` must agree with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, eq=False)
class CohortOrder:
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
        strict: Bool array (A,), a queue's first job holds up the others.
        nominal: Int array (A, F), nominal quotas; 0 where a queue has no quota of a flavor.
        kept: Int array (A, F), the part of it that is not lent.
        limit: Int array (A, F), most that is borrowed; -1 = no limit.
        cohort: Int array (A,), -1 = none.
        weight: Float array (A,), in fair sharing.
        fair: borrowers go by their share.
    """

    amount: np.ndarray
    priority: np.ndarray
    line_of: np.ndarray
    queue_of: np.ndarray
    flavors: np.ndarray
    fits: np.ndarray
    demands: tuple[Any, ...]
    strict: np.ndarray
    nominal: np.ndarray
    kept: np.ndarray
    limit: np.ndarray
    cohort: np.ndarray
    weight: np.ndarray
    fair: bool
