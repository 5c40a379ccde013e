"""`Field`: what a field of `Site`, `Scheduler` or `Conditions` tells of itself.

An option is written once, as a field of one of these structs with a `Field` in its annotation. The
options of the commands, the words that give a run again, the keys of a study and the page of all
options are made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, get_type_hints

import msgspec

from windtunnel.errors import SpecError, quote
from windtunnel.site.window import Window
from windtunnel.time_span import seconds

_Struct = TypeVar("_Struct", bound=msgspec.Struct)
#: The sections of a command's help, in order.
SECTIONS: tuple[str, ...] = ("cluster", "scheduler", "conditions")


class NamedFields(msgspec.StructMeta):
    """The type of structs whose unknown keywords are an error with "did you mean"."""

    def __call__(  # type: ignore[misc] # self is one of ours
        self: type[_Struct], /, *values: Any, **fields: Any
    ) -> _Struct:
        """Make a struct.

        Raises:
            SpecError: it has no such field, the nearest is suggested; or a value has no name that
                needs one.
        """
        known = self.__struct_fields__
        for name in fields:
            if name not in known:
                raise SpecError.unknown(name, name, known)
        try:
            made: _Struct = msgspec.StructMeta.__call__(self, *values, **fields)
        except TypeError:
            if not values:
                raise
            name = self.__name__
            example = f"{name}({known[0]}={quote(values[0])})"
            message = f"found {len(values)} without a name; write each with its name: {example}."
            raise SpecError(name, message) from None
        return made


@dataclass(frozen=True)
class Field:
    """What a field tells of itself.

    Attributes:
        help: what one needs to choose a value, in a line or two of a command's help.
        metavar: how a value looks on a command line.
        section: where the help of a command lists it; one of `SECTIONS`.
        kind: ``text``, ``word`` (one of ``words``), ``time`` (seconds, or ``30d``), ``window``,
            ``cost`` (of resuming), ``names`` (several, joined by commas), ``seed``, ``flag``,
            ``name`` (or what it stands for, in Python), ``object`` (words, a file or, in Python,
            what they describe; where there is no metavar, in Python alone).
        words: what a word may be.
        unit: of a number, such as ``s``; empty = it is no quantity.
        default: what stands for no value, where the value itself does not say it.
        details: what the page of options says behind ``help``, in Markdown.
    """

    help: str
    metavar: str = ""
    section: str = "scheduler"
    kind: str = "text"
    words: tuple[str, ...] = ()
    unit: str = ""
    default: str = ""
    details: str = ""

    @property
    def is_option(self) -> bool:
        """Whether the command line has it."""
        return bool(self.metavar) or self.kind == "flag"

    def default_text(self, quiet: Any) -> str:
        """Return the default as help and the page of options show it; empty = there is none.

        Args:
            quiet: the field's default.

        >>> Field("How long.", "TIME", kind="time", unit="s").default_text(0.0)
        '0 s'
        """
        if self.default or quiet is None:
            return self.default
        return f"{quiet:g} {self.unit}" if self.unit else f"{quiet}"

    def check(self, name: str, value: Any, quiet: Any) -> Any:
        """Return a value as the field keeps it.

        Args:
            name: of the field, for messages.
            value: as given.
            quiet: the field's default, which is always right.

        Raises:
            SpecError: it is no such word or time.
        """
        if value is quiet or value is None:
            return quiet if value is None else value
        if self.kind == "word":
            if not isinstance(value, str) or value not in self.words:
                raise SpecError.unknown(name, str(value), self.words)
        elif self.kind == "time":
            return seconds(name, value)
        elif self.kind == "window":
            return Window.of(str(value)).text
        elif self.kind == "names":
            return _names(name, value)
        elif self.kind == "seed" and not _is_seed(value):
            raise SpecError(name, f"found {quote(value)}; expected a whole number >= 0.")
        elif self.kind == "flag" and not isinstance(value, bool):
            raise SpecError(name, f"found {quote(value)}; expected true or false.")
        elif self.kind == "text" and not isinstance(value, str):
            raise SpecError(name, f"found {quote(value)}; expected text, such as {self.metavar}.")
        return value


@cache
def fields_of(kind: type[msgspec.Struct]) -> Mapping[str, Field]:
    """Return the fields of a struct that tell of themselves, by name, in their order."""
    hints = get_type_hints(kind, include_extras=True)
    found = {}
    for name in kind.__struct_fields__:
        for part in getattr(hints[name], "__metadata__", ()):
            if isinstance(part, Field):
                found[name] = part
    return found


def quiet_values(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the default of each field of a struct, by name."""
    return dict(zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True))


def check_fields(struct: msgspec.Struct) -> None:
    """Check every field of a struct, and keep what it stands for.

    Raises:
        SpecError: a value is wrong; names the field.
    """
    kind = type(struct)
    quiet = quiet_values(kind)
    for name, field in fields_of(kind).items():
        value = getattr(struct, name)
        kept = field.check(name, value, quiet[name])
        if kept is not value:
            msgspec.structs.force_setattr(struct, name, kept)


def _names(name: str, value: Any) -> tuple[str, ...] | None:
    if value == "all":
        return None
    if isinstance(value, str):
        words = "" if value == "none" else value
        value = [part.strip() for part in words.split(",") if part.strip()]
    try:
        names = tuple(value)
    except TypeError:
        names = (None,)
    if not all(isinstance(one, str) for one in names):
        raise SpecError(name, f"found {quote(value)}; expected names, joined by commas.")
    return names


def _is_seed(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and value == int(value) and value >= 0
    except (TypeError, ValueError, OverflowError):
        return False


def plain(value: Any) -> Any:
    """Return a value as plain data; a function by its name."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if callable(value):
        return getattr(value, "__name__", "function")
    return value
