"""`Study`: the immutable description of an experiment, as STUDY.toml gives it.

A study is a grid: traces x clusters x policies x placements x queueing x loads x seeds x
parameters. `windtunnel.study.grid.plan` turns it into runs.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel import storage
from windtunnel.checked import checked_choice
from windtunnel.errors import SpecError
from windtunnel.notebook import as_html
from windtunnel.site.conditions import FIELDS
from windtunnel.study.trust import refuse_code
from windtunnel.toml_file import read_toml, struct_of, toml_key, toml_value
from windtunnel.traces.trace_name import MOVED, TraceName

if TYPE_CHECKING:
    from collections.abc import Iterator


#: The word for a trace's own cluster.
OWN = "own"
#: The word for a trace's own load.
RECORDED = "recorded"
_AXES = frozenset({"cluster", "policy", "queueing", "placement", "seed"})
#: What `windtunnel.simulate` takes that is not an axis of the grid; no file tells of its own trust.
OPTIONS: tuple[str, ...] = tuple(
    name for name in FIELDS if name not in _AXES | {"carbon", "tariff", "trust"}
)
#: Seeds of random generators are 64-bit.
_LAST_SEED = 2**63 - 1


class _Entry(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """A part of a study's description; as plain data it tells what is not the default."""


class TraceEntry(_Entry, frozen=True):
    """A trace of a study.

    Attributes:
        trace: as for `windtunnel.open_trace`, options and cuts behind its name; a path is
            relative to the folder of STUDY.toml.
        name: what results call it; None = ``trace``.
        format: the reader, where it cannot be detected.
        zone: time zone of a file's wall clock.
        bad_rows: ``raise`` or ``drop``.
    """

    trace: str
    name: str | None = None
    format: str | None = None
    zone: str | None = None
    bad_rows: str | None = None

    @property
    def label(self) -> str:
        """What results call the trace."""
        return self.name or self.trace

    @property
    def is_made(self) -> bool:
        """Whether each seed stands for other jobs: drawn anew, or another window of a log."""
        name = TraceName.parse(self.trace)
        return name.is_drawn and not name.says_seed

    def reading(self) -> dict[str, Any]:
        """Return the options of `windtunnel.open_trace` that the entry gives."""
        names = ("format", "zone", "bad_rows")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}


class PolicyEntry(_Entry, frozen=True):
    """A policy of a study, with settings of its own.

    Attributes:
        policy: as for `windtunnel.simulate`; ``{name}`` stands for a parameter.
        name: what results call it; None = ``policy``, parameters filled in.
        queueing: its own rule, instead of the study's; None = the study's.
        placement: likewise.
        estimates: likewise.
    """

    policy: str
    name: str | None = None
    queueing: str | None = None
    placement: str | None = None
    estimates: str | None = None


class Energy(_Entry, frozen=True):
    """What the runs' energy is accounted with.

    Attributes:
        power: TOML file of the model of power.
        carbon: gCO2eq per kWh: a number, or a CSV file.
        tariff: money per kWh, likewise.
    """

    power: str
    carbon: float | str | None = None
    tariff: float | str | None = None


