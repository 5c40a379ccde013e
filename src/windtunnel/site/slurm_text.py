"""A site that Slurm schedules, written inside a site file: slurm.conf's lines and sacctmgr's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel import storage
from windtunnel.errors import SpecError, TraceError, quote
from windtunnel.site.sacctmgr import read_sacctmgr
from windtunnel.site.slurm_conf import read_slurm_conf
from windtunnel.site.slurm_reservations import read_reservations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from windtunnel.site.slurm import SlurmSite

_KEYS = ("conf", "accounts", "reservations")


def site_of_text(table: Any, where: str = "site.slurm") -> SlurmSite:
    """Return the site that a table of a site file describes.

    Args:
        table: ``conf`` (lines of slurm.conf), and perhaps ``accounts`` (commands of sacctmgr) and
            ``reservations`` (as ``scontrol show reservation`` prints them).
        where: what to call it in messages.

    Raises:
        SpecError: it is no such table, includes other files, or has no nodes or partitions.
        TraceError: a line is not understood.
    """
    if not isinstance(table, dict) or not all(isinstance(text, str) for text in table.values()):
        raise SpecError(where, f"found {quote(table)}; expected a table with conf = text.")
    for key in table:
        if key not in _KEYS:
            raise SpecError.unknown(f"{where}.{key}", key, _KEYS)
    # Lines as the reader takes them apart, which also ends them at other characters than "\n".
    lines = table.get("conf", "").splitlines()
    if any(line.strip().lower().startswith("include") for line in lines):
        raise SpecError(f"{where}.conf", "includes another file; write its lines here.")
    with _written("\n".join(lines), f"{where}.conf") as file:
        site = read_slurm_conf(file)
    if table.get("accounts", "").strip():
        with _written(table["accounts"], f"{where}.accounts") as file:
            qos, associations = read_sacctmgr(file)
            site = msgspec.structs.replace(site, qos=qos, associations=associations)
    names = tuple(node.name for node in site.nodes)
    holds = read_reservations(table.get("reservations", ""), f"{where}.reservations", names)
    site = msgspec.structs.replace(site, reservations=holds)
    if not site.nodes or not site.partitions:
        message = "expected NodeName and PartitionName lines, as in slurm.conf."
        raise SpecError(f"{where}.conf", message)
    return site


@contextmanager
def _written(text: str, where: str) -> Iterator[Path]:
    """Lend a text as a file; an error in it names the key that it stood under."""
    with storage.scratch() as folder:
        file = folder / "slurm.conf"
        file.write_text(text, encoding="utf-8")
        try:
            yield file
        except TraceError as error:
            if error.file != str(file):
                raise
            details = {name: getattr(error, name) for name in ("row", "column", "value", "hint")}
            raise TraceError(where, error.expected, **details) from error
