"""Backfilling as it is named in the field: an order of arrival and a rule that plans ahead.

The rules themselves are rules for the queue (`windtunnel.site.scheduler.QUEUEING`): any order may
be combined with them: ``policy="sjf", queueing="easy"``.
"""

from __future__ import annotations

from windtunnel.policies.length_order import checked_name
from windtunnel.policies.queue_order import Fifo


class Easy(Fifo):
    """EASY backfilling: by arrival; only the head is promised a start (Lifka, JSSPP 1995).

    Args:
        estimates: what jobs are expected to take: ``recorded``, ``perfect`` or a predictor's name.

    Raises:
        SpecError: it is no name.
    """

    name = "easy"
    queueing = "easy"

    def __init__(self, estimates: str | None = None) -> None:
        if estimates is not None:
            expected = "recorded, perfect or a predictor"
            self.estimates = checked_name(f"{self.name}, estimates", estimates, expected)


class EasySjbf(Easy):
    """EASY with shortest-first backfilling: the head by arrival, candidates by estimate.

    Tsafrir, Etsion, Feitelson, TPDS 2007.
    """

    name = "easy-sjbf"
    queueing = "easy_sjbf"


class EasyPerfect(Easy):
    """EASY that knows true durations: what better estimates could bring at most."""

    name = "easy-perfect"
    estimates = "perfect"


class Conservative(Easy):
    """Conservative backfilling: by arrival; every job is promised a start when it arrives."""

    name = "conservative"
    queueing = "conservative"
