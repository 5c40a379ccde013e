"""Plug-ins: how whatever has a name is found, one way for every kind of it.

Policies, placements, predictors, readers, writers, throughput models, sites and metrics are each a
`Catalogue`. What a user names is, in this order,

1. built in (`modules_of`, `declared_in`), or registered under the name in this process
   (``@wt.policy("ssf")``);
2. installed: a package has it in the entry-point group ``windtunnel.policies`` (``.placements``,
   ``.predictors``, ``.readers``, ``.writers``, ``.throughputs``, ``.sites``, ``.metrics``);
3. ``package.module:name``, imported; the working folder counts, as with ``python -m``.

Parameters follow, where it takes any: ``las:quantum=30``, ``mine.policies:Ageing:every=60``. An
object is taken as it is wherever a name is. A built-in name always means what is built in.

Importing a module runs its code. So what a *file* names, which may come from a stranger, is not
imported unless its reader says so: see `names_of_file`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import pkgutil
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from windtunnel.errors import SpecError, WindtunnelError, nearest, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from importlib.metadata import EntryPoint
    from types import ModuleType

T = TypeVar("T")
Given = TypeVar("Given")

#: The file whose names are being looked up, where it may name no code; empty = anything may.
_distrusted: ContextVar[str] = ContextVar("_distrusted", default="")
#: Every catalogue there is, for `registrations_forgotten`.
_CATALOGUES: list[Catalogue[Any]] = []


class UntrustedNameError(SpecError):
    """A file names code to run, and its reader has not said that it is trusted."""


class Catalogue(Mapping[str, T], Generic[T]):
    """What there is of one kind, by name.

    As a mapping it has what is built in, registered and installed; an installed one is imported
    when it is asked for. Letters of a name may be large or small.

    Args:
        kind: what one of them is called in messages: ``policy``.
        plural: the rest of its entry-point group: ``policies``.
        built_in: name -> what it stands for; or what returns this, called when it is needed first.
        made: turns what a module or a user gives (name, object) into one of the kind, and raises a
            `WindtunnelError` if it is none.
        aliases: other names of what is built in.

    Attributes:
        kind, aliases: as given.
        group: the entry-point group.
    """

    def __init__(
        self,
        kind: str,
        plural: str,
        built_in: Mapping[str, T] | Callable[[], Mapping[str, T]],
        *,
        made: Callable[[str, Any], T],
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.kind, self.group = kind, f"windtunnel.{plural}"
        self.aliases = dict(aliases or {})
        self._given, self._made = built_in, made
        self._registered: dict[str, T] = {}
        self._loaded: dict[str, T] = {}
        _CATALOGUES.append(self)

    @cached_property
    def _built_in(self) -> Mapping[str, T]:
        return self._given() if callable(self._given) else self._given

    def register(self, name: str, given: Any) -> T:
        """Let a name stand for something in this process; a second time replaces the first.

        Raises:
            SpecError: the name is built in, or could not be typed (empty, or with ``:`` or ``=``).
            WindtunnelError: what is given is none of the kind.
        """
        self.check_name(name)
        self._registered[name] = self._made(name, given)
        return self._registered[name]

    def under(self, name: str) -> Callable[[Given], Given]:
        """Return what registers the decorated object under a name.

        Raises:
            SpecError: as `register`, of the name at once.
        """
        self.check_name(name)

        def register(given: Given) -> Given:
            self.register(name, given)
            return given

        return register

    def check_name(self, name: str) -> None:
        """Check that a name can be registered.

        Raises:
            SpecError: as `register`.
        """
        if self._spelt(name, self._built_in) or name.lower() in self.aliases:
            taken = f"{quote(name)} is a built-in {self.kind}; choose another name"
            raise SpecError(self.kind, taken)
        if not name or any(mark in name for mark in ":=, "):
            marks = "expected one without ':', '=', ',' and spaces"
            raise SpecError(self.kind, f"found the name {quote(name)}; {marks}.")

    @property
    def registered(self) -> Mapping[str, T]:
        """What was registered in this process."""
        return self._registered

    def resolve(self, given: Any, name: str = "") -> T:
        """Return what an argument stands for: a name without parameters, or an object.

        Raises:
            SpecError: no such name, module or attribute; the nearest name is suggested.
            WindtunnelError: what is given is none of the kind.
        """
        if not isinstance(given, str):
            return self._made(name, given)
        known = self.spelt(given)
        if known is not None:
            return self[known]
        if ":" in given:
            return self._made(given, imported(given, self.kind, self))
        raise SpecError.unknown(self.kind, given, [*self, *self.aliases])

    def split(self, text: str) -> tuple[str, list[str]]:
        """Return the name in a text, as `resolve` takes it, and the words behind it.

        Raises:
            SpecError: it begins with no known name, nor with ``package.module:name``.

        >>> from windtunnel.policies.catalogue import POLICIES
        >>> POLICIES.split("LAS:quantum=30"), POLICIES.split("mine.policies:Ageing:every=60")
        (('las', ['quantum=30']), ('mine.policies:Ageing', ['every=60']))
        """
        words = [word.strip() for word in text.split(":")]
        for count in range(len(words), 0, -1):  # a name may have a colon: morphling:plans
            known = self.spelt(":".join(words[:count]))
            if known is not None:
                return known, words[count:]
        if len(words) > 1 and "=" not in words[1]:
            return f"{words[0]}:{words[1]}", words[2:]
        raise SpecError.unknown(self.kind, words[0], [*self, *self.aliases])

    def spelt(self, name: str) -> str | None:
        """Return a known name as the catalogue spells it; None = it has none such."""
        name = self.aliases.get(name.lower(), name)
        for names in (self._built_in, self._registered, self._loaded):
            found = self._spelt(name, names)
            if found is not None:
                return found
        return self._spelt(name, _installed(self.group))

    @staticmethod
    def _spelt(name: str, names: Collection[str]) -> str | None:
        """Return a name as it is spelt among some; exactly so where two differ by case alone."""
        if name in names:
            return name
        return next((known for known in names if known.lower() == name.lower()), None)

    def __getitem__(self, name: str) -> T:
        for names in (self._built_in, self._registered, self._loaded):
            if name in names:
                return names[name]
        points = _installed(self.group)[name]
        self._loaded[name] = self._made(name, _loaded(self.kind, name, points))
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        known = (self._built_in, self._registered, self._loaded)
        return any(name in names for names in known) or name in _installed(self.group)

    def __iter__(self) -> Iterator[str]:
        installed = _installed(self.group)
        return iter(dict.fromkeys([*self._built_in, *self._registered, *installed]))

    def __len__(self) -> int:
        return len(list(iter(self)))


def modules_of(package: str) -> list[ModuleType]:
    """Import the modules of one of windtunnel's packages, in the order of their names.

    So a new module is found without being named anywhere. Packages within it are looked at as
    modules: what they have to show stands in their ``__init__``.
    """
    paths = importlib.import_module(package).__path__
    return [importlib.import_module(m.name) for m in pkgutil.iter_modules(paths, f"{package}.")]


def declared_in(package: str, kind: type[T]) -> dict[str, type[T]]:
    """Return the classes of a kind that the modules of a package have, by name, in its order.

    A class declares itself by a ``name`` of its own, not inherited; one that cannot be made
    without arguments is nothing that a name alone could stand for, and is left out.
    """
    found = {
        vars(given)["name"]: given
        for module in modules_of(package)
        for given in vars(module).values()
        if isinstance(given, type)
        and issubclass(given, kind)
        and vars(given).get("name")
        and _needs_nothing(given)
    }
    return dict(sorted(found.items()))


def _needs_nothing(kind: type[Any]) -> bool:
    """Return whether a class can be made without arguments."""
    try:
        inspect.signature(kind).bind()
    except TypeError:
        return False
    return True


def parameters(
    words: Sequence[str],
    known: Sequence[str],
    *,
    where: str,
    first: str = "",
    nested: Collection[str] = (),
) -> dict[str, str]:
    """Return the parameters that words behind a name give, as texts.

    Args:
        words: ``quantum=30`` ...
        known: what may be given.
        where: what they are of, for messages.
        first: what the first word gives if it has no name; empty = it must have one.
        nested: those whose value has parameters of its own: words that give none of ``known``
            belong to it.

    Raises:
        SpecError: an unknown or repeated name, or a word without one.

    >>> parameters(["by=rolling", "last=20"], ["by"], where="policy sjf", nested=["by"])
    {'by': 'rolling:last=20'}
    """
    given: dict[str, str] = {}
    last = ""
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if equals and name in known:
            if name in given:
                raise SpecError(where, f"found {quote(name)} twice; give it once.")
            given[name], last = value, name
        elif last in nested:
            given[last] += f":{word}"
        elif first and place == 0 and not equals:
            given[first], last = word, first
        elif not equals:
            expected = f"{name}=VALUE" if name in known else "NAME=VALUE behind the colon"
            raise SpecError(where, f"found {quote(word)}; expected {expected}.")
        else:
            raise SpecError.unknown(where, name, known or ["(it takes none)"])
    return given


def takes_others(function: Callable[..., Any], *arguments: str) -> str:
    """Return the parameters of a function that cannot be called with these; empty = it can.

    >>> takes_others(lambda now, queue: None, "now", "queue", "cluster")
    '(now, queue)'
    """
    try:
        taken = inspect.signature(function)
    except (TypeError, ValueError):  # of a compiled one, say
        return ""
    try:
        taken.bind(*arguments)
    except TypeError:
        return str(taken)
    return ""


def parameter_value(text: str) -> Any:
    """Return what a parameter's text stands for: a number, or itself.

    >>> parameter_value("20"), parameter_value("1e-3"), parameter_value("median")
    (20, 0.001, 'median')
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def imported(path: str, kind: str, known: Collection[str] = ()) -> Any:
    """Import ``package.module:name``.

    Args:
        path: what to import.
        kind: what it is to be, for messages.
        known: names that it may be a slip of.

    Raises:
        UntrustedNameError: a file that may name no code names it (`names_of_file`).
        SpecError: there is no such module or name in it, or the module cannot be imported.
    """
    module_name, _, attribute = path.partition(":")
    source = _distrusted.get()
    if source:
        raise UntrustedNameError(
            f"{source}: {kind}",
            f"{quote(path)} names code to run; a file may do so if you trust it: then give --trust "
            f"(trust=True).{nearest(module_name, known)}",
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    expected = f"expected a known name or package.module:name.{nearest(module_name, known)}"
    if module_name.startswith("."):
        raise SpecError(kind, f"cannot import {quote(path)}; {expected}")
    try:
        found = importlib.import_module(module_name)
    except WindtunnelError:
        raise
    except (Exception, SystemExit) as error:  # whatever the user's module raises
        what = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise SpecError(kind, f"cannot import {quote(path)}: {what}{error}; {expected}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = [name for name in vars(found) if not name.startswith("_")]
            raise SpecError.unknown(f"{kind} {module_name}", attribute, names)
        found = getattr(found, part)
    return found


@contextmanager
def names_of_file(source: str | Path, *, trust: bool) -> Iterator[None]:
    """Look up what a file names: within this context nothing is imported that it could name.

    Args:
        source: the file, for messages.
        trust: the user trusts the file: it may name code.
    """
    token = _distrusted.set("" if trust else str(source))
    try:
        yield
    finally:
        _distrusted.reset(token)


@contextmanager
def registrations_forgotten() -> Iterator[None]:
    """Forget after this context what was registered or loaded within it, of every kind."""
    names = [n for c in _CATALOGUES for n in (c._registered, c._loaded)]  # noqa: SLF001 - of this module
    before = [dict(known) for known in names]
    try:
        yield
    finally:
        for known, kept in zip(names, before, strict=True):
            known.clear()
            known.update(kept)


def _installed(group: str) -> Mapping[str, list[EntryPoint]]:
    """Return what packages have installed in a group: name -> entry points."""
    return _read(group, importlib.metadata.entry_points)


@cache
def _read(group: str, source: Callable[..., Iterable[EntryPoint]]) -> dict[str, list[EntryPoint]]:
    """Return what a source of entry points has; every package is read, which takes 10 ms."""
    found: dict[str, list[EntryPoint]] = {}
    for point in source(group=group):
        points = found.setdefault(point.name, [])
        if all(point.value != other.value for other in points):
            points.append(point)
    return found


def _loaded(kind: str, name: str, points: Sequence[EntryPoint]) -> Any:
    """Import an installed plug-in.

    Raises:
        SpecError: two packages have one of the name, or it cannot be imported.
    """
    if len(points) > 1:
        values = " and ".join(point.value for point in points)
        raise SpecError(kind, f"{quote(name)} is installed twice; say which: {values}.")
    try:
        return points[0].load()
    except WindtunnelError:
        raise
    except (Exception, SystemExit) as error:  # whatever the package's module raises
        package = getattr(points[0].dist, "name", "a package without a name")
        raise SpecError(
            f"{kind} {name}",
            f"the plug-in {quote(points[0].value)} of {package} cannot be loaded: "
            f"{type(error).__name__}: {error}.",
        ) from error
