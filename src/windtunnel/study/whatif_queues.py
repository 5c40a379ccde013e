"""What two configurations of Kueue make of each of its queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.policies.kueue.workloads import gpu_resource, queues_by_name
from windtunnel.quantiles import quantiles
from windtunnel.sim.metrics import horizon
from windtunnel.study.whatif import DRAWS, covering

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.policies.kueue.manifests import Manifests
    from windtunnel.sim.outcome import Outcome
    from windtunnel.study.whatif import WhatIf

_SIDES = ("before", "after")


def by_cluster_queue(found: WhatIf, manifests: Sequence[Manifests]) -> list[dict[str, Any]]:
    """Return what changes for each ClusterQueue.

    A job counts in the queue to which its ``vc`` leads under each of the two configurations;
    attempts of a closed loop's own count as jobs, but are drawn in no interval.

    Args:
        found: the two runs.
        manifests: those of the run before, and of the one after.

    Returns:
        A row a queue, in the order of the manifests: ``queue``; then with ``before_`` and
        ``after_``: ``jobs`` (submitted), ``admitted`` (that ever started), ``avg_wait`` and
        ``p90_wait`` (s, of those that started), ``preemptions``, ``gpus`` (held on average),
        ``quota`` (its own nominal GPUs) and ``use`` (``gpus`` of ``quota``; above 1 it borrows,
        null without a quota); and ``low_wait``, ``high_wait`` (s) of the change of the mean wait,
        ``low_preemptions``, ``high_preemptions`` of the change of the preemptions a job that
        started; null where there are fewer than two blocks.
    """
    runs = (found.before, found.after)
    sides = [_Side(found, run, of) for run, of in zip(runs, manifests, strict=True)]
    names = dict.fromkeys(name for side in sides for name in side.names)
    blocks = found.blocks_of_all
    draws = _draws(found, blocks)
    rows = []
    for name in names:
        row: dict[str, Any] = {"queue": name}
        masks = []
        for word, side in zip(_SIDES, sides, strict=True):
            mask = side.queue == name
            masks.append((mask & ~np.isnan(side.wait))[: len(blocks)])
            row |= {f"{word}_{key}": value for key, value in side.numbers(name, mask).items()}
        for key in ("wait", "preemptions"):
            values = [getattr(side, key)[: len(blocks)] for side in sides]
            row[f"low_{key}"], row[f"high_{key}"] = _interval(values, masks, blocks, draws)
        rows.append(row)
    return rows


class _Side:
    """A run by queue."""

    def __init__(self, found: WhatIf, run: Outcome, manifests: Manifests) -> None:
        leads = queues_by_name(manifests)
        self.names = [queue.name for queue in manifests.queues]
        self.queue = np.array([leads.get(vc or "", "") for vc in run.jobs["vc"].to_pylist()])
        self.wait = run.flight.start - run.submit_time
        of_log = found.waits_in(run)
        self.wait[: len(of_log)] = of_log
        self.preemptions = run.flight.preemptions.astype(np.float64)
        self.held = np.nan_to_num(run.num_gpus * run.flight.run_time)
        first, last = horizon(run)
        self.span = last - first
        gpu = gpu_resource(manifests)
        self.quota = {
            queue.name: sum(
                of.quotas[gpu].nominal
                for group in queue.resource_groups
                for of in group.flavors
                if gpu in of.quotas
            )
            for queue in manifests.queues
        }

    def numbers(self, name: str, mask: np.ndarray) -> dict[str, Any]:
        """Return a queue's numbers."""
        waits = self.wait[mask & ~np.isnan(self.wait)]
        gpus = float(self.held[mask].sum() / self.span) if self.span else 0.0
        quota = self.quota.get(name, 0)
        return {
            "jobs": int(mask.sum()),
            "admitted": len(waits),
            "avg_wait": float(waits.mean()) if len(waits) else None,
            "p90_wait": float(quantiles(waits, 0.9)) if len(waits) else None,
            "preemptions": int(self.preemptions[mask].sum()),
            "gpus": gpus,
            "quota": quota,
            "use": gpus / quota if quota else None,
        }


def _draws(found: WhatIf, blocks: np.ndarray) -> np.ndarray | None:
    """Return how often each draw takes each block, shape (draws, blocks); None = too few blocks."""
    count = int(blocks.max(initial=-1)) + 1
    if count < 2:  # noqa: PLR2004 - one block has no spread
        return None
    rng = np.random.default_rng(found.seed)
    chosen = rng.integers(0, count, (DRAWS, count))
    return np.stack([np.bincount(draw, minlength=count) for draw in chosen]).astype(np.float64)


def _interval(
    values: list[np.ndarray],
    masks: list[np.ndarray],
    blocks: np.ndarray,
    draws: np.ndarray | None,
) -> tuple[float | None, float | None]:
    """Return the interval of the change of a mean, over draws in which both sides have jobs."""
    if draws is None:
        return None, None
    means = []
    for value, mask in zip(values, masks, strict=True):
        size = draws.shape[1]
        total = np.bincount(blocks[mask], value[mask], minlength=size)
        count = np.bincount(blocks[mask], minlength=size)
        with np.errstate(divide="ignore", invalid="ignore"):
            means.append((draws @ total) / (draws @ count))
    changes = means[1] - means[0]
    changes = changes[np.isfinite(changes)]
    return covering(changes) if len(changes) else (None, None)
