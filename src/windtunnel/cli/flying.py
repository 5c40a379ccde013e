"""A flight from the command line, for simulate, compare and demo: request, run, what to tell."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from windtunnel.cli.opening import TraceRequest, cluster_for, open_request
from windtunnel.cli.recorded_site import site_beside
from windtunnel.cli.screen import progress
from windtunnel.errors import SpecError, quote
from windtunnel.report.format import count

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.energy import Account
    from windtunnel.sim.outcome import Outcome
    from windtunnel.site.conditions import Conditions
    from windtunnel.traces.trace import Trace


@dataclass(frozen=True)
class FlightRequest:
    """What the user asked for.

    Attributes:
        trace: the trace.
        policies: names, in order.
        asked: the conditions that all of them share, as typed.
    """

    trace: TraceRequest
    policies: Sequence[str]
    asked: Conditions

    @classmethod
    def of(cls, trace: str, policies: Sequence[str], asked: dict[str, Any]) -> FlightRequest:
        """Return the request that a command's options make.

        Args:
            trace: TRACE as typed.
            policies: names, in order.
            asked: the values of `trace_options`, of fields of the run, and ``kueue``.

        Raises:
            SpecError: a value is wrong, or no policy goes by manifests.
        """
        from windtunnel.site.conditions import QUIET, Conditions
        from windtunnel.study.site_file import is_site_file, read_site

        fields = dict(asked)
        wanted = TraceRequest.of(trace, fields, fields.get("seed"))
        policies = with_manifests(policies, fields.pop("kueue", None))
        if fields.get("slurm_conf") is not None and not is_typed("policy", "policies"):
            policies = ["slurm"]
        if trace and fields.get("cluster") is None and fields.get("slurm_conf") is None:
            fields["cluster"] = site_beside(trace)
        if not is_site_file(fields.get("cluster")):
            return cls(wanted, policies, Conditions().having(**fields))
        base = read_site(fields.pop("cluster"), trust=fields.get("trust", False))
        stated = {name: value for name, value in fields.items() if value != QUIET[name]}
        if not is_typed("policy", "policies"):
            policies = [base.scheduler.policy]
        return cls(wanted, policies, base.having(**stated))

    def resolved(self) -> list[Conditions]:
        """Return the conditions of each run, with every word replaced by what it stands for.

        Raises:
            SpecError, PolicyError, TraceError: a name or value is wrong; no policy, or one twice.
        """
        from windtunnel.study.compare import check_labels
        from windtunnel.study.resolving import resolved

        several = len(self.policies) > 1
        found = [resolved(self.asked.having(policy=one), several=several) for one in self.policies]
        check_labels(found)
        return found


def is_typed(*names: str) -> bool:
    """Return whether one of a command's options was typed, and is not there by default."""
    context = click.get_current_context(silent=True)
    sources = [None if context is None else context.get_parameter_source(name) for name in names]
    return ParameterSource.COMMANDLINE in sources


def check_policies(policies: Sequence[str], **fields: Any) -> None:
    """Check the names and values of runs before anything is read.

    Args:
        policies: their names.
        fields: of the runs, by name.

    Raises:
        SpecError, PolicyError, TraceError: one is wrong; the nearest name is suggested.
    """
    FlightRequest.of("", policies, fields).resolved()


def with_manifests(policies: Sequence[str], folder: str | None) -> Sequence[str]:
    """Return the policies, ``kueue`` with its manifests; it is the policy where none was asked for.

    Raises:
        SpecError: none of them is ``kueue``, or the name cannot stand behind a policy's.
    """
    context = click.get_current_context(silent=True)
    if folder is not None and context is not None:
        source = context.get_parameter_source("policy")
        if source is ParameterSource.DEFAULT:
            policies = ["kueue"]
    return _with_file("--kueue", "kueue", "dir", policies, folder)


def _with_file(
    option: str, policy: str, key: str, policies: Sequence[str], file: str | None
) -> Sequence[str]:
    """Return the policies, those of one name with the file that an option gives them."""
    if file is None:
        return policies
    if ":" in file or "," in file:
        message = f"found {quote(file)}; expected a path without ':' and ','."
        raise SpecError(option, message)
    named = [name.split(":")[0].lower() == policy for name in policies]
    if not any(named):
        message = f"none of {', '.join(policies)} goes by it; name {policy!r}."
        raise SpecError(option, message)
    if any(f":{key}=" in name for name in policies):
        raise SpecError(option, "a policy names a file of its own; give one or the other.")
    return [
        f"{name}:{key}={file}" if is_named else name
        for name, is_named in zip(policies, named, strict=True)
    ]


