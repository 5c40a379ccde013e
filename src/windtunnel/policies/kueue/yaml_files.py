"""Documents of YAML files: nobody's aliases, no more than can be read, where each stands."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

#: More than this of one file is refused: reading it would take minutes and gigabytes.
MOST_BYTES = 32 * 2**20
#: Deeper than this nobody nests a manifest.
MOST_DEPTH = 100
_ENDINGS = (".yaml", ".yml", ".json")


class Document(NamedTuple):
    """A document of a file.

    Attributes:
        where: file and number of the document, for messages.
        data: what it holds.
    """

    where: str
    data: Any


def documents(path: str | Path) -> Iterator[Document]:
    """Yield the documents of a file, or of all YAML files of a folder; lists item by item.

    Raises:
        SpecError: a file is missing, too large, no YAML, or has aliases; a folder has pipes.
    """
    given = Path(path)
    if given.is_dir():
        files = sorted(file for file in given.iterdir() if file.suffix in _ENDINGS)
        if not files:
            raise SpecError(str(path), "the folder has no .yaml, .yml or .json file.")
        for file in files:
            if file.is_fifo():  # it might never end
                raise SpecError(str(file), "is a pipe; expected a file.")
    else:
        files = [given]
    for file in files:
        for number, data in enumerate(_loaded(file), 1):
            where = f"{file}: document {number}"
            if isinstance(data, dict) and isinstance(data.get("items"), list):
                for index, item in enumerate(data["items"]):
                    yield Document(f"{where}, $.items[{index}]", item)
            elif data is not None:
                yield Document(where, data)


def _loaded(file: Path) -> list[Any]:
    """Return a file's documents."""
    import yaml

    try:
        size = file.stat().st_size
        with file.open("rb") as raw:
            found = raw.read(MOST_BYTES + 1) if size <= MOST_BYTES else b""
        if max(size, len(found)) > MOST_BYTES:  # a pipe or a device does not tell its size
            most = MOST_BYTES // 2**20
            how_large = f"{size / 2**20:.0f} MiB" if size > MOST_BYTES else "larger"
            message = f"is {how_large}; expected at most {most} MiB of manifests."
            raise SpecError(str(file), f"{message} Leave out what is not read, or split the file.")
        text = io.TextIOWrapper(io.BytesIO(found), encoding="utf-8-sig").read()
    except (OSError, ValueError) as error:
        raise SpecError(str(file), f"cannot be read: {error}") from error
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _refuse_tricks(yaml.parse(text, Loader=loader), str(file), aliases="*" in text)
        return list(yaml.load_all(text, Loader=loader))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise SpecError(
            str(file), f"{_place(error)}cannot be read as YAML: {_why(error)}"
        ) from error


def _refuse_tricks(events: Any, file: str, *, aliases: bool) -> None:
    """Raise SpecError at what may be any size, nests too deeply or stands twice in an object."""
    import yaml

    fields: list[set[str] | None] = []  # of each open object those seen, None of a list
    is_value = False  # of a field
    for event in events:
        if aliases and isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line + 1
            message = f"line {line} has an alias (*{event.anchor}); write out what it stands for."
            raise SpecError(file, message)
        seen = fields[-1] if fields else None
        if isinstance(event, yaml.CollectionEndEvent):
            fields.pop()
            is_value = False
            continue
        if seen is not None and not is_value and isinstance(event, yaml.ScalarEvent):
            if event.value in seen:
                line = event.start_mark.line + 1
                message = f"line {line} has {quote(event.value)} a second time in one object."
                raise SpecError(file, f"{message} Name each field once.")
            seen.add(event.value)
        is_value = seen is not None and not is_value
        if isinstance(event, yaml.CollectionStartEvent):
            fields.append(set() if isinstance(event, yaml.MappingStartEvent) else None)
            is_value = False
            if len(fields) > MOST_DEPTH:
                line = event.start_mark.line + 1
                raise SpecError(file, f"line {line} is nested deeper than {MOST_DEPTH} levels.")


def _place(error: Exception) -> str:
    """Return where in a file an error is; empty if it does not say."""
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1} "


def _why(error: Exception) -> str:
    """Return what an error says is wrong, in one line."""
    parts = (getattr(error, "problem", None), getattr(error, "context", None))
    return " ".join((", ".join(filter(None, parts)) or str(error)).split())
