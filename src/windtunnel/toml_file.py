"""Reading a TOML file that describes something: a cluster, quotas, disruptions, slow-downs."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from windtunnel.errors import SpecError


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return a TOML file's data; a byte order mark before it is skipped.

    Raises:
        SpecError: the file is missing or not TOML.
    """
    try:
        return tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except RecursionError:
        raise SpecError(str(path), "cannot be read as TOML: it is nested too deeply") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SpecError(str(path), f"cannot be read as TOML: {error}") from error
