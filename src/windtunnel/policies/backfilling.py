"""Backfilling as it is named in the field: an order of arrival and a rule that plans ahead.

The rules themselves are head-of-line rules (`windtunnel.sim.backfill`), so that any order that does
not preempt may be combined with them: ``policy="sjf", queueing="easy"``.
"""

from __future__ import annotations

from windtunnel.policies.queue_order import Fifo


class Easy(Fifo):
    """EASY backfilling: by arrival; only the head is promised a start (Lifka, JSSPP 1995)."""

    name = "easy"
    queueing = "easy"


class EasySjbf(Fifo):
    """EASY with shortest-first backfilling: the head by arrival, candidates by estimate.

    Tsafrir, Etsion, Feitelson, TPDS 2007.
    """

    name = "easy-sjbf"
    queueing = "easy_sjbf"


class EasyPerfect(Easy):
    """EASY that knows true durations: what better estimates could bring at most."""

    name = "easy-perfect"
    estimates = "perfect"


class Conservative(Fifo):
    """Conservative backfilling: by arrival; every job is promised a start when it arrives."""

    name = "conservative"
    queueing = "conservative"
