"""Distributions of a trace's numbers by stratum: run times, waits, estimates, requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.traces.twin.model import NUMBERS, Pooled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from windtunnel.traces.twin.bins import Bins
    from windtunnel.traces.twin.split import Rules
    from windtunnel.traces.twin.strata import Columns

#: Parts of a stratum, by run time, in which the ratio of estimate to run time is told.
_ESTIMATE_PARTS = 4


def fit_numbers(
    table: Columns,
    stratum: NDArray[np.int64],
    strata: int,
    cells: tuple[NDArray[np.int64], list[str]],
    rules: Rules,
) -> tuple[list[dict[str, Any]], Pooled]:
    """Return the distributions of each stratum, and those of what strata cannot tell.

    Args:
        stratum: of each job, shape (jobs,).
        cells: the cell within its stratum by which a job's run time is told, shape (jobs,), and the
            names of these cells.
        rules: how small a group may be.

    Returns:
        Attributes of `Stratum` by name, one dictionary a stratum; and the pooled ones.
    """
    cell, names = cells
    by_stratum: list[dict[str, Any]] = [{"duration": {}} for _ in range(strata)]
    cells_of = stratum * len(names) + cell
    own, pooled = _by_cell(table.duration, cells_of, strata * len(names), rules, spread=True)
    for number, bins in enumerate(own):
        if bins is not None:
            by_stratum[number // len(names)]["duration"][names[number % len(names)]] = bins
    together: dict[str, Any] = {"duration": pooled}
    gpus = np.nan_to_num(table.num_gpus, nan=0.0)
    per_gpu = np.where(gpus > 0, gpus, 1.0)
    for name in ("wait", *NUMBERS):
        scale = per_gpu if name in {"num_cpus", "mem_gib"} else 1.0
        own, together[name] = _by_cell(
            getattr(table, name) / scale, stratum, strata, rules, spread=name == "wait"
        )
        for part, bins in zip(by_stratum, own, strict=True):
            part[name] = bins
    ratio = table.estimate / np.maximum(table.duration, 1.0)
    told = rules.told(np.isfinite(ratio), stratum, strata)
    for number, part in enumerate(by_stratum):
        mine = stratum == number
        part["estimate"] = _ratios(ratio[mine], table.duration[mine], rules) * told[number]
    rest = ~np.array(told)[stratum]
    together["estimate"] = _ratios(ratio[rest], table.duration[rest], rules)
    return by_stratum, Pooled(**together)


def _by_cell(
    values: NDArray[np.float64],
    cell: NDArray[np.int64],
    cells: int,
    rules: Rules,
    *,
    spread: bool,
) -> tuple[list[Bins | None], Bins | None]:
    """Return the distribution in each cell that can tell one, and that of all others together."""
    told = rules.told(np.isfinite(values), cell, cells)
    own = [
        rules.distribution(values[cell == number], spread=spread) if is_told else None
        for number, is_told in enumerate(told)
    ]
    return own, rules.distribution(values[~np.array(told)[cell]], spread=spread)


def _ratios(ratio: NDArray[np.float64], duration: NDArray[np.float64], rules: Rules) -> list[Bins]:
    """Return ratios of estimate to run time in equal parts of the jobs, shortest first."""
    known = np.isfinite(ratio)
    parts = min(_ESTIMATE_PARTS, int(known.sum()) // rules.min_count)
    if parts == 0:
        return []
    # Where few are unknown they are counted with the last part.
    few = rules.hides(int((~known).sum()))
    order = np.argsort(duration, kind="stable")
    ordered = ratio[order][known[order]]
    pieces = np.array_split(ordered, parts)
    if few:
        pieces[-1] = np.append(pieces[-1], ratio[~known])
    found = [rules.distribution(piece) for piece in pieces]
    return [bins for bins in found if bins is not None]
