"""Kubernetes objects in a file: what ``kubectl get -o json`` prints, once or as it watches.

A file holds one object, a ``List`` of them, a list of a kind (``WorkloadList``), a JSON array, or
several of these one behind the other; with ``--output-watch-events`` each is wrapped in
``{"type": ..., "object": ...}``. An object that stands there more than once is a history of
versions; the last one counts, and the earlier ones tell what it has overwritten.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from windtunnel.errors import TraceError
from windtunnel.traces.source import plain_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from decimal import Decimal

    Shape = TypeVar("Shape")

_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}", re.ASCII)
_EVENTS = ("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})",
    re.ASCII,
)
#: Lists within lists that are followed; kubectl prints one.
_MAX_DEPTH = 4
#: What tells the kind of an object that does not say it (items of a list of one kind).
_MARKS = {"podSets": "Workload", "containers": "Pod", "minMember": "PodGroup", "template": "Job"}


class Owner(msgspec.Struct):
    """One of ``ownerReferences``."""

    kind: str | None = None
    name: str | None = None
    uid: str | None = None


class Meta(msgspec.Struct, rename="camel"):
    """What windtunnel reads of an object's metadata."""

    name: str
    namespace: str | None = None
    uid: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[Owner] | None = None

    @property
    def full_name(self) -> str:
        """``namespace/name``, or the name alone."""
        return self.name if not self.namespace else f"{self.namespace}/{self.name}"

    @property
    def owner(self) -> str | None:
        """Name of the first owner."""
        return next((owner.name for owner in self.owner_references or ()), None)

    @property
    def owner_uids(self) -> list[str]:
        """Uids of all owners."""
        return [owner.uid for owner in self.owner_references or () if owner.uid]


class Condition(msgspec.Struct, rename="camel"):
    """One of ``status.conditions``."""

    type: str
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


@dataclass(frozen=True)
class Place:
    """Where an object stands, for messages.

    Attributes:
        file: the source.
        number: which object of the file it is, from 1.
        line: 1-based line on which its JSON value begins; None where the file is one value.
    """

    file: str
    number: int
    line: int | None = None

    def error(
        self, expected: str, *, column: str | None = None, value: object = None
    ) -> TraceError:
        """Return the error for a field of this object."""
        return TraceError(
            self.file,
            expected,
            row=self.line,
            column=column,
            value=value,
            hint=f"It is in object {self.number:,} of the file.",
        )

    def shaped(self, body: Any, shape: type[Shape], what: str) -> Shape:
        """Return an object as a `msgspec.Struct`.

        Raises:
            TraceError: a field is missing or of another type; names its path.
        """
        try:
            return msgspec.convert(body, shape)
        except msgspec.ValidationError as error:
            raise TraceError(
                self.file,
                f"a Kubernetes object of kind {what}",
                row=self.line,
                hint=f"{plain_message(error)}, in object {self.number:,} of the file.",
            ) from error

    def amounts(self, read: Callable[[], dict[str, Decimal]], column: str) -> dict[str, Decimal]:
        """Return amounts of resources.

        Args:
            read: gives them; raises ValueError where a quantity is none.
            column: the field in which they stand.

        Raises:
            TraceError: a quantity is none.
        """
        try:
            return read()
        except ValueError as error:
            what = "quantities such as 8, 500m, 1.5Gi"
            raise self.error(what, column=column, value=str(error)) from error

    def instant(self, text: str | None, column: str) -> float | None:
        """Return a time as UTC seconds since 1970, None where there is none.

        Raises:
            TraceError: it is no time as Kubernetes writes them.
        """
        if text is None:
            return None
        moment = None
        if _TIME.fullmatch(text) is not None:
            with contextlib.suppress(ValueError, OverflowError):
                # Up to nine digits of a second may stand there; Python reads six.
                short = re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", text)
                moment = datetime.fromisoformat(short).timestamp()
        if moment is None:
            raise self.error("a time as YYYY-MM-DDTHH:MM:SSZ", column=column, value=text)
        return moment


