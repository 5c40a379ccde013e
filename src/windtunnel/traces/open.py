"""`open_trace`: one way in for every trace, by name, by path or from standard input."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.cluster.presets import preset
from windtunnel.errors import SpecError, nearest, quote
from windtunnel.schema import as_jobs
from windtunnel.traces.cuts import cut_trace
from windtunnel.traces.readers import (
    Reader,
    check_options,
    reader_by_content,
    reader_for,
    reader_for_folder,
    reader_named,
)
from windtunnel.traces.registry import MEASUREMENTS, PUBLISHED, fetch, published, synthetic_titles
from windtunnel.traces.source import STDIN, read_head, short_name, source_name
from windtunnel.traces.trace import Trace, TraceMetadata
from windtunnel.traces.trace_name import SYNTHETIC, TraceName

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.traces.registry import PublishedTrace


@dataclass(frozen=True)
class _Way:
    """How a trace comes in.

    Attributes:
        function: what reads or makes it, whose parameters are its options.
        skip: how many of its first parameters are no options.
        where: what to call the options in messages.
        open: opens the trace with some options.
    """

    function: Callable[..., Any]
    skip: int
    where: str
    open: Callable[[dict[str, Any]], Trace]


def open_trace(spec: str | Path, *, format: str | None = None, **options: Any) -> Trace:  # noqa: A002
    """Open a trace.

    Args:
        spec: a published trace's name (``philly``, ``openb``, ``openb:gpuspec33``), which is
            downloaded once where it is not on this machine; ``synthetic:NAME``; a path; or ``-``
            for standard input. A file called like a published trace is ``./philly``. Behind it,
            options and cuts: ``synthetic:kalos:jobs=2000:load=0.9``,
            ``philly:from=2017-10-09:to=2017-10-16`` (`windtunnel.traces.trace_name`).
        format: the reader for a path or standard input, by name; by default the file's ending
            and first bytes decide; standard input that they do not tell is a jobs table as CSV.
        options: what the reader or generator takes (``delimiter=";"``, ``jobs=10_000``).

    Returns:
        The trace, its jobs validated.

    Raises:
        SpecError: an unknown name, format or option; the nearest is suggested.
        TraceError: the file cannot be read, or the trace cannot be downloaded.
        SchemaError: the jobs break the schema.
    """
    name = TraceName.parse(spec)
    if "seed" in options and name.is_drawn_again and not name.says_seed:
        name = name.with_seed(options.pop("seed"))
    way = _way(name.base, format, is_name=isinstance(spec, str))
    check_options(way.function, options, where=way.where, skip=way.skip)
    settings, cuts = name.options(way.function, way.skip)
    for word in settings.keys() & options.keys():
        raise SpecError(f"{name.base}:{word}", "stands in the name and is an option; say it once.")
    return cut_trace(way.open(options | settings), cuts)


def _way(text: str, reader: str | None, *, is_name: bool) -> _Way:
    """Return how a trace comes in.

    Args:
        reader: the format, where it is named.
        is_name: whether it may be a name, and not only a path.
    """
    if is_name and reader is None:
        if text.lower().startswith(SYNTHETIC):
            return _generating(text[len(SYNTHETIC) :])
        if text.lower().removesuffix(":default") in PUBLISHED:
            return _published(text)
    if reader is not None:
        return _reading(reader_named(reader), text if text == STDIN else Path(text))
    if text == STDIN:
        return _reading(reader_by_content(read_head(STDIN)) or reader_named("native"), STDIN)
    path = Path(text)
    if text.lower() in MEASUREMENTS and not path.exists():
        raise SpecError(
            "trace", f"{quote(text)} holds measurements, not jobs; `windtunnel energy` reads them."
        )
    if not path.exists() and _may_be_name(text):
        known = [*PUBLISHED, *(f"{SYNTHETIC}{name}" for name in synthetic_titles())]
        raise SpecError(
            "trace",
            f"{quote(text)} is neither a file nor a published trace.{nearest(text, known)} "
            f"Known: {', '.join(known)}.",
        )
    found = reader_for_folder(path) if path.is_dir() else reader_for(path, read_head(path))
    return _reading(found, path)


def _may_be_name(text: str) -> bool:
    """Return whether a word that is no file was meant as a trace's name rather than a path."""
    return not any(mark in text for mark in "/\\.")


def _generating(name: str) -> _Way:
    """Make a synthetic trace; the modules are imported here because only this needs them."""
    where = f"options of {SYNTHETIC}{name}"
    if name.lower() == "gavel":
        from windtunnel.traces.gavel import generate_gavel

        return _Way(generate_gavel, 0, where, lambda options: generate_gavel(**options))
    if name.lower() == "morphling":
        from windtunnel.traces.morphling_generator import generate_morphling

        def drawn(options: dict[str, Any]) -> Trace:
            return generate_morphling(open_trace("morphling:base"), **options)

        return _Way(generate_morphling, 1, where, drawn)
    from windtunnel.traces.synthetic.generate import generate

    return _Way(generate, 1, where, lambda options: generate(name, **options))


def _reading(chosen: Reader, path: str | Path) -> _Way:
    """Read a file; a site's own reader may return a plain table instead of a `Trace`."""

    def read(options: dict[str, Any]) -> Trace:
        result = chosen.read(path, **options)
        if isinstance(result, Trace):
            return result
        jobs = as_jobs(result, source=source_name(path))
        return Trace(
            jobs, TraceMetadata(short_name(path), source_name(path), rows_read=jobs.num_rows)
        )

    return _Way(chosen.read, 1, f"options of {chosen.name}", read)


def _published(name: str) -> _Way:
    """Read a published trace, downloading it first where it is not here."""
    entry = published(name)
    chosen = reader_named(entry.reader)

    def read(options: dict[str, Any]) -> Trace:
        paths = fetch(entry.name)
        others = {role: path for role, path in paths.items() if role != "jobs"}
        return _labelled(_reading(chosen, paths["jobs"]).open({**others, **options}), entry)

    return _Way(chosen.read, 1, f"options of {chosen.name}", read)


def _labelled(trace: Trace, entry: PublishedTrace) -> Trace:
    """Return a published trace with its name, licence, citation and cluster."""
    notes = (*trace.metadata.notes, f"Cite: {entry.citation}.")
    cluster = trace.cluster
    if cluster is None and entry.cluster is not None:
        cluster = preset(entry.cluster)
        notes += (f"The cluster is the preset {entry.cluster!r}: the trace itself has none.",)
    elif cluster is not None:
        cluster = type(cluster)(cluster.node_types, entry.name, cluster.is_pool)
    metadata = replace(
        trace.metadata,
        name=entry.name,
        source=entry.files[0].url,
        licence=entry.licence,
        notes=notes,
    )
    return replace(trace, metadata=metadata, cluster=cluster)
