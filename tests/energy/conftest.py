"""This folder on the path: tests are no package, but share modules (`toy` and others)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

if TYPE_CHECKING:
    from collections.abc import Callable

    from windtunnel.energy import Workload

GPUS = ("v100", "a40", "p100", "rtx6000")


@pytest.fixture(scope="session")
def zeus_dir(data_dir: Path) -> Path:
    """The published training and power traces; skips without them."""
    folder = data_dir / "zeus"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    return folder


@pytest.fixture(scope="session")
def measured(zeus_dir: Path) -> Callable[[str, str], Workload]:
    """``measured("v100", "cifar100")``: a published workload."""
    from windtunnel.energy import open_published

    found = {gpu: open_published(gpu, data=zeus_dir) for gpu in GPUS}
    return lambda gpu, dataset: found[gpu][dataset]
