"""The published traces that windtunnel knows: files, sizes, checksums, licences, citations.

They stand in ``published.toml`` beside this. Where the files are on this machine, and how
they get here, is the subject of `windtunnel.traces.registry`.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from windtunnel.errors import SpecError


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