@dataclass(frozen=True)
class Version:
    """One state of an object.

    Attributes:
        place: where it stands.
        body: the object.
        deleted: the watch says that it was deleted in this state.
    """

    place: Place
    body: dict[str, Any]
    deleted: bool = False


@dataclass
class Objects:
    """The objects of a file.

    Attributes:
        histories: kind -> the versions of each object, in the order of the file.
        records: objects of the file, versions counted each.
        dropped: reason -> objects that are none of the kinds asked for, or earlier versions.
    """

    histories: dict[str, list[list[Version]]]
    records: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, reason: str, count: int = 1) -> None:
        """Count objects that do not become rows."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count


def sort_objects(values: list[tuple[int, Any]], file: str, kinds: tuple[str, ...]) -> Objects:
    """Return the objects of a file, versions of the same one together.

    Args:
        values: the JSON values of the file, each with its line.
        kinds: the kinds that are read; others are counted.

    Raises:
        TraceError: a value is no object, or there is none of these kinds.
    """
    found = Objects({kind: [] for kind in kinds})
    known: dict[tuple[str, str], list[Version]] = {}
    for line, value in values:
        for body, kind, deleted in _unwrapped(value, file, line, "", deleted=False):
            found.records += 1
            place = Place(file, found.records, line if len(values) > 1 else None)
            if kind not in kinds:
                found.drop(f"object of kind {kind}" if _KIND.fullmatch(kind) else "nameless kind")
                continue
            version = Version(place, body, deleted)
            identity = _identity(body, place)
            if (kind, identity) not in known:
                known[kind, identity] = []
                found.histories[kind].append(known[kind, identity])
            known[kind, identity].append(version)
    if not known:
        others = ", ".join(f"{count:,} x {reason}" for reason, count in found.dropped.items())
        raise TraceError(
            file,
            f"at least one Kubernetes object of kind {', '.join(kinds)}",
            hint=f"It holds: {others[:500] or 'none'}. Write it with: kubectl get workloads -A "
            "-o json",
        )
    earlier = sum(len(history) - 1 for all_of in found.histories.values() for history in all_of)
    found.drop("earlier version of the same object", earlier)
    return found


def _unwrapped(
    value: Any, file: str, line: int, kind: str, *, deleted: bool, depth: int = 0
) -> Iterator[tuple[dict[str, Any], str, bool]]:
    """Yield the objects of a value with their kinds, and whether they are gone.

    Args:
        value: an object, an event, or a list of objects.
        line: where the value begins.
        kind: the kind of objects that do not say theirs; empty = it must show.
    """
    items = value if isinstance(value, list) else None
    if isinstance(value, dict):
        event, inner = value.get("type"), value.get("object")
        if event in _EVENTS and isinstance(inner, dict):
            if event == "BOOKMARK":  # an object with nothing but a version number in it
                yield inner, "Bookmark", False
                return
            value, kind, deleted = inner, "", event == "DELETED"
        own = value.get("kind")
        own = own if isinstance(own, str) else ""
        if not isinstance(value.get("items"), list) or "spec" in value:
            yield value, own or kind or _guess(value), deleted
            return
        items, kind = value["items"], own.removesuffix("List")
    if items is None or depth > _MAX_DEPTH:
        raise TraceError(
            file, "Kubernetes objects as kubectl -o json prints them", row=line, value=value
        )
    for item in items:
        yield from _unwrapped(item, file, line, kind, deleted=deleted, depth=depth + 1)


def _guess(value: dict[str, Any]) -> str:
    spec = value.get("spec")
    if not isinstance(spec, dict):
        return ""
    return next((kind for mark, kind in _MARKS.items() if mark in spec), "")


class _Identified(msgspec.Struct):
    metadata: Meta


def _identity(body: dict[str, Any], place: Place) -> str:
    """Return what tells an object from others of its kind."""
    meta = place.shaped(body, _Identified, str(body.get("kind") or "any")[:63]).metadata
    return meta.uid or meta.full_name
