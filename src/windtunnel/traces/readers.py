"""The registry of trace readers: how a reader announces itself and how a file finds its reader.

A reader is a function ``read(path, **options) -> Trace`` under a name. It says which endings its
files have and, where several formats share one, gives ``sniff``: a function of a file's first
bytes. One whose trace is a folder of files gives ``sniff_folder``, a function of the names in it.
A site's own reader registers in the same way, and is found as every plug-in is
(`windtunnel.plugins`)::

    @wt.reader("mysite", extensions=(".log",))
    def read(path): ...
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, TraceError, quote
from windtunnel.plugins import Catalogue, modules_of
from windtunnel.traces.archive import first_file
from windtunnel.traces.parquet import MAGIC, header_of
from windtunnel.traces.source import PACKED_ENDINGS, check_packing

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Reader:
    """One way to read a trace.

    Attributes:
        name: what users type for it (``format=``).
        read: ``read(path, **options)``; returns a `Trace`, or anything that exports Arrow.
        extensions: endings of its files, with the dot, without ``.gz``.
        sniff: whether a file's first bytes (decompressed) look like this format; None = its
            extensions decide alone, after all readers that can tell were asked; the longest
            ending that fits goes first.
        sniff_folder: whether a folder with files of these names is a trace of this format; None
            = it reads no folders.
    """

    name: str
    read: Callable[..., Any]
    extensions: tuple[str, ...] = ()
    sniff: Callable[[bytes], bool] | None = None
    sniff_folder: Callable[[frozenset[str]], bool] | None = None


def as_reader(name: str, given: Any) -> Reader:
    """Return the reader that an object is: a `Reader`, or a function that reads, decorated or not.

    Raises:
        SpecError: it is none.
    """
    if isinstance(given, Reader):
        return given
    if not callable(given):
        raise SpecError("format", f"found {quote(given)}; expected a name or a function of a path.")
    own = next((r for r in READERS.registered.values() if r.read is given), None)
    return own or Reader(name or getattr(given, "__name__", "reader"), given)


#: Endings of archives, whose one file tells the format.
_ARCHIVES = (".zip", ".tar", ".tgz")
#: Readers of windtunnel's own modules, as far as these are imported.
_OWN: dict[str, Reader] = {}


def _built_in() -> dict[str, Reader]:
    """Return the readers of all modules of `windtunnel.traces`, by name, in its order."""
    modules_of("windtunnel.traces")
    return dict(sorted(_OWN.items()))


#: Every reader by name.
READERS: Catalogue[Reader] = Catalogue("format", "readers", _built_in, made=as_reader)


def reader(
    name: str,
    extensions: tuple[str, ...] = (),
    *,
    sniff: Callable[[bytes], bool] | None = None,
    sniff_folder: Callable[[frozenset[str]], bool] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as the reader ``name``.

    Args:
        name: what users pass as ``format=``; a second registration replaces the first, except
            that of a built-in one.
        extensions: endings of its files, such as ``(".swf",)``; ``.gz`` behind them is implied.
        sniff: recognises the format by a file's first 4,096 bytes.
        sniff_folder: recognises a folder by the names in it, for a trace of several files.

    >>> @reader("nothing")
    ... def read(path):
    ...     return {"submit_time": [0], "duration": [1], "num_gpus": [1]}
    >>> READERS["nothing"].name
    'nothing'

    Raises:
        SpecError: the name is a built-in reader's.
    """

    def register(read: Callable[..., Any]) -> Callable[..., Any]:
        made = Reader(name, read, tuple(extensions), sniff, sniff_folder)
        if read.__module__.startswith("windtunnel.") and read.__module__ != __name__:
            _OWN[name] = made
        else:
            READERS.register(name, made)
        return read

    return register


def reader_named(name: str) -> Reader:
    """Return a reader by name, or by ``package.module:name``.

    Raises:
        SpecError: there is no such reader; the nearest name is suggested.
    """
    return READERS.resolve(name)


def reader_for(path: Path, head: bytes) -> Reader:
    """Return the reader for a file: by its ending, then by its first bytes.

    Args:
        head: its first bytes, decompressed; may be empty.

    Raises:
        SpecError: none fits; says how to name one.
        TraceError: there is no such file.
    """
    ending = _unpacked(path.name)
    fits = _fitting(ending)
    if not fits and ending.endswith(_ARCHIVES):
        ending = _unpacked(first_file(path, 0)[0])
        fits = _fitting(ending)
    # What a Parquet file holds stands at its end: its columns are asked about as a CSV header is.
    heads = (head, header_of(path)) if head.startswith(MAGIC) else (head,)
    for candidate in fits:
        if candidate.sniff is not None and any(map(candidate.sniff, heads)):
            return candidate
    by_ending = [candidate for candidate in fits if candidate.sniff is None]
    if by_ending:
        return max(by_ending, key=lambda r: max(len(e) for e in r.extensions if ending.endswith(e)))
    for start in reversed(heads if not fits else ()):  # no ending that says anything: ask everyone
        for candidate in READERS.values():
            if candidate.sniff is not None and candidate.sniff(start):
                return candidate
    if len(fits) == 1:  # its own errors are more precise than "unknown format"
        return fits[0]
    if not path.exists():
        raise TraceError(str(path), "a file that exists")
    check_packing(head, str(path))
    known = ", ".join(sorted(READERS))
    raise SpecError(
        str(path),
        f"cannot tell the format of {quote(path.name)}; "
        f"name it with format= (--format): one of {known}.",
    )


def _unpacked(name: str) -> str:
    """Return a file's name, in small letters, as it is once unpacked."""
    name = name.lower()
    for ending in PACKED_ENDINGS:
        name = name.removesuffix(ending)
    return name


def _fitting(ending: str) -> list[Reader]:
    return [r for r in READERS.values() if any(ending.endswith(e) for e in r.extensions)]


def reader_by_content(head: bytes) -> Reader | None:
    """Return the first reader that knows a source without a name by its first line of text.

    None where none does, or where it is Parquet, whose columns the first bytes do not tell.
    """
    if head.startswith(MAGIC):
        return None
    known = (r for r in READERS.values() if r.sniff is not None and r.sniff(head))
    return next(known, None)


def reader_for_folder(path: Path) -> Reader:
    """Return the reader for a folder, by the names of what lies in it.

    Raises:
        TraceError: the folder cannot be read, or no reader knows it.
    """
    try:
        names = frozenset(entry.name for entry in path.iterdir())
    except OSError as error:
        raise TraceError(
            str(path), "a folder that can be read", hint=f"The system says: {error.strerror}."
        ) from error
    for candidate in READERS.values():
        if candidate.sniff_folder is not None and candidate.sniff_folder(names):
            return candidate
    raise TraceError(
        str(path), "a file", hint="It is a folder: name one file in it, or name the format."
    )


def check_options(
    function: Callable[..., Any], options: dict[str, Any], *, where: str, skip: int
) -> None:
    """Check options against a function's signature, past its first ``skip`` parameters.

    Raises:
        SpecError: the function has no such parameter.
    """
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    known = [p.name for p in parameters]
    for option in options:
        if option not in known:
            raise SpecError.unknown(where, option, known or ["(none)"])
