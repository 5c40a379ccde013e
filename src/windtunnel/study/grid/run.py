"""`run_study`: fly what is missing of a study, and gather the results."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from typing import TYPE_CHECKING, Any, Self

import windtunnel
from windtunnel.errors import SpecError, quote
from windtunnel.study.grid.executors import check_executor, executor_for
from windtunnel.study.grid.flying import Order
from windtunnel.study.grid.inputs import cluster_of, energy_facts, energy_models, prepare
from windtunnel.study.grid.measure import failed
from windtunnel.study.grid.plan import grid, unique
from windtunnel.study.grid.store import Results, Store, open_results
from windtunnel.study.grid.supervise import fly_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    import pyarrow as pa

    from windtunnel.study.grid.executor import StudyExecutor
    from windtunnel.study.grid.flying import ShippedTable
    from windtunnel.study.grid.inputs import EnergyModels, Input, TableKey
    from windtunnel.study.grid.plan import Cell, Run
    from windtunnel.study.grid.spec import Study


def run_study(
    study: Study,
    out: str | Path,
    *,
    on: str | Executor = "processes",
    workers: int | None = None,
    retry_failed: bool = False,
    on_start: Callable[[int, int], None] = lambda _done, _total: None,
    on_done: Callable[[str], None] = lambda _: None,
) -> Results:
    """Fly a study's runs that the folder does not hold yet, and gather all of them.

    Args:
        study: the grid.
        out: folder of results, made where it is missing; one that holds a part of the study is
            gone on with.
        on: ``processes``, ``ray``, ``ray://HOST:PORT``, or any `concurrent.futures.Executor`, which
            stays open; its workers must reach the folder.
        workers: runs at a time; None = one a core.
        retry_failed: fly runs again that gave an error before.
        on_start: called with the number of finished runs and of all, before the first.
        on_done: called with a policy's label after each run.

    Returns:
        The results, in the order of `windtunnel.study.grid.plan.grid`.

    Raises:
        SpecError: the study is wrong; or the folder holds results of other traces, of another
            windtunnel, or another process is writing to it.
        WindtunnelError: a trace cannot be opened.
    """
    check_executor(on, workers)
    cells = grid(study)
    store = Store(out)
    with store.locked():
        if retry_failed:
            store.drop_failed()
        with Expedition(study, store, on, workers) as expedition:
            expedition.fly(cells, on_start=on_start, on_done=on_done)
        store.gather([run.run_id for run in unique(cells)])
    return open_results(out)


class Expedition:
    """A store that runs are added to, and who flies them: a context, which ends the workers.

    Args:
        study: what the runs are of.
        store: where they go; locked.
        on: see `run_study`.
        workers: see `run_study`.

    Raises:
        SpecError: nobody can fly so, or the store is of another windtunnel.
    """

    def __init__(self, study: Study, store: Store, on: str | Executor, workers: int | None) -> None:
        self._study = study
        self._store = store
        self._on = on
        self._workers = workers
        self._executor: StudyExecutor | None = None
        self._inputs: dict[TableKey, Input] = {}
        self._shipped: dict[TableKey, ShippedTable] = {}
        self._energy: EnergyModels | None = energy_models(study.energy)
        check_versions(store.read_manifest(), str(store.folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._executor is not None:
            self._executor.close(landed=kind is None)

    def fly(
        self,
        cells: list[Cell],
        *,
        on_start: Callable[[int, int], None] = lambda _done, _total: None,
        on_done: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Fly the runs that the store does not hold.

        Args:
            cells: the grid; the manifest then lists it, and no other.
            on_start: see `run_study`.
            on_done: see `run_study`.

        Raises:
            SpecError: a trace is not what it was when the store was begun.
        """
        store, runs = self._store, unique(cells)
        old = store.read_manifest()
        there = store.finished()
        pending = [run for run in runs if run.run_id not in there]
        on_start(len(runs) - len(pending), len(runs))
        needed = [
            key for key in _tables(self._study, runs, pending, old) if key not in self._inputs
        ]
        self._inputs |= prepare(self._study, needed, store.inputs, lambda _: None)
        store.write_manifest(self._manifest(cells, old))
        if not pending:
            return
        if self._executor is None:
            self._executor = executor_for(self._on, self._workers)
        orders = self._orders(pending, self._executor, on_done)

        def landed(row: pa.Table, seconds: float) -> None:
            store.add(row)
            run = row.select(["run_id", "status", "policy"]).to_pylist()[0]
            store.note_time(run["run_id"], seconds, run["status"])
            on_done(run["policy"])

        fly_all(self._executor, orders, landed)

    def _orders(
        self, pending: Sequence[Run], executor: StudyExecutor, on_done: Callable[[str], None]
    ) -> list[Order]:
        """Return the workers' orders; a run without a cluster has failed at once."""
        orders = []
        for run in pending:
            key, given = run.table_key, self._inputs[run.table_key]
            try:
                cluster = cluster_of(run, given)
            except SpecError as error:
                self._store.add(failed(run, f"SpecError: {error}"))
                on_done(run.policy)
                continue
            if key not in self._shipped:
                self._shipped[key] = executor.ship(given)
            orders.append(Order(run, self._shipped[key], cluster.to_mapping(), self._energy))
        return orders

    def _manifest(self, cells: list[Cell], old: dict[str, Any] | None) -> dict[str, Any]:
        """Return the manifest, checked against what the store began with."""
        before: dict[str, Any] = {} if old is None else old["inputs"]
        tables = {cell.run.table_key for cell in cells}
        kept = {}
        for label, seed in sorted(tables, key=str):
            name = label if seed is None else f"{label} seed {seed}"
            found = before.get(name)
            if (label, seed) in self._inputs:
                facts = self._inputs[label, seed].facts()
                _check_same(f"trace {quote(name)}", facts["sha256"], (found or facts)["sha256"])
                found = facts
            kept[name] = found
        energy = energy_facts(self._study.energy)
        if old is not None and old["energy"] and energy:
            for name, digest in energy.items():
                _check_same(f"$.energy.{name}", digest, old["energy"].get(name, digest))
        mapping = self._study.to_mapping()
        text = json.dumps(mapping, sort_keys=True)
        return {
            "name": self._study.name,
            "study": mapping,
            "study_sha256": hashlib.sha256(text.encode()).hexdigest(),
            "versions": versions(),
            "seeds": self._study.seed_list(),
            "made": [entry.label for entry in self._study.trace_entries() if entry.is_made],
            "grid": [cell.to_mapping() for cell in cells],
            "runs": [run.run_id for run in unique(cells)],
            "inputs": kept,
            "energy": energy,
        }


