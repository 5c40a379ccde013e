"""`open_trace`: one way in for every trace, by name, by path or from standard input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

# Importing a reader's module registers it.
import windtunnel.traces.acme
import windtunnel.traces.acme_previous
import windtunnel.traces.batsim
import windtunnel.traces.dlrm
import windtunnel.traces.gavel
import windtunnel.traces.genai
import windtunnel.traces.helios
import windtunnel.traces.kubernetes.reader
import windtunnel.traces.morphling
import windtunnel.traces.native
import windtunnel.traces.openb
import windtunnel.traces.opendc
import windtunnel.traces.pai.reader
import windtunnel.traces.pai_simulator
import windtunnel.traces.philly
import windtunnel.traces.philly_raw
import windtunnel.traces.sacct
import windtunnel.traces.spot
import windtunnel.traces.swf
import windtunnel.traces.twin.store  # noqa: F401
from windtunnel.cluster.presets import preset
from windtunnel.errors import SpecError, nearest, quote
from windtunnel.schema import as_jobs
from windtunnel.traces.published import MEASUREMENTS, PUBLISHED, published
from windtunnel.traces.readers import (
    Reader,
    check_options,
    reader_by_content,
    reader_for,
    reader_for_folder,
    reader_named,
)
from windtunnel.traces.registry import fetch, synthetic_titles
from windtunnel.traces.source import STDIN, read_head, short_name, source_name
from windtunnel.traces.trace import Trace, TraceMetadata

_SYNTHETIC = "synthetic:"


def open_trace(spec: str | Path, *, format: str | None = None, **options: Any) -> Trace:  # noqa: A002
    """Open a trace.

    Args:
        spec: a published trace's name (``philly``, ``openb``, ``openb:gpuspec33``), which is
            downloaded once where it is not on this machine; ``synthetic:NAME``; a path; or ``-``
            for standard input. A file called like a published trace is ``./philly``.
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
    text = str(spec)
    if isinstance(spec, str) and format is None:
        if text.lower().startswith(_SYNTHETIC):
            return _generate(text[len(_SYNTHETIC) :], options)
        if text.lower().removesuffix(":default") in PUBLISHED:
            return _open_published(text, options)
    if text == STDIN:
        told = reader_by_content(read_head(STDIN)) if format is None else reader_named(format)
        return _read(told or reader_named("native"), STDIN, options)
    path = Path(text)
    if format is None and text.lower() in MEASUREMENTS and not path.exists():
        raise SpecError(
            "trace", f"{quote(text)} holds measurements, not jobs; `windtunnel energy` reads them."
        )
    if format is not None:
        return _read(reader_named(format), path, options)
    if not path.exists() and _may_be_name(text):
        known = [*PUBLISHED, *(f"{_SYNTHETIC}{name}" for name in synthetic_titles())]
        raise SpecError(
            "trace",
            f"{quote(text)} is neither a file nor a published trace.{nearest(text, known)} "
            f"Known: {', '.join(known)}.",
        )
    if path.is_dir():
        return _read(reader_for_folder(path), path, options)
    return _read(reader_for(path, read_head(path)), path, options)


def _may_be_name(text: str) -> bool:
    """Return whether a word that is no file was meant as a trace's name rather than a path."""
    return not any(mark in text for mark in "/\\.")


def _generate(name: str, options: dict[str, Any]) -> Trace:
    """Make a synthetic trace; the modules are imported here because only this needs them."""
    if name.lower() == "gavel":
        from windtunnel.traces.gavel_generator import generate_gavel

        check_options(generate_gavel, options, where=f"options of {_SYNTHETIC}gavel", skip=0)
        return generate_gavel(**options)
    from windtunnel.traces.synthetic import generate

    check_options(generate, options, where=f"options of {_SYNTHETIC}{name}", skip=1)
    return generate(name, **options)


def _open_published(name: str, options: dict[str, Any]) -> Trace:
    """Read a published trace, downloading it first where it is not here."""
    entry = published(name)
    chosen = reader_named(entry.reader)
    chosen.check_options(options)
    paths = fetch(entry.name)
    others = {role: path for role, path in paths.items() if role != "jobs"}
    trace = _read(chosen, paths["jobs"], {**others, **options})
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


def _read(chosen: Reader, path: str | Path, options: dict[str, Any]) -> Trace:
    """Call a reader; a site's own may return a plain table instead of a `Trace`."""
    chosen.check_options(options)
    result = chosen.read(path, **options)
    if isinstance(result, Trace):
        return result
    jobs = as_jobs(result, source=source_name(path))
    name = short_name(path)
    return Trace(jobs, TraceMetadata(name, source_name(path), rows_read=jobs.num_rows))
