"""Columns of names: how many jobs each has by stratum and how much GPU time, under a new name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.traces.twin.bins import rounded
from windtunnel.traces.twin.model import KNOWN, NUMBERS, Category
from windtunnel.traces.twin.split import Split, fit_split
from windtunnel.traces.twin.strata import OTHER, Strata, dealt_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.twin.split import Rules
    from windtunnel.traces.twin.strata import Columns


def other_than(names: list[str]) -> str:
    """Return what small ones are put together under: a name that none of ``names`` is.

    >>> other_than(["a", "other"])
    'other-'
    """
    other = OTHER
    while other in names:
        other += "-"
    return other


def fit_known(table: Columns, strata: Strata, rules: Rules) -> dict[str, Split]:
    """Return how many jobs lack and have each column that may be unknown, by stratum."""
    known = {name: np.isfinite(getattr(table, name)) for name in ("estimate", *NUMBERS)}
    known["template"] = table.codes["template"] >= 0
    shape = (len(strata.gpus), 2)
    splits = {}
    for name in KNOWN:
        # Of an estimate the ratio to the run time is told: that must be known as well.
        usable = known[name] & (np.isfinite(table.duration) | (name != "estimate"))
        told = known[name] if int(usable.sum()) >= rules.min_count else np.zeros_like(known[name])
        splits[name] = fit_split(strata.index, told.astype(np.int64), shape, rules.min_count)[0]
    return splits


def fit_names(
    table: Columns,
    strata: Strata,
    column: str,
    rules: Rules,
    rng: np.random.Generator,
    *,
    keep: bool = False,
) -> Category:
    """Return a column of names, renamed unless they are kept; small ones are one.

    Args:
        column: ``vc`` or ``gpu_type``.
        rules: how small a group may be.
    """
    codes, values = table.codes[column], table.values[column]
    count = np.bincount(codes + 1, minlength=len(values) + 1)[1:]
    big = np.flatnonzero(count >= rules.min_count)
    renumbered = np.full(len(values) + 1, len(big) + 1, dtype=np.int64)  # small ones
    renumbered[big] = np.arange(len(big)) + 1
    renumbered[-1] = 0
    if keep:
        names = [values[code] for code in big.tolist()]
    elif column == "vc":
        digits = max(len(str(len(big))), 2)
        names = [f"vc-{n + 1:0{digits}d}" for n in rng.permutation(len(big)).tolist()]
    else:
        names = dealt_names("gpu", len(big), rng)
    return _told(table, strata, renumbered[codes], ["", *names, other_than(names)], rules)


def fit_classes(
    table: Columns, strata: Strata, user_class: NDArray[np.int64], classes: int, rules: Rules
) -> Category:
    """Return the classes of users as a column of names; an empty one is: no user known."""
    names = ["", *(f"class-{number + 1}" for number in range(classes))]
    return _told(table, strata, user_class + 1, names, rules, keep_from=1)


def _told(
    table: Columns,
    strata: Strata,
    code: NDArray[np.int64],
    names: list[str],
    rules: Rules,
    *,
    keep_from: int | None = None,
) -> Category:
    """Return counts and GPU time by name, without names that no job is counted under.

    GPU time is told as that of all strata together in the names' proportions: what is left of it is
    nothing, so that it tells nothing of a name with few jobs.
    """
    split, _ = fit_split(strata.index, code, (len(strata.gpus), len(names)), rules.min_count)
    used = split.totals() > 0
    if keep_from is not None:
        used[keep_from:] = True
    weight = table.gpu_time
    sums = np.array([rules.total(weight[code == place]) for place in range(len(names))]) * used
    whole = strata_gpu_time(table, strata, rules)
    scaled = sums * (whole / sums.sum()) if sums.sum() > 0 else sums
    listed = np.array(split.listed, dtype=np.int64)[:, used]
    return Category(
        [name for name, is_used in zip(names, used, strict=True) if is_used],
        [rounded(value) for value in scaled[used].tolist()],
        Split(listed.tolist(), np.array(split.rest)[used].tolist()),
    )


def strata_gpu_time(table: Columns, strata: Strata, rules: Rules) -> float:
    """Return the GPU time of all strata that tell theirs."""
    weight = table.gpu_time
    return float(
        sum(rules.total(weight[strata.index == number]) for number in range(len(strata.gpus)))
    )