@dataclass(frozen=True)
class Flown:
    """What came of it.

    Attributes:
        trace: the trace that was flown.
        cluster: where.
        outcomes: policy -> outcome, in the order asked for.
        notes: what a reader of the numbers must know, one sentence each.
        books: policy -> its run's energy; None where it was not asked for.
    """

    trace: Trace
    cluster: ClusterSpec
    outcomes: dict[str, Outcome]
    notes: tuple[str, ...]
    books: dict[str, Account] | None = None

    @property
    def title(self) -> str:
        """One line: which trace on which cluster."""
        return f"{self.trace.name} on {self.cluster.describe()}"


def fly(
    request: FlightRequest,
    *,
    prepare: Callable[[Trace], tuple[Trace, tuple[str, ...]]] | None = None,
) -> Flown:
    """Open the trace and fly it under every policy of the request.

    Args:
        request: what the user asked for.
        prepare: changes the trace between reading and flying; returns it with what to tell.

    Raises:
        WindtunnelError: anything about the request or the trace is wrong.
    """
    from windtunnel.study.changes import on_clock
    from windtunnel.study.compare import fly_several

    several = request.resolved()
    without_pandas()
    trace = open_request(request.trace)
    trace, trace_notes = (trace, ()) if prepare is None else prepare(trace)
    cluster, why = cluster_for(trace, several[0].site.cluster)
    about = trace.metadata
    several = [on_clock(one, about.epoch, about.zone) for one in several]
    total = len(request.policies)
    with progress("Flying", total) as done:
        flown = fly_several(trace.jobs, [one.having(cluster=cluster) for one in several], done)
    runs = flown.outcomes.values()
    notes = (*trace_notes, *why, *(note for outcome in runs for note in outcome.notes))
    return Flown(trace, cluster, flown.outcomes, tuple(dict.fromkeys(notes)))


def without_pandas() -> None:
    """Keep pyarrow from importing pandas, where nothing has: it takes a third of a short command.

    pyarrow does so at the first value that it is given, to learn whether that is one of pandas's
    kinds. Whoever imports pandas, or asks pyarrow for it (``to_pandas``), has it nonetheless.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.scalar(0)
    finally:
        sys.meta_path.remove(_NoPandas)


class _NoPandas:
    """A finder of modules that finds no pandas."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:  # noqa: ARG004
        if name == "pandas":
            raise ModuleNotFoundError(name)


def with_notes(trace: Trace, notes: tuple[str, ...]) -> Trace:
    """Return the trace with further notes in its metadata, before those it has."""
    about = replace(trace.metadata, notes=(*notes, *trace.metadata.notes))
    return replace(trace, metadata=about)


def notes_of(flown: Flown) -> list[str]:
    """Return what a reader of the numbers must know, what was left out behind it."""
    about = flown.trace.metadata
    dropped = [
        f"Of {count(about.rows_read)} records {count(number)} are left out: {reason}"
        for reason, number in about.dropped.items()
        if number
    ]
    return [*flown.notes, *dropped]


def settings_of(flown: Flown) -> list[tuple[str, str]]:
    """Return how runs were flown, in short."""
    from windtunnel.report.sections import parameters_text

    runs = flown.outcomes
    first = next(iter(runs.values())).settings
    parameters = [
        ("parameters", f"{name.split(':')[0]}: {parameters_text(o.settings['parameters'])}")
        for name, o in runs.items()
        if "parameters" in o.settings
    ]
    sharing = {name: o.settings["sharing"] or "none" for name, o in runs.items()}
    is_shared = set(sharing.values()) != {"none"}
    return [
        ("queueing", _once_or_each({name: o.settings["queueing"] for name, o in runs.items()})),
        ("placement", str(first["placement"])),
        *([("GPU sharing", _once_or_each(sharing))] if is_shared else []),
        ("arrivals", first.get("arrivals") or "open: as recorded, however long jobs wait"),
        ("engine", _once_or_each({name: o.settings["engine"] for name, o in runs.items()})),
        *parameters,
    ]


def _once_or_each(values: dict[str, Any]) -> str:
    """Return one value for all runs, or each run's."""
    if len(set(values.values())) == 1:
        return str(next(iter(values.values())))
    return ", ".join(f"{name}: {value}" for name, value in values.items())
