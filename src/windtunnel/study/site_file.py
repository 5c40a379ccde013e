"""A site file: what the cluster is (``[site]``) and what schedules it (``[scheduler]``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from windtunnel.cluster.spec import ClusterSpec
from windtunnel.errors import SpecError, quote
from windtunnel.site.conditions import Conditions
from windtunnel.site.fields import fields_of
from windtunnel.site.scheduler import Scheduler
from windtunnel.site.site import Site
from windtunnel.study.trust import refuse_code
from windtunnel.toml_file import read_toml, refuse_unknown_keys

#: The tables of a site file, and whose fields they have.
TABLES: dict[str, Any] = {"site": Site, "scheduler": Scheduler}
#: Endings of files that a field may name; their paths are from the folder of the site file.
_FILES = (".toml", ".csv", ".json", ".parquet")


def is_site_file(text: Any) -> bool:
    """Return whether a cluster's words are the name of a site file.

    Raises:
        SpecError: they name a file that cannot be read.
    """
    if not isinstance(text, str | Path) or not str(text).lower().endswith(".toml"):
        return False
    return any(name in TABLES for name in read_toml(text))


def read_site(path: str | Path, *, trust: bool = False) -> Conditions:
    """Return the conditions that a site file describes.

    Args:
        path: a TOML file with the tables ``[site]`` and ``[scheduler]``, whose keys are the fields
            of `Site` and `Scheduler`; ``cluster`` is words, or a table as in a cluster's own file.
        trust: it may name code to run (``package.module:name``).

    Raises:
        UntrustedNameError: it names code, and is not trusted: a file may come from a stranger.
        SpecError: an unknown key (the nearest is suggested), or a wrong value.
    """
    raw = read_toml(path)
    refuse_unknown_keys(raw, TABLES, f"{path}: $")
    fields: dict[str, Any] = {}
    for table, kind in TABLES.items():
        part = raw.get(table, {})
        if not isinstance(part, dict):
            raise SpecError(f"{path}: $.{table}", f"found {quote(part)}; expected a table.")
        refuse_unknown_keys(part, fields_of(kind), f"{path}: $.{table}")
        fields |= part
    folder = Path(path).parent
    fields = {name: _beside(folder, name, value) for name, value in fields.items()}
    cluster = fields.get("cluster")
    if isinstance(cluster, dict):
        where = f"{path}: $.site.cluster"
        name = Path(path).stem
        fields["cluster"] = ClusterSpec.from_mapping(cluster, source=where, default_name=name)
    if not trust:
        words = [(name, value) for name, value in fields.items() if isinstance(value, str)]
        refuse_code(words, {}, str(path))
    try:
        return Conditions().having(**fields)
    except SpecError as error:
        table = "site" if error.path in fields_of(Site) else "scheduler"
        raise SpecError(f"{path}: $.{table}.{error.path}", error.message) from error


def _beside(folder: Path, name: str, value: Any) -> Any:
    """Return the name of a file as found from the folder of the site file; anything else as is."""
    is_file = isinstance(value, str) and value.lower().endswith(_FILES)
    if not is_file and (name != "slurm_conf" or not isinstance(value, str)):
        return value
    return str(folder / value)
