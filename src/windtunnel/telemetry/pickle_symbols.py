"""Pickles read as what they say, not as what they do: nothing that one names is ever called.

A pickle is a program. This reads its opcodes and builds plain values (numbers, text, bytes, lists,
tuples, dictionaries); a name becomes a `Name`, a call a `Call`: symbols that the caller may look
at. A name that is not on the caller's list, and every opcode that would need a living object, ends
the reading. Format: the Python standard library's ``pickletools``.
"""

from __future__ import annotations

import pickletools
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windtunnel.errors import TraceError, quote

if TYPE_CHECKING:
    from collections.abc import Callable

_MARK: Any = object()
#: Opcodes that push their own argument.
_VALUES = frozenset(
    (
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
        *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES"),
        *("SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "STRING", "BINSTRING", "SHORT_BINSTRING"),
    )
)
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Callable[[], Any]] = {
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
}
_PUTS = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
_GETS = frozenset(("GET", "BINGET", "LONG_BINGET"))
_NOTHING = frozenset(("PROTO", "FRAME"))
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
#: A list of a thousand arrays takes a sixth of these; what takes more is made to take time.
MAX_STEPS = 200_000


@dataclass(frozen=True)
class Name:
    """A global that a pickle names, such as ``numpy.ndarray``."""

    path: str


@dataclass(eq=False)
class Call:
    """A call that a pickle asks for, and the state that it sets on the result.

    Attributes:
        of: what is called.
        arguments: with what.
        state: what ``BUILD`` gave, None = nothing.
    """

    of: Name
    arguments: tuple[Any, ...]
    state: Any = field(default=None, repr=False)


def symbols(data: bytes, file: str, allowed: frozenset[str]) -> Any:
    """Return what a pickle says.

    Args:
        allowed: names that may stand in it, ``module.name``.

    Raises:
        TraceError: it is no whole pickle, names anything else, or does what no table needs.
    """
    return _Reading(file, allowed).run(data)


class _Reading:
    """The stack of one reading."""

    def __init__(self, file: str, allowed: frozenset[str]) -> None:
        self._file = file
        self._allowed = allowed
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self, data: bytes) -> Any:
        try:
            with warnings.catch_warnings():
                # An escape that Python's own texts do not have: nobody's pickle.
                warnings.simplefilter("error", DeprecationWarning)
                for step, (opcode, argument, _) in enumerate(pickletools.genops(data)):
                    if step == MAX_STEPS:
                        raise self._refused(
                            f"a pickle of at most {MAX_STEPS:,} steps", "Arrays need far fewer."
                        )
                    if opcode.name == "STOP":
                        return self._stack.pop()
                    self._take(opcode.name, argument)
        except (
            DeprecationWarning,
            IndexError,
            KeyError,
            TypeError,
            ValueError,
            AttributeError,
        ) as error:
            raise self._refused("a whole pickle", "It is cut, damaged or made up.") from error
        raise self._refused("a whole pickle", "It has no end: it is cut.")

    def _take(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in _PUTS:
            self._memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in _GETS:
            stack.append(self._memo[argument])
        elif name in _TUPLES:
            self._short_tuple(_TUPLES[name])
        elif name not in _NOTHING:
            step = getattr(self, f"_{name.lower()}", None)
            if step is None:
                raise self._refused(
                    "a pickle of numbers alone", f"It uses the opcode {name}, which they do not."
                )
            step(argument)

    def _mark(self, _: Any) -> None:
        self._stack.append(_MARK)

    def _above_mark(self) -> list[Any]:
        place = len(self._stack) - 1
        while self._stack[place] is not _MARK:
            place -= 1
            if place < 0:
                raise IndexError
        items = self._stack[place + 1 :]
        del self._stack[place:]
        return items

    def _pop(self, _: Any) -> None:
        self._stack.pop()

    def _append(self, _: Any) -> None:
        item = self._stack.pop()
        self._top(list).append(item)

    def _appends(self, _: Any) -> None:
        items = self._above_mark()
        self._top(list).extend(items)

    def _list(self, _: Any) -> None:
        self._stack.append(self._above_mark())

    def _tuple(self, _: Any) -> None:
        self._stack.append(tuple(self._above_mark()))

    def _short_tuple(self, size: int) -> None:
        if len(self._stack) < size:
            raise IndexError
        items = tuple(self._stack[-size:])
        del self._stack[-size:]
        self._stack.append(items)

    def _dict(self, _: Any) -> None:
        items = self._above_mark()
        self._stack.append({})
        self._set(items)

    def _setitem(self, _: Any) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._set([key, value])

    def _setitems(self, _: Any) -> None:
        self._set(self._above_mark())

    def _set(self, items: list[Any]) -> None:
        target = self._top(dict)
        for key, value in zip(items[::2], items[1::2], strict=True):
            # Keys of nested tuples could take for ever to hash; tables have text.
            if not isinstance(key, str):
                raise self._refused("dictionaries with text as keys", "")
            target[key] = value

    def _global(self, argument: Any) -> None:
        module, _, name = argument.partition(" ")
        self._stack.append(self._named(module, name))

    def _stack_global(self, _: Any) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        if not (isinstance(module, str) and isinstance(name, str)):
            raise TypeError
        self._stack.append(self._named(module, name))

    def _named(self, module: str, name: str) -> Name:
        path = f"{module}.{name}"
        if path not in self._allowed:
            raise self._refused(
                "a pickle of numbers alone",
                f"It names {quote(path)}, which is nothing that numbers need: it was not run, "
                "and should not be.",
            )
        return Name(path)

    def _reduce(self, _: Any) -> None:
        arguments, of = self._stack.pop(), self._stack.pop()
        if not (isinstance(of, Name) and isinstance(arguments, tuple)):
            raise TypeError
        self._stack.append(Call(of, arguments))

    _newobj = _reduce

    def _build(self, _: Any) -> None:
        state = self._stack.pop()
        target = self._top(Call)
        if target.state is not None:
            raise TypeError
        target.state = state

    def _top(self, kind: type) -> Any:
        top = self._stack[-1]
        if not isinstance(top, kind):
            raise TypeError
        return top

    def _refused(self, expected: str, hint: str) -> TraceError:
        return TraceError(self._file, expected, hint=hint)
