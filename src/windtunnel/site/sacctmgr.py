"""Read what sacctmgr says of QOS and associations.

Three forms: ``sacctmgr -P show qos`` and ``show assoc`` (a table with ``|``), ``sacctmgr dump``
(``Parent - 'root'`` and what follows), and files of sacctmgr's own commands (``add account ...``).
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.errors import TraceError
from windtunnel.site.slurm import SlurmAssociation, SlurmBounds, SlurmQos
from windtunnel.site.slurm_words import (
    checked,
    duration,
    factor,
    number,
    text_of,
    tres,
    whole,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Tables = tuple[tuple[SlurmQos, ...], tuple[SlurmAssociation, ...]]

#: sacctmgr's names (lower case) of limits -> our field, and how to read it.
_QOS_BOUNDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "grptres": ("group", tres),
    "grptresmins": ("group_minutes", tres),
    "grptresrunmins": ("group_run_minutes", tres),
    "grpjobs": ("group_jobs", number),
    "grpsubmit": ("group_submit", number),
    "grpsubmitjobs": ("group_submit", number),
    "maxtres": ("job", tres),
    "maxtresperjob": ("job", tres),
    "maxtrespj": ("job", tres),
    "maxwall": ("wall", duration),
    "maxwalldurationperjob": ("wall", duration),
    "maxtrespu": ("user", tres),
    "maxtresperuser": ("user", tres),
    "maxjobspu": ("user_jobs", number),
    "maxjobsperuser": ("user_jobs", number),
    "maxsubmitpu": ("user_submit", number),
    "maxsubmitjobspu": ("user_submit", number),
    "maxsubmitjobsperuser": ("user_submit", number),
    "maxtrespa": ("account", tres),
    "maxtresperaccount": ("account", tres),
    "maxjobspa": ("account_jobs", number),
    "maxjobsperaccount": ("account_jobs", number),
    "maxsubmitpa": ("account_submit", number),
    "maxsubmitjobspa": ("account_submit", number),
}
_BOUNDS = _QOS_BOUNDS | {
    "maxjobs": ("jobs", number),
    "maxsubmit": ("submit", number),
    "maxsubmitjobs": ("submit", number),
}


def read_sacctmgr(*files: str | Path) -> Tables:
    """Return the QOS and the associations that files tell, in their order.

    Raises:
        TraceError: a file is missing, or none of the three forms.
    """
    qos: dict[str, SlurmQos] = {}
    found: dict[tuple[str, str, str], SlurmAssociation] = {}
    for file in files:
        text = text_of(Path(file))
        first = text.lstrip().partition("\n")[0]
        if "|" in first:
            _read_table(str(file), text, qos, found)
        elif re.search(r"^\s*(Cluster|Parent|Account|User) - ", text, re.MULTILINE):
            _read_dump(str(file), text, found)
        else:
            _read_commands(str(file), text, qos, found)
        _refuse_circles(str(file), found)
    qos.setdefault("normal", SlurmQos("normal"))
    return tuple(qos.values()), tuple(found.values())


def _refuse_circles(file: str, found: dict[tuple[str, str, str], SlurmAssociation]) -> None:
    """Check that every account's way up ends.

    Raises:
        TraceError: an account is above itself.
    """
    above = {one.account: one.parent for one in found.values() if not one.user}
    ends: set[str] = set()
    for name, parent in above.items():
        way, at = dict.fromkeys([name]), parent
        while at in above and at not in ends and at not in way:
            way[at] = None
            at = above[at]
        if at in way:
            raise TraceError(file, f"accounts without a circle; {at!r} is above itself")
        ends |= way.keys()


def _bounds(file: str, row: int, said: dict[str, str], old: SlurmBounds) -> SlurmBounds:
    values: dict[str, Any] = {}
    for key, text in said.items():
        if key not in _BOUNDS:
            continue
        field, read = _BOUNDS[key]
        try:
            value = checked(read(text))
        except (ValueError, OverflowError) as error:
            raise TraceError(
                file, "a limit as sacctmgr prints it", row=row, column=key, value=text
            ) from error
        before = getattr(old, field)
        values[field] = {**before, **value} if isinstance(value, dict) and text else value
    return msgspec.structs.replace(old, **values)


def _value(  # noqa: PLR0917 - a line, and how to read it
    file: str, row: int, said: dict[str, str], key: str, old: Any, read: Callable[[str], Any]
) -> Any:
    """Return what a line says under a key, or what was known before.

    Raises:
        TraceError: it is not understood.
    """
    text = said.get(key, "")
    if not text:
        return old
    try:
        return read(text)
    except (ValueError, OverflowError) as error:
        raise TraceError(file, "a number", row=row, column=key, value=text) from error


def _read_table(
    file: str,
    text: str,
    qos: dict[str, SlurmQos],
    found: dict[tuple[str, str, str], SlurmAssociation],
) -> None:
    """Read the output of ``show qos`` or ``show assoc``."""
    lines = text.strip().splitlines()
    names = [name.strip().lower().replace(" ", "") for name in lines[0].split("|")]
    for row, line in enumerate(lines[1:], 2):
        said = dict(zip(names, line.split("|"), strict=False))
        if "account" in names:
            top = "" if said["account"] == "root" else "root"
            parent = said["account"] if said.get("user") else said.get("parentname") or top
            _set_association(file, row, found, said, parent)
        elif "name" in names:
            _set_qos(file, row, qos, said["name"], said)
        else:
            raise TraceError.missing_column(file, "Name", names)


def _set_qos(
    file: str, row: int, qos: dict[str, SlurmQos], name: str, said: dict[str, str]
) -> None:
    old = qos.get(name, SlurmQos(name))
    mode = said.get("preemptmode", old.preempt_mode).upper()
    qos[name] = msgspec.structs.replace(
        old,
        priority=_value(file, row, said, "priority", old.priority, whole),
        preempts=words(said["preempt"]) if "preempt" in said else old.preempts,
        preempt_mode="" if mode == "CLUSTER" else mode,
        grace=_value(file, row, said, "gracetime", old.grace, _seconds),
        exempt=_value(file, row, said, "preemptexempttime", old.exempt, duration),
        usage_factor=_value(file, row, said, "usagefactor", old.usage_factor, factor),
        flags=words(said["flags"]) if "flags" in said else old.flags,
        bounds=_bounds(file, row, said, old.bounds),
    )


def _set_association(
    file: str,
    row: int,
    found: dict[tuple[str, str, str], SlurmAssociation],
    said: dict[str, str],
    parent: str,
) -> None:
    key = (said["account"], said.get("user", ""), said.get("partition", ""))
    old = found.get(key, SlurmAssociation(key[0], key[1], key[2], parent))
    share = next((name for name in ("share", "fairshare", "shares") if name in said), "share")
    qos = said.get("qos", said.get("qoslevel"))
    found[key] = msgspec.structs.replace(
        old,
        shares=_value(file, row, said, share, old.shares, _shares),
        priority=_value(file, row, said, "priority", old.priority, whole),
        qos=old.qos if qos is None else tuple(name for name in qos.split(",") if name),
        default_qos=said.get("defqos", said.get("defaultqos", old.default_qos)),
        bounds=_bounds(file, row, said, old.bounds),
    )


def _seconds(text: str) -> int:
    return duration(text, unit=1) or 0


def _shares(text: str) -> int:
    return -1 if text == "parent" else whole(text)


def _read_dump(file: str, text: str, found: dict[tuple[str, str, str], SlurmAssociation]) -> None:
    """Read the output of ``sacctmgr dump CLUSTER``."""
    parent = "root"
    for row, line in enumerate(text.splitlines(), 1):
        item = re.match(r"\s*(Cluster|Parent|Account|User) - '?([^':]*)'?(.*)", line)
        if item is None:
            continue
        kind, name, rest = item.groups()
        if kind == "Parent":
            parent = name
            continue
        said = {
            key.lower(): value.strip("'")
            for key, value in re.findall(r":(\w+)=('[^']*'|[^:]*)", rest)
        }
        if kind == "Cluster":
            said["account"] = "root"
        elif kind == "Account":
            said["account"] = name
        else:
            said |= {"account": parent, "user": name}
        above = "" if kind == "Cluster" else parent
        _set_association(file, row, found, said, above)


def _read_commands(
    file: str,
    text: str,
    qos: dict[str, SlurmQos],
    found: dict[tuple[str, str, str], SlurmAssociation],
) -> None:
    """Read sacctmgr's own commands: add and modify accounts, users and QOS."""
    found.setdefault(("root", "", ""), SlurmAssociation("root"))
    found.setdefault(("root", "root", ""), SlurmAssociation("root", "root", "", "root"))
    for row, line in enumerate(text.splitlines(), 1):
        try:
            parts = shlex.split(line.partition("#")[0])
        except ValueError as error:
            raise TraceError(file, "quotes in pairs", row=row, value=line) from error
        if len(parts) < 3:  # noqa: PLR2004 - verb, what, name
            continue
        verb, what = parts[0].lower(), parts[1].lower()
        if verb in ("add", "create"):
            _add(file, row, parts[2], what, _said(parts[3:]), qos, found)
        elif verb == "modify":
            _modify(file, row, parts[2:], what, qos, found)
        else:
            raise TraceError(file, "add or modify", row=row, value=line)