class Span(_Entry, frozen=True):
    """The numbers that a search may give a parameter.

    Attributes:
        low: least.
        high: greatest.
        log: search its logarithm.
        whole: whole numbers only.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False


class Limit(_Entry, frozen=True):
    """What a metric must keep to: ``min`` and ``max`` are allowed themselves."""

    min: float | None = None
    max: float | None = None


class Search(_Entry, frozen=True):
    """A search for the best parameters of one policy.

    Attributes:
        objective: the metric to make best, in the mean over all conditions of the study.
        policy: the policy, with ``{name}`` for each parameter of the space that it takes; None =
            the study's only one.
        direction: ``minimize`` or ``maximize``; None = what is better of this metric.
        trials: settings to try.
        batch: trials drawn at a time, before their results are known.
        seed: of the sampler.
        space: parameter -> its numbers, or the values to choose from. A parameter that no braces
            name is an option of the runs, or ``queueing`` or ``placement``.
        constraints: metric -> what the worst run of a trial must keep to.
    """

    objective: str
    policy: str | None = None
    direction: str | None = None
    trials: int = 40
    batch: int = 4
    seed: int = 0
    space: dict[str, Span | tuple[str | float | int, ...]] = {}
    constraints: dict[str, Limit] = {}


class Study(_Entry, frozen=True):
    """A grid of runs.

    Attributes:
        traces: the traces.
        policies: the policies, the first being what the others are compared with.
        name: what it is called.
        clusters: as for `windtunnel.simulate`, or ``own``: that of the trace.
        placements: as for `windtunnel.simulate`; empty = its default.
        queueing: likewise; empty = each policy's own.
        loads: offered loads that submissions are stretched to (`study.offered_load`), or
            ``recorded``: as they are.
        seeds: seeds, or how many from 0 on. A seed is that of everything random in a run, and
            of the trace where that is made.
        parameters: name -> values. ``{name}`` in a policy, placement or cluster stands for them;
            other names are options of `windtunnel.simulate`.
        options: options of `windtunnel.simulate` that all runs share.
        energy: account for energy; None = do not.
        search: what `windtunnel study tune` searches; None = nothing.
    """

    traces: tuple[str | TraceEntry, ...]
    policies: tuple[str | PolicyEntry, ...] = ()
    name: str = "study"
    clusters: tuple[str, ...] = (OWN,)
    placements: tuple[str, ...] = ()
    queueing: tuple[str, ...] = ()
    loads: tuple[float | str, ...] = (RECORDED,)
    seeds: int | tuple[int, ...] = 1
    parameters: dict[str, tuple[str | float | int | bool, ...]] = {}
    options: dict[str, Any] = {}
    energy: Energy | None = None
    search: Search | None = None

    def __post_init__(self) -> None:
        """Check what types do not say.

        Raises:
            SpecError: an axis is empty or names a thing twice, or a number or option is wrong.
        """
        _check_axes(self)
        for name in self.options:
            checked_choice(f"$.options.{name}", name, OPTIONS)
        for name, values in self.parameters.items():
            _each_once(f"$.parameters.{name}", values)

    @classmethod
    def load(cls, path: str | Path, *, trust: bool = False) -> Study:
        """Return the study that a STUDY.toml describes; paths in it are relative to its folder.

        Args:
            path: the file.
            trust: it may name code to run (``package.module:name``).

        Raises:
            UntrustedNameError: it names code, and is not trusted.
            SpecError: the file is missing, not TOML, or breaks the rules; names the key, and the
                nearest known one where it is unknown.
        """
        study = cls.from_mapping(read_toml(path), source=str(path))
        if not trust:
            refuse_code(study.named(), study.values(), str(path))
            refuse_code(study.named_as_they_stand(), {}, str(path))
        return study.located(Path(path).parent)

    @classmethod
    def from_mapping(cls, raw: dict[str, Any], *, source: str = "study") -> Study:
        """Build a study from plain data (parsed TOML or JSON).

        Raises:
            SpecError: as `load`.
        """
        _refuse_moved_keys(raw.get("traces"), source)
        return struct_of(cls, raw, source)

    def to_mapping(self) -> dict[str, Any]:
        """Return the study as plain data that `from_mapping` reads back, defaults left out."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data

    def located(self, folder: Path) -> Study:
        """Return the study with files that exist in ``folder`` found there.

        Raises:
            SpecError: a file of disruptions or slow-downs cannot be read.
        """

        def found(text: str) -> str:
            inside = folder / text
            return str(inside) if not Path(text).is_absolute() and inside.is_file() else text

        def trace(entry: TraceEntry) -> TraceEntry:
            if (path := found(entry.trace)) == entry.trace:
                name = TraceName.parse(entry.trace)
                path = str(replace(name, base=found(name.base)))
            if path == entry.trace:
                return entry
            return msgspec.structs.replace(entry, trace=path, name=entry.label)

        energy = self.energy
        if energy is not None:
            series = {
                name: found(value)
                for name in ("carbon", "tariff")
                if isinstance(value := getattr(energy, name), str)
            }
            energy = msgspec.structs.replace(energy, power=found(energy.power), **series)
        clusters = tuple(found(text) if text.endswith(".toml") else text for text in self.clusters)
        traces = tuple(trace(entry) for entry in self.trace_entries())
        options = {
            name: read_toml(found(value)) if _is_toml(value) else value
            for name, value in self.options.items()
        }
        return msgspec.structs.replace(
            self, traces=traces, clusters=clusters, energy=energy, options=options
        )

    def save(self, path: str | Path) -> None:
        """Write the study as a STUDY.toml, whole or not at all, which `load` reads back.

        Raises:
            OSError: the file cannot be written.
        """
        with storage.replacing(path) as temporary:
            temporary.write_text(to_toml(self), encoding="utf-8")

    def _repr_html_(self) -> str:
        shown = {"seeds": len(self.seed_list()), "search": None}
        rows = [
            (name, ", ".join(map(str, value)) if isinstance(value, tuple | list) else value)
            for name, value in {**self.to_mapping(), **shown}.items()
            if name != "name" and value is not None
        ]
        return as_html(self.name, (), rows)

    def values(self) -> dict[str, tuple[Any, ...]]:
        """Return what each parameter may be; of a search's numbers, one."""
        space = {} if self.search is None else self.search.space
        spans = {name: (v.low,) if isinstance(v, Span) else v for name, v in space.items()}
        return {
            name: (*self.parameters.get(name, ()), *spans.get(name, ()))
            for name in {**self.parameters, **spans}
        }

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield the texts, with braces to be filled, that may name plug-ins: (what of, text)."""
        for entry in self.policy_entries():
            yield "policy", entry.policy
            yield "placement", entry.placement or ""
        if self.search is not None:
            yield "policy", self.search.policy or ""
        yield from (("placement", text) for text in self.placements)
        yield from (("cluster", text) for text in self.clusters)

    def named_as_they_stand(self) -> Iterator[tuple[str, str]]:
        """Yield the texts in which braces stand for themselves that may name plug-ins."""
        for entry in self.policy_entries():
            yield "estimates", entry.estimates or ""
        given = {**{k: (v,) for k, v in self.options.items()}, **self.values()}
        for name, texts in given.items():
            for value in texts:
                several = value if isinstance(value, list | tuple) else [value]
                yield from ((name, text) for text in several if isinstance(text, str))

    def trace_entries(self) -> list[TraceEntry]:
        """Return the traces, plain words as entries."""
        return [TraceEntry(trace=t) if isinstance(t, str) else t for t in self.traces]

    def policy_entries(self) -> list[PolicyEntry]:
        """Return the policies, plain words as entries."""
        return [PolicyEntry(policy=p) if isinstance(p, str) else p for p in self.policies]

    def seed_list(self) -> list[int]:
        """Return the seeds, in order."""
        return list(range(self.seeds)) if isinstance(self.seeds, int) else list(self.seeds)


def _refuse_moved_keys(traces: Any, source: str) -> None:
    """Refuse keys of traces that earlier versions had.

    Raises:
        SpecError: there is one; says where it stands now.
    """
    for index, entry in enumerate(traces if isinstance(traces, list | tuple) else ()):
        for key in entry if isinstance(entry, dict) else ():
            if key in MOVED and key not in TraceEntry.__struct_fields__:
                raise SpecError(f"{source}: $.traces[{index}].{key}", MOVED[key])


def _is_toml(value: Any) -> bool:
    return isinstance(value, str) and value.endswith(".toml")


def _check_axes(study: Study) -> None:
    """Check that every axis has values, each once."""
    _each_once("$.traces", [entry.label for entry in study.trace_entries()])
    _each_once("$.clusters", study.clusters)
    _each_once("$.placements", study.placements or ("default",))
    _each_once("$.queueing", study.queueing or ("default",))
    _each_once("$.loads", study.loads)
    for load in study.loads:
        stated = 0.0 if isinstance(load, str) else load
        if load != RECORDED and not 0 < stated < float("inf"):
            raise SpecError("$.loads", f"found {load!r}; expected numbers > 0, or '{RECORDED}'.")
    if isinstance(study.seeds, int):
        if study.seeds < 1:
            raise SpecError("$.seeds", "expected at least one value.")
    else:
        _each_once("$.seeds", study.seeds)
        if not all(0 <= seed <= _LAST_SEED for seed in study.seeds):
            raise SpecError("$.seeds", "expected whole numbers >= 0, or how many from 0 on.")
    named = [p if isinstance(p, str) else msgspec.json.encode(p).decode() for p in study.policies]
    _each_once("$.policies", named or ["of the search"])
    if not study.policies and study.search is None:
        raise SpecError("$.policies", "expected at least one policy, such as 'fifo'.")


def _each_once(where: str, values: Any) -> None:
    if not values:
        raise SpecError(where, "expected at least one value.")
    seen: set[Any] = set()
    for value in values:
        # A parameter's value may be a list or mapping, which is no member of a set; its text is.
        key = value if isinstance(value, str | int | float) else repr(value)
        if key in seen:
            raise SpecError(where, f"found {value!r} twice; name each once.")
        seen.add(key)


#: Tables that stand under a heading of their own.
_TABLES = ("parameters", "options", "energy", "search")


def to_toml(study: Study) -> str:
    """Return the text of a STUDY.toml.

    >>> from windtunnel.study.grid import Study
    >>> print(to_toml(Study.from_mapping({"traces": ["philly"], "policies": ["fifo"], "seeds": 3})))
    name = "study"
    traces = ["philly"]
    policies = ["fifo"]
    seeds = 3
    <BLANKLINE>
    """
    data = {"name": study.name, **study.to_mapping()}
    lines = [f"{toml_key(name)} = {toml_value(data[name])}" for name in data if name not in _TABLES]
    for name in _TABLES:
        if name in data:
            lines += ["", f"[{name}]"]
            lines += [f"{toml_key(key)} = {toml_value(value)}" for key, value in data[name].items()]
    return "\n".join(lines) + "\n"
