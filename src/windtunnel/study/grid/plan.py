"""From a study to its runs: every combination of its axes, each with an id that stays.

A run's id is a digest of everything that decides its result but the content of the trace and of
the energy files (whose digests are in the manifest): another policy or seed in the study changes no
other run's id.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.parse import parse_cluster
from windtunnel.errors import SpecError, quote
from windtunnel.plain import fields_of
from windtunnel.site.conditions import FIELDS
from windtunnel.study.grid.spec import OPTIONS, OWN, RECORDED, PolicyEntry
from windtunnel.study.resolving import conditions_of, resolved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.study.grid.spec import Study, TraceEntry

#: Places that a grid may have: each is listed before the first run.
MAX_PLACES = 1_000_000
#: Letters of a run's id.
ID_LENGTH = 16
_BRACES = re.compile(r"\{(\w+)\}")
#: Options that are words, whose unknown names are refused before any run.
_POLICY_OPTIONS = ("queueing", "placement")


@dataclass(frozen=True)
class Run:
    """One run of a study.

    Attributes:
        run_id: stable digest of the other attributes.
        trace: the trace's label.
        trace_seed: seed that the trace is made with; None where it is read.
        cluster: the cluster as the study names it.
        policy: what results call the policy.
        queueing: as asked for; None = the policy's own.
        placement: as asked for; None = the default.
        load: offered load; None = as recorded.
        seed: seed of everything random in the run.
        parameters: values of the parameters that reach the run.
        flown: the policy's name as `windtunnel.simulate` takes it.
        options: further options of `windtunnel.simulate`.
    """

    run_id: str
    trace: str
    trace_seed: int | None
    cluster: str
    policy: str
    queueing: str | None
    placement: str | None
    load: float | None
    seed: int
    parameters: dict[str, Any]
    flown: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def table_key(self) -> tuple[str, int | None]:
        """Which jobs table the run flies."""
        return self.trace, self.trace_seed


@dataclass(frozen=True)
class Cell:
    """One place in the grid, and the run that stands there.

    A run may stand in several places: a policy that brings its own rule for the queue stands beside
    the others under each of the study's.

    Attributes:
        placement: the study's; None = the default.
        queueing: the study's; None = each policy's own.
        parameters: options of `windtunnel.simulate` among the parameters.
        run: the run.
    """

    placement: str | None
    queueing: str | None
    parameters: dict[str, Any]
    run: Run

    def to_mapping(self) -> dict[str, Any]:
        """Return the place as plain data, the run by its seed and id."""
        run = self.run
        return {
            **{name: getattr(run, name) for name in ("trace", "cluster", "load")},
            **fields_of(self, "placement", "queueing", "parameters"),
            **{name: getattr(run, name) for name in ("policy", "seed", "run_id")},
        }


def plan(study: Study) -> list[Run]:
    """Return the runs of a study, each once, in the order of its grid.

    Raises:
        SpecError: as `grid`.
    """
    return unique(grid(study))


def unique(cells: list[Cell]) -> list[Run]:
    """Return the runs of a grid, each once."""
    return list({cell.run.run_id: cell.run for cell in cells}.values())


def grid(study: Study, *, only: PolicyEntry | None = None, extra: Any = None) -> list[Cell]:
    """Return the places of a study's grid, in the order in which results list their runs.

    The order is that of the axes: trace, cluster, load, placement, queueing, parameters, policy,
    seed. Parameters that do not reach a policy do not multiply its runs.

    Args:
        study: the study.
        only: fly this policy instead of the study's.
        extra: parameter -> value, on top of the study's parameters.

    Raises:
        SpecError: an unknown name anywhere, or a parameter that reaches no run.
    """
    entries = [only] if only is not None else study.policy_entries()
    if not entries:
        raise SpecError("$.policies", "expected at least one policy, such as 'fifo'.")
    parameters = {**study.parameters, **{name: (value,) for name, value in (extra or {}).items()}}
    _check_parameters(study, [*study.policy_entries(), *entries], parameters)
    clusters = {text: _checked_cluster(text, parameters) for text in study.clusters}
    _check_size(study, entries, parameters)
    cells: dict[str, Cell] = {}
    for trace in study.trace_entries():
        for axes in itertools.product(
            study.clusters, study.loads, study.placements or (None,), study.queueing or (None,)
        ):
            for chosen in itertools.product(*parameters.values()):
                settings = dict(zip(parameters, chosen, strict=True))
                for entry in entries:
                    for cell in _cells(study, trace, entry, axes, settings, clusters=clusters):
                        place = json.dumps(cell.to_mapping(), sort_keys=True, default=str)
                        cells.setdefault(place, cell)
    _check_labels(list(cells.values()))
    return list(cells.values())


def _check_size(
    study: Study, entries: list[PolicyEntry], parameters: dict[str, tuple[Any, ...]]
) -> None:
    """Check that the grid can be listed."""
    seeds = study.seeds if isinstance(study.seeds, int) else len(study.seeds)
    axes = (study.traces, study.clusters, study.loads, study.placements or "-")
    size = math.prod(map(len, (*axes, study.queueing or "-", entries, *parameters.values())))
    if size * seeds > MAX_PLACES:
        limit = f"expected at most {MAX_PLACES:,}. Fly it in parts."
        raise SpecError("study", f"its grid has {size * seeds:,} places; {limit}")


def _cells(
    study: Study,
    trace: TraceEntry,
    entry: PolicyEntry,
    axes: tuple[Any, ...],
    settings: dict[str, Any],
    *,
    clusters: dict[str, Any],
) -> Iterator[Cell]:
    """Yield a policy's places under one condition, a seed after the other.

    Parameters are filled in, and names checked.
    """
    cluster, load, placement, queueing = axes
    named = _named(entry, cluster, placement)
    free = (*OPTIONS, *_POLICY_OPTIONS)
    used = {name: value for name, value in settings.items() if name in named or name in free}
    placement, queueing = used.get("placement", placement), used.get("queueing", queueing)
    parameters = {name: value for name, value in used.items() if name in OPTIONS}
    options = {**study.options, **parameters}
    if entry.estimates is not None:
        options["estimates"] = entry.estimates
    policy = _filled(entry.policy, used)
    flown: dict[str, Any] = {
        "queueing": entry.queueing or queueing,
        "placement": _filled(entry.placement or placement, used),
        "load": None if load == RECORDED else float(load),
        "options": options,
    }
    _check_words(policy, flown["queueing"], flown["placement"], options)
    text, where = _filled(cluster, used), clusters[cluster]
    if where is None and text != OWN:
        where = parse_cluster(text)
    shown = {name: value for name, value in used.items() if name not in _POLICY_OPTIONS}
    label = _filled(entry.name or entry.policy, used)
    placement = _filled(placement, used)
    for seed in study.seed_list():
        identity = {
            **flown,
            "trace": {"label": trace.label, **trace.reading()},
            "cluster": OWN if where is None else where.to_mapping(),
            "policy": policy,
            "seed": seed,
            "energy": study.energy is not None,
            "called": [label, shown],
        }
        run = Run(
            run_id=_digest(identity),
            trace=trace.label,
            trace_seed=seed if trace.is_made else None,
            cluster=text,
            policy=label,
            seed=seed,
            parameters=shown,
            flown=policy,
            **flown,
        )
        yield Cell(placement=placement, queueing=queueing, parameters=parameters, run=run)


def _digest(identity: dict[str, Any]) -> str:
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:ID_LENGTH]


def _filled(text: str | None, used: dict[str, Any]) -> Any:
    """Return a text, if there is one, with ``{name}`` replaced; numbers as short as can be."""
    if text is None:
        return None

    def value(match: re.Match[str]) -> str:
        if match[1] not in used:
            raise SpecError(
                text, f"{quote('{' + match[1] + '}')} stands for no parameter; add it to them."
            )
        found = used[match[1]]
        return repr(found) if isinstance(found, float) and not found.is_integer() else _word(found)

    return _BRACES.sub(value, text)


def _word(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) else str(value)


def _named(entry: PolicyEntry, cluster: str, placement: str | None) -> set[str]:
    """Return the parameters that braces name in a run's texts."""
    texts = (entry.policy, entry.name or "", cluster, entry.placement or placement or "")
    return {name for text in texts for name in _BRACES.findall(text)}


