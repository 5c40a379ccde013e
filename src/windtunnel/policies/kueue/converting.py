"""Plain data of a manifest as a struct; what is wrong is named by file, document and path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from windtunnel.errors import SpecError, nearest, quote
from windtunnel.policies.kueue.manifest_kinds import Written
from windtunnel.policies.kueue.objects import Taint, Toleration

if TYPE_CHECKING:
    from windtunnel.policies.kueue.yaml_files import Document


def converted(given: Any, kind: type[Any], document: Document, path: str) -> Any:
    """Return plain data as a struct; a wrong field is named by file, document and path.

    A field that is null is left out, as Kubernetes does.
    """
    try:
        return msgspec.convert(_without_nulls(given), kind, strict=True)
    except msgspec.ValidationError as error:
        text = str(error)
        message, _, at = text.partition(" - at `")
        if message.startswith("Invalid enum"):
            message = "Invalid enum value"
        if at.startswith("key"):
            message, at = "Expected a word for a field's name", ""
        at = at.rstrip("`").removeprefix("$")
        raise SpecError(
            f"{document.where} ({named(document)}), {path}{at}",
            f"{message}{_found(given, at)}{_expected(message, at)}.{_suggested(message, kind)}",
        ) from None


def _found(given: Any, path: str) -> str:
    """Return what stands at a path, for a message, if it is one number or word."""
    for field, index in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", path):
        try:
            given = given[field or int(index)]
        except (KeyError, IndexError, TypeError, ValueError):  # [...] is some field's value
            return ""
    plain = isinstance(given, (str, int, float)) and path
    return f", found {quote(given)}" if plain else ""


def _expected(message: str, path: str) -> str:
    """Return the words that a field may be, where it is another."""
    if "enum" not in message:
        return ""
    name = path.rpartition(".")[2]
    structs: tuple[type[msgspec.Struct], ...] = (Taint, Toleration, *Written.__subclasses__())
    types = [of.type for s in structs for of in msgspec.structs.fields(s) if of.encode_name == name]
    words = {word for kind in types for of in (kind, *get_args(kind)) for word in get_args(of)}
    listed = ", ".join(sorted(word for word in words if isinstance(word, str) and word))
    return f"; expected one of {listed}"


def _without_nulls(given: Any) -> Any:
    """Return plain data without the fields that are null."""
    if isinstance(given, dict):
        return {key: _without_nulls(of) for key, of in given.items() if of is not None}
    return [_without_nulls(of) for of in given] if isinstance(given, list) else given


def named(document: Document) -> str:
    """Return an object's kind and name."""
    meta = document.data.get("metadata")
    name = meta.get("name", "") if isinstance(meta, dict) else ""
    return f"{document.data['kind']} {quote(str(name))}"


def _suggested(message: str, kind: type[Any]) -> str:
    """Return the nearest field that there is, if a field is not known."""
    if "unknown field" not in message:
        return ""
    field = message.rpartition("field `")[2].rstrip("`")
    structs = (kind, *Written.__subclasses__())
    own, *others = ([of.encode_name for of in msgspec.structs.fields(s)] for s in structs)
    known = {name for names in others for name in names if name != field}
    return nearest(field, own) or nearest(field, known)
