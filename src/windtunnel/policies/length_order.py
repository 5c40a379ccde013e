"""Shortest first, by whatever tells how long a job runs: a column, or a predictor of run times.

``by`` names a numeric column of the jobs table (``duration``, ``estimate``, ``user_dur`` ...) or a
predictor (``rolling``, ``cart:by=user+template``, ``noise`` ...), which then predicts each job at
its submission from what had ended by then in the recorded log. All orders here are static.

PAI's simulator (Weng et al., NSDI 2022; alibaba/clusterdata, cluster-trace-gpu-v2020/simulator)
orders by three estimates that stand in its job files: per user (SJU), per user and group (SJG), per
user, group and GPU type (SJGG). QSSF orders by expected GPU time (Hu et al., SC 2021).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from windtunnel.errors import PolicyError, SpecError, quote
from windtunnel.policies.aging import aged, checked_aging
from windtunnel.sim.columns import numeric_column
from windtunnel.sim.contract import Policy
from windtunnel.sim.usage_order import all_in_32_bits

if TYPE_CHECKING:
    import numpy as np

    from windtunnel.sim.jobs import Jobs


def checked_name(where: str, name: object, expected: str) -> str:
    """Return the name of what tells run times; whether there is such a thing is seen later.

    Raises:
        SpecError: it is no name.
    """
    if not isinstance(name, str) or not name:
        raise SpecError(
            f"policy {where}", f"found {quote(name)}; expected {expected}, such as cart."
        )
    return name


def checked_by(where: str, by: object) -> str:
    """Return the column or predictor to order by.

    Raises:
        SpecError: it is no name.
    """
    return checked_name(f"{where}, by", by, "a column of the jobs or a predictor")


def lengths(jobs: Jobs, policy: Policy) -> np.ndarray:
    """Return the first column of the policy's ``by`` that the jobs have, shape (n,).

    Raises:
        PolicyError: they have none of them.
        SpecError: the column does not hold numbers.
    """
    for name in policy.by:
        if name in jobs.table.column_names:
            return numbers(jobs, name, policy)
    wanted = " or ".join(policy.by)
    raise PolicyError(policy.label, f"the jobs have no column {quote(wanted)} to order by")


def numbers(jobs: Jobs, name: str, policy: Policy) -> np.ndarray:
    """Return a numeric column of the jobs, shape (n,), NaN where unknown.

    Raises:
        SpecError: it does not hold numbers.
    """
    return numeric_column(jobs.table, name, f"policy {policy.label}")


class Sjf(Policy):
    """Shortest job first, not preemptive; strict head of line.

    Args:
        by: what tells a job's length: a column or a predictor. [its true duration]
        aging: seconds of waiting that make up for a second of length
            (`windtunnel.policies.aging`); None = a long job may be overtaken for ever.

    Raises:
        SpecError: ``by`` is no name, or ``aging`` no time span.
    """

    name = "sjf"
    queueing = "strict"
    #: What tells the length where nothing is asked for; the first that there is.
    lengths: ClassVar[tuple[str, ...]] = ("duration",)

    def __init__(self, by: str | None = None, aging: float | str | None = None) -> None:
        self.by = self.lengths if by is None else (checked_by(self.name, by),)
        self.aging = checked_aging(self.name, aging)

    def rank(self, jobs: Jobs) -> np.ndarray:
        """Return the lengths, or with aging `windtunnel.policies.aging.aged` of them."""
        return aged(lengths(jobs, self), jobs.submit_time, self.aging)


class SjfEstimate(Sjf):
    """Shortest job first by requested wall time; an error where a job has none."""

    name = "sjf-estimate"
    lengths = ("estimate",)
    needs = "estimate (requested wall time)"

    def __init__(self, aging: float | str | None = None) -> None:
        super().__init__(None, aging)


class SjfPreemptive(Sjf):
    """Shortest job first by total duration, preemptive; goes on past what does not fit."""

    name = "sjf-preemptive"
    queueing = "skip"
    preemptive = True


class Sju(Sjf):
    """Shortest first by the user's mean: the column ``user_dur``, else the predictor ``sju``."""

    name = "sju"
    lengths = ("user_dur", "sju")


class Sjg(Sjf):
    """Shortest first by user and group: the column ``group_dur``, else the predictor ``sjg``."""

    name = "sjg"
    lengths = ("group_dur", "sjg")


class Sjgg(Sjf):
    """By user, group and GPU type: the column ``group_gpu_dur``, else the predictor ``sjgg``."""

    name = "sjgg"
    lengths = ("group_gpu_dur", "sjgg")


class Qssf(Sjf):
    """Smallest expected GPU time first (QSSF): GPUs x predicted duration; strict head of line.

    Hu et al., SC 2021; S-Lab-System-Group/HeliosArtifact. The default predictor ``gbdt`` is QSSF's
    own mix, 0.1 x rolling means + 0.9 x gradient boosting, trained on the past only (the artifact's
    training set looks ahead in choosing its users). ``aging`` counts in GPU-seconds.
    """

    name = "qssf"
    lengths = ("gbdt",)

    def rank(self, jobs: Jobs) -> np.ndarray:
        """Return the expected GPU-seconds, with aging where asked for."""
        service = all_in_32_bits(jobs.num_gpus * lengths(jobs, self))
        return aged(service, jobs.submit_time, self.aging)
