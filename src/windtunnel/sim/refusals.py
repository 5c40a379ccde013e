"""Why a place that a policy chose is none: the sentences of errors, the same on every engine."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.cluster.free import EVERY_NODE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.cluster.free import Where
    from windtunnel.sim.problem import Problem

#: What a policy may yield, for messages.
DECISIONS = "Start, Preempt, Move, Rerate, Resize or Wake"
#: Nodes with free GPUs that are named; the others are counted.
_MOST_NAMED = 8
_ROUNDING = 1e-6


def is_whole(number: float) -> bool:
    """Return whether a number is whole, but for rounding."""
    return math.isfinite(number) and abs(number - round(number)) <= _ROUNDING


def is_float(grant: Any) -> bool:
    """Return whether a grant of a policy's own is a number of GPUs, not units or devices."""
    return isinstance(grant, float | np.floating)


def whole(number: float) -> int:
    """Return a number that is whole but for rounding.

    Raises:
        ValueError: it is none, or not positive.
    """
    if not is_whole(number) or round(number) < 1:
        raise ValueError(f"{number} is no whole number above 0")
    return round(number)


def free_gpus(problem: Problem, free: Sequence[int]) -> str:
    """Return what is free where a job does not fit at all, by the GPU units that it may use."""
    total = _gpus(problem, sum(units for units in free if units > 0))
    return f"{total} of {_gpus(problem, problem.quota)} GPUs are free{_where(problem, free)}"


def why_not(problem: Problem, demand: Any, where: Any, free: Sequence[int]) -> str:
    """Return why a policy's own choice of a place is none, and what is free."""
    return f"{_why_not(problem, demand, where, free)}; {free_gpus(problem, free)}"


def _why_not(problem: Problem, demand: Any, where: Any, free: Sequence[int]) -> str:
    try:
        pairs = [(operator.index(node), _units(problem, grant)) for node, grant in where]
    except (TypeError, ValueError):
        return (
            f"found {_short(where)}; expected pairs of a node and its GPUs, both whole numbers, as "
            "cluster.fit returns them, or the GPUs as a float: (0, 2.0)"
        )
    place = "pool" if problem.is_pool else "node"
    for node, _ in pairs:
        if not 0 <= node < len(problem.sizes):
            last = len(problem.sizes) - 1
            known = f"{place}s are 0 to {last}" if last else f"only {place} is 0"
            return f"there is no {place} {node}; the {known}"
        if not getattr(demand, "allowed", EVERY_NODE) >> node & 1:
            kind = problem.types[node]
            return f"it does not accept the GPUs of {place} {node}" + (f" ({kind})" if kind else "")
    if problem.devices:
        return _devices(problem, demand, where, pairs, free)
    return _whole(problem, demand, pairs, free)


def pairs_of(problem: Problem, where: Any) -> Where | None:
    """Return a policy's own choice as nodes and GPU units there; None = it is none.

    Nor where the choice is of GPUs of which devices have parts, or which are to be found yet.
    """
    try:
        found = [(operator.index(node), _units(problem, grant)) for node, grant in where]
    except (TypeError, ValueError):
        return None
    known = range(len(problem.sizes))
    return None if problem.devices or any(node not in known for node, _ in found) else found


def _units(problem: Problem, grant: Any) -> int:
    """Return a grant in GPU units: a whole number is that, a float is a number of GPUs."""
    return whole(grant * problem.units) if is_float(grant) else operator.index(grant)


def why_not_beside(
    problem: Problem, job: int, other: int, where: Where, *, shares: bool, says: bool
) -> str:
    """Return why a job may not share the GPUs of a running one; empty if it may.

    ``shares``: the running one shares its GPUs already; ``says``: the policy says where the job
    goes, too.
    """
    if says:
        return "another and says where, too"
    if shares:
        return "one that shares its GPUs already"
    if problem.gpus[job] != problem.gpus[other]:
        return "one of another size"
    allowed = problem.demand(job).allowed
    if not all(allowed >> node & 1 for node, _ in where):
        return "one on GPUs of a type that it does not accept"
    return ""


def _whole(problem: Problem, demand: Any, pairs: list[tuple[int, int]], free: Sequence[int]) -> str:
    place = "pool" if problem.is_pool else "node"
    shape = getattr(demand, "shape", None)
    asked = sum(shape) if shape is not None else demand.gpus
    why = _amounts(problem, asked, getattr(demand, "task", 1), pairs, free)
    if why:
        return why
    if shape is not None and sorted((g for _, g in pairs), reverse=True) != list(shape):
        grants = [grant for _, grant in pairs]
        return f"the option's GPUs by node are {list(shape)}, and it is given {grants}"
    return f"{place} {pairs[0][0]} has too few free cores" if pairs else "it is given no GPUs"


def _amounts(
    problem: Problem, asked: int, task: int, pairs: list[tuple[int, int]], free: Sequence[int]
) -> str:
    """Return what is wrong with GPU units on places, of which a job asks for some; empty = nothing.

    ``free``: GPU units that the job may use, by place.
    """
    place = "pool" if problem.is_pool else "node"
    for node, grant in pairs:
        if grant < 1:
            return f"found {grant} GPUs on {place} {node}; expected at least 1"
    given = sum(grant for _, grant in pairs)
    if given != asked:
        nodes = ", ".join(f"{place} {node}" for node, _ in pairs) or f"no {place}"
        wants, gets = _gpus(problem, asked), _gpus(problem, given)
        return f"it asks for {wants} GPUs, and is given {gets} on {nodes}"
    for node, grant in pairs:
        if grant % task:
            message = f"each of its tasks needs {_gpus(problem, task)} GPUs of one node, and "
            return f"{message}{_gpus(problem, grant)} of node {node} are no multiple of it"
    wanted: dict[int, int] = {}
    for node, grant in pairs:
        wanted[node] = wanted.get(node, 0) + grant
    for node, grant in wanted.items():
        if grant > free[node]:
            has = _gpus(problem, max(free[node], 0))
            gets = _gpus(problem, grant)
            return f"{place} {node} has {has} free GPUs, and it is given {gets} there"
    return ""


def _devices(
    problem: Problem, demand: Any, where: Any, pairs: list[tuple[int, int]], free: Sequence[int]
) -> str:
    as_numbers = all(is_float(grant) for _, grant in where)
    if as_numbers and demand.amount:
        why = _amounts(problem, demand.count * demand.amount, demand.amount, pairs, free)
        if why:
            return why
    if not pairs:
        return "it is given no GPUs"
    nodes = sorted({node for node, _ in pairs})
    found = ", ".join(f"node {node} has {_gpus(problem, free[node])}" for node in nodes)
    return (
        "what cluster.fit returned fits as long as nothing has changed, and a number of GPUs, as a "
        f"float, (0, 2.0), where the node's devices have room for whole tasks; {found} free GPUs"
    )


def _gpus(problem: Problem, units: int) -> str:
    return f"{units / problem.units:g}"


def _where(problem: Problem, free: Sequence[int]) -> str:
    some = [(node, units) for node, units in enumerate(free) if units > 0]
    if len(free) < 2 or not some:  # noqa: PLR2004 - one node needs no name
        return ""
    named = ", ".join(f"{_gpus(problem, units)} on {node}" for node, units in some[:_MOST_NAMED])
    more = f" and {len(some) - _MOST_NAMED} others" if len(some) > _MOST_NAMED else ""
    return f" ({'by pool' if problem.is_pool else 'by node'}: {named}{more})"


def _short(where: Any) -> str:
    text = repr(where)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - a line
