"""A what-if surface: every combination of some numbers and words, each of them flown.

``nodes=56..96/4,policy=fifo,sjf,load=0.8..1.2/0.1`` names 11 x 2 x 5 runs. Nothing between them is
known, and nothing is interpolated.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError, WindtunnelError, quote
from windtunnel.policies import resolve_policy
from windtunnel.quantiles import quantiles
from windtunnel.sim.contract import rule_of_several
from windtunnel.sim.timeline import resample
from windtunnel.site.conditions import FIELDS
from windtunnel.study.changes import conditions_with_nodes, varied_nodes
from windtunnel.study.grid.flying import jobs_at_load
from windtunnel.study.resolving import resolved
from windtunnel.study.simulate import fly

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from windtunnel.sim.outcome import Outcome
    from windtunnel.site.conditions import Conditions

#: Runs that one page may hold.
MOST_RUNS = 2000
#: Points of each curve that is kept of a run.
BINS = 40
#: Axes that are no fields of `windtunnel.simulate`.
NODES, LOAD = "nodes", "load"
#: Fields that words and numbers vary, and that change what is flown, not what is reported of it.
_FIELDS = tuple(
    name
    for name, field in FIELDS.items()
    if name == "policy" or field.kind in {"text", "word", "name", "time", "cost", "seed"}
    if name not in {"engine", "arrivals", "slurm_conf"}
)
_NEXT_AXIS = re.compile(r",(?=[a-z_]+=)")
_RANGE = re.compile(r"([^./]*(?:\.[0-9]+)?)\.\.([^/]*)/(.*)")

Value = float | int | str


@dataclass(frozen=True)
class Point:
    """One run of a surface.

    Attributes:
        position: axis -> value.
        metrics: of `Outcome.metrics`; empty where the run gave an error.
        waits: quantiles of the waits from 0 to 1, s, `BINS` + 1 of them.
        queue: jobs that wait, means over `BINS` equal parts of the time in which jobs come.
        error: why it could not be flown; empty = it was.
    """

    position: dict[str, Value]
    metrics: dict[str, Any]
    waits: tuple[float, ...] = ()
    queue: tuple[float, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Surface:
    """What is varied.

    Attributes:
        axes: name -> values, in the order in which they were named; the last one runs fastest.
    """

    axes: dict[str, tuple[Value, ...]]

    @classmethod
    def parse(cls, text: str) -> Surface:
        """Return the surface that a text names.

        Args:
            text: ``axis=values`` with commas between; values are words or numbers with commas
                between, or ``56..96/4``: from, to (counted in), step. Axes are ``nodes`` (of the
                type of which there are most; a pool: GPUs), ``load`` (`study.offered_load`, of the
                cluster as it is) and the fields of `windtunnel.simulate`.

        Raises:
            SpecError: an axis or a name is unknown, a value is wrong, or there are too many runs.
        """
        known = [NODES, LOAD, *_FIELDS]
        axes: dict[str, tuple[Value, ...]] = {}
        for part in _NEXT_AXIS.split(text):
            name, sign, values = part.partition("=")
            if not sign:
                expected = "nodes=56..96/4,policy=fifo,sjf"
                raise SpecError("--surface", f"found {quote(part)}; expected such as {expected}.")
            checked_choice("--surface", name, known)
            if name in axes:
                raise SpecError("--surface", f"names {name} twice; name it once.")
            axes[name] = _values(name, values)
        runs = math.prod(map(len, axes.values()))
        if runs > MOST_RUNS:
            raise SpecError("--surface", f"has {runs:,} runs; expected at most {MOST_RUNS:,}.")
        for policy in axes.get("policy", ()):
            resolve_policy(str(policy))
        return cls(axes)

    @property
    def positions(self) -> list[dict[str, Value]]:
        """Every combination."""
        return [
            dict(zip(self.axes, values, strict=True))
            for values in itertools.product(*self.axes.values())
        ]

    def fly(
        self, jobs: pa.Table, base: Conditions, on_done: Callable[[str], None] = lambda _: None
    ) -> list[Point]:
        """Fly every combination.

        Args:
            jobs: jobs table.
            base: how things are, resolved; axes replace what it says.
            on_done: called after each run.

        Raises:
            SpecError: no combination can be flown; tells why the first could not.
        """
        tables: dict[Value, pa.Table] = {}
        points = []
        for position in self.positions:
            try:
                points.append(_flown(jobs, base, position, tables))
            except WindtunnelError as error:
                points.append(Point(position, {}, error=str(error)))
            on_done("")
        if all(point.error for point in points):
            raise SpecError("--surface", f"no run can be flown: {points[0].error}")
        return points


def conditions_at(base: Conditions, position: dict[str, Value]) -> Conditions:
    """Return what a position is flown under; its load is a matter of the jobs.

    Raises:
        SpecError, PolicyError: its values do not go together.
    """
    fields: dict[str, Any] = {k: v for k, v in position.items() if k not in (NODES, LOAD)}
    other = base
    if NODES in position:
        other = conditions_with_nodes(base, int(position[NODES]) - varied_nodes(base))
    if "policy" in fields:
        policy = resolve_policy(fields["policy"])
        queueing = fields.get("queueing", other.scheduler.queueing)
        fields |= {"policy": policy, "queueing": rule_of_several(queueing, policy)}
    return resolved(other.having(**fields)) if fields else other


def _flown(
    jobs: pa.Table, base: Conditions, position: dict[str, Value], tables: dict[Value, pa.Table]
) -> Point:
    """Fly one combination; ``tables`` holds the jobs at the loads so far."""
    load = position.get(LOAD)
    if load is not None and load not in tables:
        tables[load] = jobs_at_load(jobs, base, float(load))
    outcome = fly(jobs if load is None else tables[load], conditions_at(base, position))
    wait = outcome.flight.start - outcome.submit_time
    known = wait[~np.isnan(wait)]
    waits = quantiles(known, np.linspace(0, 1, BINS + 1).tolist()).tolist() if len(known) else []
    return Point(position, outcome.metrics(), tuple(waits), _queue(outcome))


def _queue(outcome: Outcome) -> tuple[float, ...]:
    """Return how many jobs wait, on average over equal parts of the time in which jobs come."""
    submit = outcome.submit_time
    queue = outcome.queue()
    time, waiting = queue["time"].to_numpy(), queue["jobs"].to_numpy()
    span = {"start": float(np.nanmin(submit)), "stop": float(np.nanmax(submit))}
    return tuple(resample(time, waiting, **span, bins=BINS)[1].tolist())


def _values(name: str, text: str) -> tuple[Value, ...]:
    """Return the values of an axis."""
    where = f"--surface {name}"
    match = _RANGE.fullmatch(text)
    texts = text.split(",") if match is None else _steps(where, text, *match.groups())
    kind = "integer" if name == NODES else "number" if name == LOAD else FIELDS[name].kind
    values = tuple(_value(where, one, kind) for one in texts)
    if len(set(values)) < len(values):
        raise SpecError(where, f"found {quote(text)}; expected each value once.")
    return values


def _steps(where: str, text: str, *ends: str) -> list[str]:
    """Return the numbers of ``56..96/4``, exact in the decimal system."""
    try:
        first, last, step = map(Decimal, ends)
        is_finite = first.is_finite() and last.is_finite() and step.is_finite()
        count = int((last - first) / step) if is_finite and step > 0 else -1
    except (InvalidOperation, ArithmeticError, ValueError):
        count = -1
    if not 0 <= count < MOST_RUNS:
        expected = "56..96/4: from, to, step"
        raise SpecError(where, f"found {quote(text)}; expected such as {expected}.")
    return [str(first + place * step) for place in range(count + 1)]


def _value(where: str, text: str, kind: str) -> Value:
    """Return a value; words stay words, unless the axis wants numbers."""
    for number in (int, float):
        try:
            found = number(text)
        except ValueError:
            continue
        if (kind != "integer" or (number is int and found > 0)) and math.isfinite(found):
            return found
    if kind in {"integer", "number"} or not text:
        wanted = {"integer": "whole numbers above 0", "number": "numbers"}
        raise SpecError(where, f"found {quote(text)}; expected {wanted.get(kind, 'a word')}.")
    return text
