"""The registry of writers: how a trace goes out in a format, built in or a plug-in's.

A writer is a function ``write(trace, path)`` under a name. It returns what the format cannot hold,
a sentence each, or None where that is nothing; or `Written`, where it leaves jobs out::

    @writer("mysite", extensions=(".mine",))
    def write(trace, path): ...

It is found as every plug-in is (`windtunnel.plugins`, group ``windtunnel.writers``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from windtunnel.errors import SpecError, quote
from windtunnel.plugins import Catalogue, modules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from windtunnel.traces.trace import Trace

#: A trace's other tables, and what they are.
_TABLES = {
    "tasks": "the tasks of the jobs",
    "nodes": "the nodes",
    "holdings": "which job held which GPU when",
}


class Written(NamedTuple):
    """What came of writing a trace.

    Attributes:
        rows: jobs that were written.
        losses: what the format does not hold, one sentence each.
    """

    rows: int
    losses: Sequence[str]


@dataclass(frozen=True)
class Writer:
    """One way to write a trace.

    Attributes:
        name: what users type for it.
        write: ``write(trace, path)``, returns what is lost, or `Written`.
        extensions: endings of its files, with the dot; ``.gz`` may follow where it packs.
        packs: it packs what is called ``.gz``.
        files: names of the files that it writes in a folder; empty = it writes one file.
        dates: it holds the epoch.
        holdings: column of the jobs from which it tells who held what; empty = it does not.
    """

    name: str
    write: Callable[[Trace, Path], Written | Sequence[str] | None]
    extensions: tuple[str, ...] = ()
    packs: bool = True
    files: tuple[str, ...] = ()
    dates: bool = True
    holdings: str = ""

    def put(self, trace: Trace, path: Path) -> Written:
        """Write a trace; say how many jobs were written, and what the format does not hold.

        Raises:
            SchemaError: the jobs do not go into the format.
            TraceError: the file cannot be written; it appears whole or not at all.
        """
        made = self.write(trace, path)
        rows, losses = made if isinstance(made, Written) else (trace.jobs.num_rows, made or ())
        about, sentences = trace.metadata, list(losses)
        if about.epoch is not None and not self.dates:
            where = f" in {about.zone}" if about.zone else ""
            sentences.append(
                f"Time 0 is {about.epoch}{where}: only the seconds since then are written."
            )
        held = self.holdings in trace.jobs.column_names
        tables = [
            what
            for name, what in _TABLES.items()
            if getattr(trace, name) is not None and not (held and name == "holdings")
        ]
        if tables:
            sentences.append(f"Tables beside the jobs: {', '.join(tables)}.")
        return Written(rows, sentences)


def as_writer(name: str, given: Any) -> Writer:
    """Return the writer that an object is: a `Writer`, or a function that writes, decorated or not.

    Raises:
        SpecError: it is none.
    """
    if isinstance(given, Writer):
        return given
    if not callable(given):
        raise SpecError(
            "writer", f"found {quote(given)}; expected a name or a function of a trace and a path."
        )
    own = next((w for w in WRITERS.registered.values() if w.write is given), None)
    return own or Writer(name or getattr(given, "__name__", "writer"), given)


#: Writers of windtunnel's own modules, as far as these are imported.
_OWN: dict[str, Writer] = {}


def _built_in() -> dict[str, Writer]:
    """Return the writers of all modules of `windtunnel.traces`, by name, in its order."""
    modules_of("windtunnel.traces")
    return dict(sorted(_OWN.items()))


#: Every writer by name.
WRITERS: Catalogue[Writer] = Catalogue("writer", "writers", _built_in, made=as_writer)


def writer(
    name: str, extensions: tuple[str, ...] = (), **about: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as the writer ``name``.

    Args:
        name: what users pass as ``--to``; a second registration replaces the first, except that
            of a built-in one.
        extensions: endings of its files, such as ``(".swf",)``.
        about: further attributes of `Writer`.

    Raises:
        SpecError: the name is a built-in writer's.
    """

    def register(write: Callable[..., Any]) -> Callable[..., Any]:
        made = Writer(name, write, tuple(extensions), **about)
        if write.__module__.startswith("windtunnel."):
            _OWN[name] = made
        else:
            WRITERS.register(name, made)
        return write

    return register


def writer_for(path: Path) -> Writer:
    """Return the writer whose ending a file has.

    Raises:
        SpecError: none has it; says which there are.
    """
    ending = path.name.lower().removesuffix(".gz")
    for candidate in WRITERS.values():
        if any(ending.endswith(own) for own in candidate.extensions):
            return candidate
    known = [own for candidate in WRITERS.values() for own in candidate.extensions]
    raise SpecError(
        "OUT",
        f"cannot tell the format of {quote(path.name)}; expected an ending of {', '.join(known)} "
        "(.gz behind them packs), or --to.",
    )
