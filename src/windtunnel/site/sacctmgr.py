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
_BOUNDS: dict[str, tuple[str, Callable[[str], Any]]] = {
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
    "maxjobs": ("jobs", number),
    "maxsubmit": ("submit", number),
    "maxsubmitjobs": ("submit", number),
}


def read_sacctmgr(*files: str | Path) -> Tables:
    """Return the QOS and the associations that files tell, in their order.

    Raises:
        TraceError: a file is missing, or none of the three forms.
    """
    reading = _Reading()
    for file in files:
        text = text_of(Path(file))
        reading.file = str(file)
        first = text.lstrip().partition("\n")[0]
        if "|" in first:
            reading.table(text)
        elif re.search(r"^\s*(Cluster|Parent|Account|User) - ", text, re.MULTILINE):
            reading.dump(text)
        else:
            reading.commands(text)
        reading.refuse_circles()
    reading.qos.setdefault("normal", SlurmQos("normal"))
    return tuple(reading.qos.values()), tuple(reading.found.values())


class _Reading:
    """What the lines read so far say, and where the reading stands.

    Attributes:
        qos: the QOS by name.
        found: the associations by account, user and partition.
        file: the file that is read.
        row: its line, from 1.
    """

    def __init__(self) -> None:
        self.qos: dict[str, SlurmQos] = {}
        self.found: dict[tuple[str, str, str], SlurmAssociation] = {}
        self.file = ""
        self.row = 0

    def table(self, text: str) -> None:
        """Read the output of ``show qos`` or ``show assoc``."""
        lines = text.strip().splitlines()
        names = [name.strip().lower().replace(" ", "") for name in lines[0].split("|")]
        for self.row, line in enumerate(lines[1:], 2):
            fields = dict(zip(names, line.split("|"), strict=False))
            if "account" in names:
                top = "" if fields["account"] == "root" else "root"
                parent = (
                    fields["account"] if fields.get("user") else fields.get("parentname") or top
                )
                self._set_association(fields, parent)
            elif "name" in names:
                self._set_qos(fields["name"], fields)
            else:
                raise TraceError.missing_column(self.file, "Name", names)

    def dump(self, text: str) -> None:
        """Read the output of ``sacctmgr dump CLUSTER``."""
        parent = "root"
        for self.row, line in enumerate(text.splitlines(), 1):
            item = re.match(r"\s*(Cluster|Parent|Account|User) - '?([^':]*)'?(.*)", line)
            if item is None:
                continue
            kind, name, rest = item.groups()
            if kind == "Parent":
                parent = name
                continue
            fields = {
                key.lower(): value.strip("'")
                for key, value in re.findall(r":(\w+)=('[^']*'|[^:]*)", rest)
            }
            if kind == "Cluster":
                fields["account"] = "root"
            elif kind == "Account":
                fields["account"] = name
            else:
                fields |= {"account": parent, "user": name}
            self._set_association(fields, "" if kind == "Cluster" else parent)

    def commands(self, text: str) -> None:
        """Read sacctmgr's own commands: add and modify accounts, users and QOS."""
        self.found.setdefault(("root", "", ""), SlurmAssociation("root"))
        self.found.setdefault(("root", "root", ""), SlurmAssociation("root", "root", "", "root"))
        for self.row, line in enumerate(text.splitlines(), 1):
            try:
                parts = shlex.split(line.partition("#")[0])
            except ValueError as error:
                raise self._odd("quotes in pairs", value=line) from error
            if len(parts) < 3:  # noqa: PLR2004 - verb, what, name
                continue
            verb, what = parts[0].lower(), parts[1].lower()
            if verb in ("add", "create"):
                self._add(parts[2], what, _fields(parts[3:]))
            elif verb == "modify":
                self._modify(parts[2:], what)
            else:
                raise self._odd("add or modify", value=line)

    def _add(self, names: str, what: str, fields: dict[str, str]) -> None:
        for name in names.partition("=")[2].split(",") if "=" in names else names.split(","):
            if what.startswith("qos"):
                self._set_qos(name, fields)
            elif what.startswith("account"):
                self._set_association(fields | {"account": name}, fields.get("parent", "root"))
            elif what.startswith("user"):
                for account in fields.get("account", fields.get("accounts", "")).split(","):
                    self._set_association(fields | {"account": account, "user": name}, account)

    def _modify(self, parts: list[str], what: str) -> None:
        """Carry out ``modify WHAT where name=A,B [account=..] set KEY=VALUE ...``."""
        lower = [part.lower() for part in parts]
        if "set" not in lower:
            raise self._odd("modify ... set KEY=VALUE", value=" ".join(parts))
        at = lower.index("set")
        where = _fields(part for part in parts[:at] if part.lower() != "where")
        bare = [part for part in parts[:at] if "=" not in part and part.lower() != "where"]
        fields = _fields(parts[at + 1 :])
        for name in (where.get("name") or where.get("names") or (bare or [""])[0]).split(","):
            if what.startswith("qos"):
                self._set_qos(name, fields)
                continue
            for account, user, partition in list(self.found):
                is_meant = (
                    user == name and where.get("account", account) == account
                    if what.startswith("user")
                    else account == name and not user
                )
                if is_meant:
                    key = {"account": account, "user": user, "partition": partition}
                    self._set_association(fields | key, "")

    def _set_qos(self, name: str, fields: dict[str, str]) -> None:
        old = self.qos.get(name, SlurmQos(name))
        mode = fields.get("preemptmode", old.preempt_mode).upper()
        self.qos[name] = msgspec.structs.replace(
            old,
            priority=self._value(fields, "priority", old.priority, whole),
            preempts=words(fields["preempt"]) if "preempt" in fields else old.preempts,
            preempt_mode="" if mode == "CLUSTER" else mode,
            grace=self._value(fields, "gracetime", old.grace, _seconds),
            exempt=self._value(fields, "preemptexempttime", old.exempt, duration),
            usage_factor=self._value(fields, "usagefactor", old.usage_factor, factor),
            flags=words(fields["flags"]) if "flags" in fields else old.flags,
            bounds=self._bounds(fields, old.bounds),
        )

    def _set_association(self, fields: dict[str, str], parent: str) -> None:
        key = (fields["account"], fields.get("user", ""), fields.get("partition", ""))
        old = self.found.get(key, SlurmAssociation(*key, parent))
        share = next((name for name in ("share", "fairshare", "shares") if name in fields), "share")
        qos = fields.get("qos", fields.get("qoslevel"))
        self.found[key] = msgspec.structs.replace(
            old,
            shares=self._value(fields, share, old.shares, _shares),
            priority=self._value(fields, "priority", old.priority, whole),
            qos=old.qos if qos is None else tuple(name for name in qos.split(",") if name),
            default_qos=fields.get("defqos", fields.get("defaultqos", old.default_qos)),
            bounds=self._bounds(fields, old.bounds),
        )

    def _bounds(self, fields: dict[str, str], old: SlurmBounds) -> SlurmBounds:
        values: dict[str, Any] = {}
        for key, text in fields.items():
            if key not in _BOUNDS:
                continue
            field, read = _BOUNDS[key]
            try:
                value = checked(read(text))
            except (ValueError, OverflowError) as error:
                expected = "a limit as sacctmgr prints it"
                raise self._odd(expected, column=key, value=text) from error
            before = getattr(old, field)
            values[field] = {**before, **value} if isinstance(value, dict) and text else value
        return msgspec.structs.replace(old, **values)

    def _value(self, fields: dict[str, str], key: str, old: Any, read: Callable[[str], Any]) -> Any:
        """Return what a line says under a key, or what was known before."""
        text = fields.get(key, "")
        if not text:
            return old
        try:
            return read(text)
        except (ValueError, OverflowError) as error:
            raise self._odd("a number", column=key, value=text) from error

    def refuse_circles(self) -> None:
        """Check that every account's way up ends.

        Raises:
            TraceError: an account is above itself.
        """
        above = {one.account: one.parent for one in self.found.values() if not one.user}
        ends: set[str] = set()
        for name, parent in above.items():
            way, at = dict.fromkeys([name]), parent
            while at in above and at not in ends and at not in way:
                way[at] = None
                at = above[at]
            if at in way:
                expected = f"accounts without a circle; {at!r} is above itself"
                raise TraceError(self.file, expected)
            ends |= way.keys()

    def _odd(self, expected: str, *, value: str, column: str | None = None) -> TraceError:
        """Return the error for a line."""
        return TraceError(self.file, expected, row=self.row, column=column, value=value)


def _seconds(text: str) -> int:
    return duration(text, unit=1) or 0


def _shares(text: str) -> int:
    return -1 if text == "parent" else whole(text)


def _fields(parts: Iterable[str]) -> dict[str, str]:
    pairs = (part.partition("=") for part in parts)
    return {key.lower().rstrip("+-"): value for key, equals, value in pairs if equals}
