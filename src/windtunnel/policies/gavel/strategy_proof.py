"""Strategy-proof fairness: no job gains by understating or overstating its speeds.

The partial allocation mechanism of Cole, Gkatzelis and Goel, "Mechanism design for fair division",
EC'13: every job gets the share of it under proportional fairness that equals the ratio of what
the others have with it and without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.optimize.geometric_mean import largest_product
from windtunnel.policies.gavel.closed_forms import isolated_shares
from windtunnel.policies.gavel.fairness import believed
from windtunnel.policies.gavel.shares import share_model

if TYPE_CHECKING:
    from windtunnel.policies.gavel.allocation import Asked
    from windtunnel.policies.gavel.instance import Instance


def discounted(asked: Asked, instance: Instance) -> tuple[float, np.ndarray, np.ndarray]:
    """Maximise the geometric mean of factor x throughput, then discount each job's shares.

    Where equal jobs are merged, one program a class serves instead of one a job.

    Returns:
        The geometric mean before discounts, discounted shares (jobs, types), discounts (jobs,).
    """
    usable = asked.usable(instance) & (instance.num_gpus > 0)
    instance, factors = believed(asked, instance)
    factors = factors / instance.weights
    shares, classes = _proportionally_fair(asked, instance, usable)
    logs = np.log((instance.throughputs * shares).sum(axis=1))
    discounts = np.ones(instance.num_jobs)
    if instance.num_jobs > 1:
        for number, row in enumerate(_first_rows(classes)):
            others = np.delete(np.arange(instance.num_jobs), row)
            rest = instance.keep(others)
            without, _ = _proportionally_fair(asked, rest, usable[others])
            gained = np.log((rest.throughputs * without).sum(axis=1))
            # Nobody is worse off without a rival by more than rounding.
            discounts[classes == number] = min(1.0, float(np.exp((logs[others] - gained).sum())))
    mean = float(np.exp((np.log(factors) + logs).mean()))
    return mean, shares * discounts[:, None], discounts


def _first_rows(classes: np.ndarray) -> np.ndarray:
    return np.unique(classes, return_index=True)[1]


def _proportionally_fair(
    asked: Asked, instance: Instance, usable: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the shares with the largest product of throughputs (jobs, types), and classes."""
    model = share_model(asked, instance, usable)
    matrix, _, upper = model.lp.dense_rows()
    counts = model.classes.counts
    fastest = model.per_class(np.where(usable, instance.throughputs, 0.0).max(axis=1))
    gains = np.zeros((len(counts), model.lp.num_columns))
    of, columns = model.entries.T
    gains[of, columns] = model.speeds / fastest[of]
    split = isolated_shares(instance)[model.classes.first]
    start = 0.5 * split[model.single[:, 0], model.single[:, 1]]
    held = upper > 0
    values = largest_product(
        asked.policy,
        gains,
        counts.astype(float),
        rows=matrix[held],
        upper=upper[held],
        start=start,
    )
    return model.shares(values)[0], model.classes.of
