"""A site that Slurm schedules, written inside a site file: slurm.conf's lines and sacctmgr's."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import msgspec

from windtunnel.errors import SpecError, quote
from windtunnel.site.sacctmgr import read_sacctmgr
from windtunnel.site.slurm_conf import read_slurm_conf
from windtunnel.site.slurm_reservations import read_reservations

if TYPE_CHECKING:
    from windtunnel.site.slurm import SlurmSite

_KEYS = ("conf", "accounts", "reservations")
_INCLUDE = re.compile(r"^\s*include\b", re.IGNORECASE | re.MULTILINE)


def site_of_text(said: Any, where: str = "site.slurm") -> SlurmSite:
    """Return the site that a table of a site file describes.

    Args:
        said: ``conf`` (lines of slurm.conf), and perhaps ``accounts`` (commands of sacctmgr) and
            ``reservations`` (as ``scontrol show reservation`` prints them).
        where: what to call it in messages.

    Raises:
        SpecError: it is no such table, includes other files, or has no nodes or partitions.
        TraceError: a line is not understood.
    """
    if not isinstance(said, dict) or not all(isinstance(text, str) for text in said.values()):
        raise SpecError(where, f"found {quote(said)}; expected a table with conf = text.")
    for key in said:
        if key not in _KEYS:
            raise SpecError.unknown(f"{where}.{key}", key, _KEYS)
    if _INCLUDE.search(said.get("conf", "")):
        raise SpecError(f"{where}.conf", "includes another file; write its lines here.")
    with TemporaryDirectory() as folder:
        (Path(folder) / "slurm.conf").write_text(said.get("conf", ""), encoding="utf-8")
        site = read_slurm_conf(folder)
        if said.get("accounts", "").strip():
            file = Path(folder) / "accounts"
            file.write_text(said["accounts"], encoding="utf-8")
            qos, associations = read_sacctmgr(file)
            site = msgspec.structs.replace(site, qos=qos, associations=associations)
    names = tuple(node.name for node in site.nodes)
    holds = read_reservations(said.get("reservations", ""), f"{where}.reservations", names)
    site = msgspec.structs.replace(site, reservations=holds)
    if not site.nodes or not site.partitions:
        message = "expected NodeName and PartitionName lines, as in slurm.conf."
        raise SpecError(f"{where}.conf", message)
    return site
