"""Whether kernels were compiled here before: a folder of their own for each version of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from windtunnel.sim.compiled import loading

KERNELS = sorted(Path(loading.__file__).parent.rglob("*.py"))


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


def outside_names(tree: ast.Module) -> dict[str, str]:
    """What a module imports from modules of ours that are no kernels: name -> module."""
    return {
        (name.asname or name.name): node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("windtunnel.")
        and not (node.module or "").startswith(loading.__package__ or "")
        for name in node.names
    }  # fmt: skip


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_constants_that_are_compiled_in_count_for_the_cache(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    outside = outside_names(tree)
    compiled = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any("njit" in ast.unparse(one) for one in node.decorator_list)
    ]
    used = {n.id for one in compiled for n in ast.walk(one) if isinstance(n, ast.Name)}
    assert {outside[name] for name in used & outside.keys()} <= set(loading.CONSTANTS)
