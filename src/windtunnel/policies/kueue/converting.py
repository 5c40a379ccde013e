"""Plain data of a manifest as a struct; what is wrong is named by file, document and path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.errors import SpecError, nearest, quote
from windtunnel.policies.kueue.manifest_kinds import Written

if TYPE_CHECKING:
    from windtunnel.policies.kueue.yaml_files import Document


def converted(given: Any, kind: type[Any], document: Document, path: str) -> Any:
    """Return plain data as a struct; a wrong field is named by file, document and path."""
    try:
        return msgspec.convert(given, kind, strict=True)
    except msgspec.ValidationError as error:
        text = str(error)
        message, _, at = text.partition(" - at `")
        at = at.rstrip("`").removeprefix("$")
        raise SpecError(
            f"{document.where} ({named(document)}), {path}{at}",
            f"{message}.{_suggested(message, kind)}",
        ) from None


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