def _check_parameters(
    study: Study, entries: list[PolicyEntry], parameters: dict[str, tuple[Any, ...]]
) -> None:
    """Check that every parameter reaches a run."""
    named = {
        name
        for entry in entries
        for cluster in study.clusters
        for placement in (None, *study.placements)
        for name in _named(entry, cluster, placement)
    }
    for name in parameters:
        if name not in named and name not in (*OPTIONS, *_POLICY_OPTIONS):
            known = [*OPTIONS, *_POLICY_OPTIONS, *named]
            raise SpecError.unknown(f"$.parameters.{name}", name, known)
        if name in study.options:
            raise SpecError(f"$.parameters.{name}", "stands in $.options, too; give it once.")


def _checked_cluster(text: str, parameters: dict[str, tuple[Any, ...]]) -> ClusterSpec | None:
    """Return a cluster; None for a trace's own, or where a parameter decides it."""
    if text == OWN or any(name in parameters for name in _BRACES.findall(text)):
        return None
    return parse_cluster(text)


def _check_words(
    policy: str, queueing: str | None, placement: str | None, options: dict[str, Any]
) -> None:
    """Check a run's names before any run; what does not go together fails the run alone."""
    plain = {name: value for name, value in options.items() if FIELDS[name].kind != "object"}
    kept = {name: value for name, value in plain.items() if name != "preemption"}
    named = conditions_of(None, policy, queueing=queueing, placement=placement, **kept)
    resolved(named, several=True)


def _check_labels(cells: list[Cell]) -> None:
    """Check that no two runs are described by the same words."""
    seen: dict[str, str] = {}
    for cell in cells:
        words = {**cell.to_mapping(), "run_id": None}
        key = json.dumps(words, sort_keys=True, default=str)
        if seen.setdefault(key, cell.run.run_id) != cell.run.run_id:
            raise SpecError(
                "$.policies",
                f"two different runs are both called {quote(cell.run.policy)}; give them names.",
            )