def _said(parts: Iterable[str]) -> dict[str, str]:
    pairs = (part.partition("=") for part in parts)
    return {key.lower().rstrip("+-"): value for key, equals, value in pairs if equals}


def _add(  # noqa: PLR0917 - a line and the two tables it goes into
    file: str,
    row: int,
    names: str,
    what: str,
    said: dict[str, str],
    qos: dict[str, SlurmQos],
    found: dict[tuple[str, str, str], SlurmAssociation],
) -> None:
    for name in names.partition("=")[2].split(",") if "=" in names else names.split(","):
        if what.startswith("qos"):
            _set_qos(file, row, qos, name, said)
        elif what.startswith("account"):
            _set_association(file, row, found, said | {"account": name}, said.get("parent", "root"))
        elif what.startswith("user"):
            for account in said.get("account", said.get("accounts", "")).split(","):
                rest = said | {"account": account, "user": name}
                _set_association(file, row, found, rest, account)


def _modify(  # noqa: PLR0917 - ditto
    file: str,
    row: int,
    parts: list[str],
    what: str,
    qos: dict[str, SlurmQos],
    found: dict[tuple[str, str, str], SlurmAssociation],
) -> None:
    """Carry out ``modify WHAT where name=A,B [account=..] set KEY=VALUE ...``."""
    lower = [part.lower() for part in parts]
    if "set" not in lower:
        raise TraceError(file, "modify ... set KEY=VALUE", row=row, value=" ".join(parts))
    at = lower.index("set")
    where = _said(part for part in parts[:at] if part.lower() != "where")
    bare = [part for part in parts[:at] if "=" not in part and part.lower() != "where"]
    said = _said(parts[at + 1 :])
    for name in (where.get("name") or where.get("names") or (bare or [""])[0]).split(","):
        if what.startswith("qos"):
            _set_qos(file, row, qos, name, said)
            continue
        for account, user, partition in list(found):
            is_meant = (
                user == name and where.get("account", account) == account
                if what.startswith("user")
                else account == name and not user
            )
            if is_meant:
                key = {"account": account, "user": user, "partition": partition}
                _set_association(file, row, found, said | key, "")
