"""Replication as one integer program: the longest burst that every model can bear.

AlpaServe's baseline "SR-ILP" and its program for other configurations (OSDI'23 artifact): maximise
min_i W_i + 10^-4 sum_i W_i with W_i = replicas_i x worth_i / rate_i, under memory. GPUs are alike,
so that the program counts groups by what they hold, not groups by name: a group holds a number of
models of each weight, a *pattern*. Replicas of one model lie on different groups; that they can is
Gale and Ryser's condition (1957), written linearly for the k most replicated models of each weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windtunnel.errors import InfeasibleError, SpecError
from windtunnel.optimize import LinearProgram
from windtunnel.serving.parallel import Parallel
from windtunnel.serving.placement import Group, Placement
from windtunnel.serving.search.layouts import powers_of_two

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windtunnel.serving.search.problem import Problem

#: Weight of the sum beside the minimum.
_SUM = 1e-4
#: Patterns of one configuration, at most; models of many different weights have more.
MOST_PATTERNS = 20_000
#: What a stage more costs a group's worth.
_STAGE = 0.99


@dataclass(frozen=True)
class _Kind:
    """Models of one weight on one configuration, and the program's columns for them.

    Attributes:
        models: their indices.
        replicas: column of each.
    """

    models: list[int]
    replicas: np.ndarray


@dataclass(frozen=True)
class _Filled:
    """Equal groups in the program.

    Attributes:
        parallel: their configuration.
        kinds: models by weight.
        patterns: groups hold so many models of each kind, shape (patterns, kinds).
        groups: column of each pattern: how many groups have it.
    """

    parallel: Parallel
    kinds: list[_Kind]
    patterns: np.ndarray
    groups: np.ndarray


def replicate_on_gpus(problem: Problem, gpus: int) -> Placement:
    """Return selective replication on single GPUs (SR-ILP): a replica is worth its throughput.

    Raises:
        InfeasibleError: no model that has requests fits a GPU.
        SpecError: there are too many ways to fill a GPU.
    """
    parallel = Parallel()
    return _solved(problem, gpus, parallel, _throughputs(problem, parallel))


def replicate_on_groups(problem: Problem, gpus: int, parallel: Parallel) -> Placement:
    """Return replication on equal groups: a replica is worth the burst that it serves in time.

    That is ((SLO - latency) // slowest stage + 1) x 0.99^pp requests; without a deadline, its
    throughput.

    Raises:
        InfeasibleError: no model that has requests fits a group, or is in time there.
        SpecError: there are too many ways to fill a group.
    """
    return _solved(problem, gpus, parallel, _bursts(problem, parallel))


def _throughputs(problem: Problem, parallel: Parallel) -> np.ndarray:
    """Return requests per second of a replica of each model, shape (models,); 0: not profiled."""
    found = np.zeros(len(problem.workload.models))
    for model, times in problem.stage_times(parallel).items():
        found[model] = 1.0 / times.max()
    return found


def _bursts(problem: Problem, parallel: Parallel) -> np.ndarray:
    """Return the burst that a replica of each model serves in time, shape (models,), requests."""
    slo = problem.slo_by_model()
    found = _throughputs(problem, parallel)
    for model, times in problem.stage_times(parallel).items():
        if np.isfinite(slo[model]):
            left = slo[model] - times.sum() - problem.overheads.fixed
            found[model] = left // times.max() + 1 if left >= 0 else 0.0
    return found * _STAGE**parallel.pp


def _solved(problem: Problem, gpus: int, parallel: Parallel, worth: np.ndarray) -> Placement:
    rates = problem.workload.rates()
    if not rates.any():  # all at one instant
        rates = np.bincount(problem.workload.model, minlength=len(rates)).astype(float)
    kinds = _kinds(problem, parallel, (worth > 0) & (rates > 0))
    if not kinds:
        raise InfeasibleError("placement search", "no model fits a group and is in time there")
    program = LinearProgram("replication", maximize=True)
    least = program.add_columns("burst", ["least"], cost=1.0)
    filled = _filled(program, problem, parallel, kinds, gpus)
    for kind in filled.kinds:
        gain = worth[kind.models] / rates[kind.models]
        rows = program.add_rows("burst of model", kind.models, lower=0.0)
        program.add_coefficients(rows, kind.replicas, gain)
        program.add_coefficients(rows, least[0], -1.0)
        program.set_costs(kind.replicas, _SUM * gain)
    return _placement(filled, program.solve().values, gpus)


def _kinds(
    problem: Problem, parallel: Parallel, wanted: np.ndarray
) -> list[tuple[float, list[int]]]:
    """Return models by weight, lightest first: those wanted that fit a group alone."""
    weights = problem.weights(parallel)
    kinds: dict[float, list[int]] = {}
    for model in problem.models:
        if wanted[model] and weights[model] <= problem.mem_budget:
            kinds.setdefault(float(weights[model]), []).append(model)
    return sorted(kinds.items())


def _filled(
    program: LinearProgram,
    problem: Problem,
    parallel: Parallel,
    kinds: list[tuple[float, list[int]]],
    gpus: int,
) -> _Filled:
    """Add the columns and rows of groups and of what they hold."""
    sizes = [(weight, len(models)) for weight, models in kinds]
    patterns = np.array(_patterns(sizes, problem.mem_budget, parallel))
    most = gpus // parallel.gpus
    groups = program.add_columns("groups of pattern", range(len(patterns)), integer=True)
    program.add_coefficients(program.add_rows("groups", ["all"], upper=most), groups, 1.0)
    made = []
    for at, (_, models) in enumerate(kinds):
        replicas = program.add_columns("replicas of model", models, upper=most, integer=True)
        made.append(_Kind(models, replicas))
        _spread(program, made[-1], groups, patterns[:, at])
    return _Filled(parallel, made, patterns, groups)


def _spread(program: LinearProgram, kind: _Kind, groups: np.ndarray, slots: np.ndarray) -> None:
    """Add the rows that let the replicas of each model lie on different groups.

    For every k the k most replicated models have no more replicas than groups have slots, k of
    them at most counted in each: k x level + sum of what is above the level <= slots.
    """
    for k in range(1, int(slots.max()) + 1):
        row = program.add_rows(f"slots for {k} of models like", [kind.models[0]], upper=0.0)
        program.add_coefficients(row, groups, -np.minimum(slots, k).astype(float))
        if k >= len(kind.models) or k == slots.max():  # all of them: no level is needed
            program.add_coefficients(row, kind.replicas, 1.0)
            break
        level = program.add_columns(f"level of {k} of models like", [kind.models[0]])
        above = program.add_columns(f"above the level of {k}, model", kind.models)
        program.add_coefficients(row, level, float(k))
        program.add_coefficients(row, above, 1.0)
        over = program.add_rows(f"over the level of {k}, model", kind.models, lower=0.0)
        program.add_coefficients(over, above, 1.0)
        program.add_coefficients(over, level[0], 1.0)
        program.add_coefficients(over, kind.replicas, -1.0)


def _patterns(
    sizes: Sequence[tuple[float, int]], memory: float, parallel: Parallel
) -> list[tuple[int, ...]]:
    """Return the ways to fill a group to which nothing can be added, lexicographic.

    Args:
        sizes: weight and number of the models of each kind.
        memory: bytes a GPU.
        parallel: the configuration, for the error.

    Raises:
        SpecError: there are more than `MOST_PATTERNS`.
    """
    found: list[tuple[int, ...]] = []

    def fill(at: int, left: float, held: tuple[int, ...]) -> None:
        if len(found) > MOST_PATTERNS:
            raise SpecError(
                "policy",
                f"more than {MOST_PATTERNS} ways to fill a group {parallel.name}: the integer "
                f"program suits models of few different weights, not {len(sizes)}.",
            )
        if at == len(sizes):
            full = all(
                n == count or weight > left for n, (weight, count) in zip(held, sizes, strict=True)
            )
            if full:
                found.append(held)
            return
        weight, count = sizes[at]
        for n in range(count + 1):
            if n * weight <= left:
                fill(at + 1, left - n * weight, (*held, n))

    fill(0, memory, ())
    return found


def _placement(filled: _Filled, values: np.ndarray, gpus: int) -> Placement:
    """Return groups with models; GPUs left over become empty pipelines of powers of two."""
    counts = values[filled.groups].astype(int).tolist()
    rows = np.repeat(np.arange(len(counts)), counts)
    held: list[list[int]] = [[] for _ in rows]
    for at, kind in enumerate(filled.kinds):
        _deal(kind, values, filled.patterns[rows, at], held)
    groups = [Group(filled.parallel, tuple(sorted(models))) for models in held]
    left = gpus - len(groups) * filled.parallel.gpus
    groups += [Group(Parallel(1, 1, size), ()) for size in powers_of_two(left)]
    return Placement(tuple(groups))


def _deal(kind: _Kind, values: np.ndarray, slots: np.ndarray, held: list[list[int]]) -> None:
    """Deal replicas to groups: the most replicated first, each to the groups with most slots."""
    counts = values[kind.replicas].astype(int).tolist()
    left = slots.copy()
    for model, count in sorted(
        zip(kind.models, counts, strict=True), key=lambda one: (-one[1], one[0])
    ):
        chosen = np.argsort(-left, kind="stable")[:count]
        left[chosen] -= 1
        for group in chosen.tolist():
            held[group].append(model)