def versions() -> dict[str, str]:
    """Return what decides results besides the study: windtunnel and what it computes with."""
    names = ("numpy", "pyarrow")
    return {
        "windtunnel": windtunnel.__version__,
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in names},
    }


def check_versions(old: dict[str, Any] | None, folder: str) -> None:
    """Check that a store's results are ours.

    Raises:
        SpecError: they are another version's.
    """
    now = versions()
    for name, version in (old or {"versions": {}})["versions"].items():
        if now.get(name) != version:
            raise SpecError(
                f"--out {folder}",
                f"was begun with {name} {version}, and this is {now.get(name)}; "
                "expected the same, or another folder.",
            )


def _check_same(what: str, now: str, before: str) -> None:
    """Check that an input is what it was."""
    if now != before:
        raise SpecError(
            what, "is not what it was when this study began; expected another folder for results."
        )


def _tables(
    study: Study, runs: Sequence[Run], pending: Sequence[Run], old: dict[str, Any] | None
) -> list[TableKey]:
    """Return the jobs tables to open: those to be flown, and those that may have changed."""
    made = {entry.label for entry in study.trace_entries() if entry.is_made}
    known = set() if old is None else set(old["inputs"])
    wanted = dict.fromkeys(run.table_key for run in pending)
    for run in runs:
        label, seed = run.table_key
        recorded = f"{label} seed {seed}" if seed is not None else label
        if label not in made or recorded not in known:
            wanted[run.table_key] = None
    return list(wanted)
