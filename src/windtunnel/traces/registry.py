"""Published traces: where they are, how they are recognised, and how they come to this machine.

A file is looked for in a local mirror (the folder that ``WINDTUNNEL_DATA`` names, plain or with
``.gz``), then in the cache (``WINDTUNNEL_CACHE``, else the user's cache folder), and is downloaded
last. Every file is checked against its SHA-256, always of the unpacked content.

The published traces that windtunnel knows: files, sizes, checksums, licences, citations.

They stand in ``published.toml`` beside this. Where the files are on this machine, and how
they get here, is the subject of `windtunnel.traces.registry`.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from windtunnel import storage
from windtunnel.errors import SpecError, TraceError
from windtunnel.storage import cache_dir
from windtunnel.traces.source import read_bytes


@dataclass(frozen=True)
class PublishedFile:
    """One file of a published trace.

    Attributes:
        role: ``jobs`` for the reader's path, else the name of the reader's option.
        url: where it is published.
        size: bytes.
        sha256: of its content, unpacked, hexadecimal.
        mirror: its place below ``WINDTUNNEL_DATA`` and below the cache folder.
    """

    role: str
    url: str
    size: int
    sha256: str
    mirror: str


@dataclass(frozen=True)
class PublishedTrace:
    """A trace that others published.

    Attributes:
        name: what users type (``openb``, ``openb:gpuspec33``).
        title: one line about it.
        licence: the data's licence, as the source states it.
        citation: what to cite.
        reader: name of its reader.
        files: its files; the first is the jobs.
        cluster: preset that describes its cluster where no file of it does.
    """

    name: str
    title: str
    licence: str
    citation: str
    reader: str
    files: tuple[PublishedFile, ...]
    cluster: str | None = None


def _entries(kind: str) -> dict[str, PublishedTrace]:
    """Return what ``published.toml`` has of a kind, variants behind what they vary."""
    raw = resources.files("windtunnel.traces").joinpath("published.toml").read_text("utf-8")
    found: dict[str, PublishedTrace] = {}
    for name, about in tomllib.loads(raw)[kind].items():
        at, variants, files = (about.pop(key, {}) for key in ("at", "variants", "files"))
        own = {role: _file(at, role, **given) for role, given in files.items()}
        if "jobs" in own or not variants:
            found[name] = PublishedTrace(name=name, files=tuple(own.values()), **about)
        for variant, given in variants.items():
            title, key = given.pop("title"), f"{name}:{variant}"
            those = tuple((own | {"jobs": _file(at, "jobs", **given)}).values())
            found[key] = PublishedTrace(**about | {"name": key, "title": title, "files": those})
    return found


def _file(at: str, role: str, *, address: str, **about: Any) -> PublishedFile:
    return PublishedFile(role, url=f"{at}{address}", **about)


#: Every published trace by name.
PUBLISHED: dict[str, PublishedTrace] = _entries("traces")
#: Published measurements that are no list of jobs, by name; `windtunnel.energy` reads them.
MEASUREMENTS: dict[str, PublishedTrace] = _entries("measurements")


def published(name: str) -> PublishedTrace:
    """Return a published trace, or published measurements, by name; ``openb:default`` is ``openb``.

    Raises:
        SpecError: there is none of this name; the nearest is suggested.
    """
    key = name.lower().removesuffix(":default")
    known = {**PUBLISHED, **MEASUREMENTS}
    if key not in known:
        raise SpecError.unknown("trace", name, known)
    return known[key]


_TIMEOUT_S = 30


@dataclass(frozen=True)
class TraceListing:
    """A line of the list of traces.

    Attributes:
        name: what users type.
        title: one line about it.
        available: ``mirror``, ``cache``, ``download`` (not here yet) or ``generated``.
    """

    name: str
    title: str
    available: str


def locate(name: str) -> dict[str, Path] | None:
    """Return where a published trace's files are on this machine; nothing is downloaded.

    Returns:
        Path by role (``jobs``, ``nodes``), or None where a file is missing.

    Raises:
        SpecError: there is no such trace.
    """
    found = {file.role: _local(file) for file in published(name).files}
    paths = {role: path for role, path in found.items() if path is not None}
    return paths if len(paths) == len(found) else None


def fetch(name: str, *, progress: bool | None = None) -> dict[str, Path]:
    """Make sure that a published trace is on this machine, whole and unaltered.

    Args:
        progress: show a progress bar on stderr; None = where stderr is a terminal.

    Returns:
        Path by role (``jobs``, ``nodes``).

    Raises:
        SpecError: there is no such trace.
        TraceError: a file cannot be downloaded, or its content is not the published one.
    """
    trace = published(name)
    show = sys.stderr.isatty() if progress is None else progress
    paths: dict[str, Path] = {}
    for file in trace.files:
        path = _local(file)
        if path is not None and _in_mirror(path):
            _check(path, file)
        elif path is None or not _is_whole(path, file):
            path = _download(trace, file, show=show)
        paths[file.role] = path
    return paths


def list_traces() -> list[TraceListing]:
    """Return everything that has a name: published traces, measurements, synthetic traces."""
    listings = []
    for name, trace in {**PUBLISHED, **MEASUREMENTS}.items():
        paths = locate(name)
        if paths is None:
            where = "download"
        else:
            where = "mirror" if all(_in_mirror(p) for p in paths.values()) else "cache"
        listings.append(TraceListing(name, trace.title, where))
    listings += [
        TraceListing(f"synthetic:{name}", title, "generated")
        for name, title in synthetic_titles().items()
    ]
    return listings


def synthetic_titles() -> dict[str, str]:
    """Return the synthetic traces: name -> one line about it."""
    from windtunnel.traces.synthetic import published as facts

    titles = {name: f"Synthetic {facts.published(name).trace.summary}" for name in facts.NAMES}
    return titles | {"gavel": "Synthetic workload of Gavel's simulations (OSDI'20)"}


def _mirror_dir() -> Path | None:
    chosen = os.environ.get("WINDTUNNEL_DATA")
    return Path(chosen) if chosen else None


def _in_mirror(path: Path) -> bool:
    mirror = _mirror_dir()
    return mirror is not None and path.is_relative_to(mirror)


def _local(file: PublishedFile) -> Path | None:
    mirror = _mirror_dir()
    candidates = [cache_dir() / file.mirror]
    if mirror is not None:
        candidates[:0] = [mirror / file.mirror, mirror / f"{file.mirror}.gz"]
    return next((path for path in candidates if path.is_file()), None)


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()


def _is_whole(path: Path, file: PublishedFile) -> bool:
    """Return whether a download is still what it was; one that is not is made again."""
    try:
        return _sha256(path) == file.sha256
    except TraceError:
        return False


def _check(path: Path, file: PublishedFile) -> None:
    """Refuse a mirrored file that is not the published one."""
    found = _sha256(path)
    if found != file.sha256:
        raise TraceError(
            str(path),
            f"content with SHA-256 {file.sha256[:16]}...",
            value=f"{found[:16]}...",
            hint="The mirror's copy is cut or altered: replace it, or open it by its path.",
        )


def _download(trace: PublishedTrace, file: PublishedFile, *, show: bool) -> Path:
    """Download one file into the cache, for this run alone where that cannot be written to."""
    import pooch

    target = wanted = cache_dir() / file.mirror
    bar = _Bar(f"{trace.name}: {target.name}", file.size) if show else None
    load = pooch.HTTPDownloader(progressbar=bar or False, timeout=_TIMEOUT_S)
    try:
        if not _can_write(target.parent):
            target = storage.scratch_folder() / target.name
        with storage.replacing(target) as temporary:
            load(file.url, str(temporary), None)
            _refuse_another(temporary, file)
    except (OSError, _AnotherFileError) as error:  # requests' errors are OSErrors
        raise TraceError(
            trace.name,
            f"its file {target.name} ({file.size:,} bytes) on this machine or from the network",
            hint=f"It is not here and cannot be downloaded ({_cause(error)}): put {file.url} at "
            f"{wanted}, or set WINDTUNNEL_DATA to a folder that holds {file.mirror}.",
        ) from error
    finally:
        if bar is not None:
            bar.close()
    return target


class _AnotherFileError(Exception):
    """What the server sent is not the published file."""


def _refuse_another(path: Path, file: PublishedFile) -> None:
    """Check what came."""
    if not _is_whole(path, file):
        raise _AnotherFileError


def _can_write(folder: Path) -> bool:
    """Return whether downloads can be kept in a folder, which is made where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _cause(error: Exception) -> str:
    """Return in a few words why a download failed."""
    if isinstance(error, _AnotherFileError):
        return "the server's file is another one"
    response = getattr(error, "response", None)
    if response is not None:
        return f"the server answers {response.status_code}"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return {
        "ConnectTimeout": "the server does not answer",
        "ReadTimeout": "the server does not answer",
        "ConnectionError": "no connection to the server",
        "ProxyError": "the proxy refuses",
        "SSLError": "the secure connection fails",
    }.get(type(error).__name__, type(error).__name__)


class _Bar:
    """A progress bar with the four members that pooch calls.

    Attributes:
        total: bytes to come; pooch sets it from the server's answer.
    """

    def __init__(self, title: str, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        self.total = total
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task(title, total=total)
        self._progress.start()

    def update(self, count: int) -> None:
        """Count ``count`` more bytes."""
        self._progress.update(self._task, advance=count)

    def reset(self) -> None:
        """Start from nothing again."""
        self._progress.reset(self._task, total=self.total)

    def close(self) -> None:
        """Leave the bar as it stands."""
        self._progress.stop()
