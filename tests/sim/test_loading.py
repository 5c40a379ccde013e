"""Whether kernels were compiled here before: a folder of their own for each version of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from windtunnel.sim.compiled import loading

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    return tmp_path


def test_a_machine_knows_whether_it_has_compiled_this_version(cache: Path) -> None:
    assert not loading.are_compiled()
    other = cache / "windtunnel" / "kernels" / "of another version"
    other.mkdir(parents=True)
    (other / "kernel.nbi").touch()
    assert not loading.are_compiled()
    own = other.with_name(loading._cache_folder(loading.__package__ or "").name)
    own.mkdir()
    assert not loading.are_compiled()
    (own / "kernel.nbi").touch()
    assert loading.are_compiled()


def test_a_cache_elsewhere_counts_as_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "elsewhere")
    assert loading.are_compiled()
