"""The reference pages list every placement, reader and writer that there is.

tests/policies/test_catalogue.py holds the table of policies against their parameters and rules.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.placements import PLACEMENTS
from windtunnel.traces.readers import READERS
from windtunnel.traces.writers import WRITERS

if TYPE_CHECKING:
    from windtunnel.plugins import Catalogue

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.usefixtures("plugins_forgotten")
@pytest.mark.parametrize(
    ("page", "catalogue"),
    [("placements.md", PLACEMENTS), ("traces.md", READERS), ("traces.md", WRITERS)],
    ids=["placements", "readers", "writers"],
)
def test_a_page_lists_all_that_there_are(page: str, catalogue: Catalogue[Any]) -> None:
    text = (REFERENCE / page).read_text(encoding="utf-8")
    assert [name for name in catalogue if f"`{name}`" not in text] == []
