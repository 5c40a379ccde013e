"""What a plug-in of each kind promises, checked on the scenarios.

Every function takes what `windtunnel.simulate` and its like take: an object, or a name.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from windtunnel import storage
from windtunnel.cluster.parse import parse_cluster
from windtunnel.cluster.presets import SITES
from windtunnel.errors import WindtunnelError
from windtunnel.predictors import resolve_predictor
from windtunnel.schema import as_jobs
from windtunnel.sim.own_metrics import measured
from windtunnel.study.simulate import simulate
from windtunnel.testing.equality import assert_outcomes_equal
from windtunnel.testing.invariants import check_outcome
from windtunnel.testing.scenarios import SCENARIOS
from windtunnel.throughput.morphling_models import THROUGHPUTS
from windtunnel.traces.open import open_trace
from windtunnel.traces.writers import WRITERS

if TYPE_CHECKING:
    from windtunnel.sim.outcome import Outcome
    from windtunnel.traces.trace import Trace

#: Scenarios whose nodes a placement chooses among.
_MANY = {
    "submit_time": [0, 0, 1, 2, 3, 5, 8, 9],
    "duration": [9, 7, 5, 8, 2, 6, 4, 3],
    "num_gpus": [1, 2, 4, 8, 0.5, 3, 0.5, 12],
    "num_tasks": [1, 1, 1, 1, 1, 1, 1, 3],
    "mem_gib": [4, 8, 16, 32, 2, 12, 2, 24],
}


def check_policy(policy: Any) -> None:
    """Assert that a policy flies: alike on both engines and each time, and by the rules.

    Args:
        policy: a `Policy`, a function, or a name.

    Raises:
        AssertionError: two runs differ, or one breaks a rule that holds for every run.
        WindtunnelError: it cannot fly a scenario.
    """
    for scenario in SCENARIOS:
        flown = [
            simulate(scenario.jobs, scenario.cluster, policy, engine=engine)
            for engine in ("compiled", "reference", "compiled")
        ]
        _check_alike(scenario.name, flown)


def check_placement(placement: Any) -> None:
    """Assert that a placement goes with every rule for the queue, alike on both engines.

    Args:
        placement: a function ``(node, request) -> number``, or a name.

    Raises:
        AssertionError: as `check_policy`.
        WindtunnelError: it cannot place a job.
    """
    cluster = parse_cluster("3x4:A100,2x8:T4")
    for queueing in ("strict", "skip", "easy", "conservative"):
        jobs = {**_MANY, "estimate": _MANY["duration"]}
        flown = [
            simulate(jobs, cluster, "srtf", placement=placement, queueing=queueing, engine=engine)
            for engine in ("compiled", "reference", "compiled")
        ]
        _check_alike(f"queueing={queueing}", flown)


def check_predictor(predictor: Any) -> None:
    """Assert that a predictor learns, predicts a number of seconds a job, and peeks at none.

    Args:
        predictor: a class, an object with ``fit`` and ``predict``, or a name.

    Raises:
        AssertionError: it predicts something else, or goes by a job's own duration.
        WindtunnelError: it cannot learn from a plain table.
    """
    past = as_jobs({**_MANY, "user": ["a", "b"] * 4, "template": ["x", "y", "x", "z"] * 2})
    model = resolve_predictor(predictor).clone()
    model.fit(past, np.asarray(past["duration"].to_numpy()))
    seconds = np.asarray(model.predict(past), dtype=float)
    if seconds.shape != (past.num_rows,):
        raise AssertionError(f"predict returned shape {seconds.shape}; expected ({past.num_rows},)")
    if (seconds < 0).any():
        raise AssertionError(
            f"predicted {seconds[seconds < 0][0]:g} s; expected at least 0, or NaN"
        )
    place = past.column_names.index("duration")
    longer = past.set_column(place, "duration", [np.full(past.num_rows, 1e6)])
    again = np.asarray(model.predict(longer), dtype=float)
    if not model.peeks and not np.array_equal(seconds, again, equal_nan=True):
        raise AssertionError("the prediction of a job goes by its own duration, which is not known")


def check_reader(reader: str, path: str | Path) -> None:
    """Assert that a reader reads a file alike each time, tells of all rows, and refuses rubbish.

    Args:
        reader: its name, or ``package.module:name``.
        path: a file that it reads.

    Raises:
        AssertionError: two readings differ, rows are lost without a word, or rubbish ends in an
            error that is none of ours.
        WindtunnelError: it cannot read the file.
    """
    first, second = (open_trace(path, format=reader) for _ in range(2))
    if not first.jobs.equals(second.jobs):
        raise AssertionError("two readings of one file differ")
    metadata, count = first.metadata, first.jobs.num_rows
    if metadata.rows_read != count + sum(metadata.dropped.values()):
        raise AssertionError(
            f"read {metadata.rows_read} rows, gave {count} jobs, and dropped tells of "
            f"{sum(metadata.dropped.values())}: expected every row to be accounted for"
        )
    with storage.scratch() as folder:
        rubbish = folder / Path(path).name
        rubbish.write_bytes(b"\x00\xff nothing, that is: 'a' row;\n" * 3)
        try:
            open_trace(rubbish, format=reader)
        except WindtunnelError:
            pass
        except Exception as error:
            message = (
                f"rubbish ends in {type(error).__name__}; expected a TraceError or SchemaError"
            )
            raise AssertionError(message) from error


def check_writer(writer: Any, trace: Trace) -> None:
    """Assert that a writer writes a trace alike each time, and tells in sentences what is lost.

    Args:
        writer: a function of a trace and a path, or a name.
        trace: what to write.

    Raises:
        AssertionError: two files differ, or what is lost is not stated in sentences.
        WindtunnelError: it cannot write the trace.
    """
    chosen = WRITERS.resolve(writer)
    with storage.scratch() as folder:
        paths = [folder / f"{name}{''.join(chosen.extensions[:1])}" for name in "ab"]
        written = [chosen.put(trace, path) for path in paths]
        first, second = (_content(path) for path in paths)
    if first != second:
        raise AssertionError("the same trace, written twice, gives two different files")
    if not all(isinstance(one, str) and one.endswith(".") for one in written[0].losses):
        raise AssertionError(f"lost: {list(written[0].losses)}; expected sentences")


def _content(path: Path) -> dict[str, bytes]:
    """Return what a file holds, or a folder's files, by name."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {"" if file == path else file.name: file.read_bytes() for file in files}


def check_throughput_model(model: Any) -> None:
    """Assert that a training model has options on a cluster, each with a time above 0.

    Args:
        model: a `TrainingModel`, a function that returns one, or a name.

    Raises:
        AssertionError: it has none, or a wrong one.
    """
    found = THROUGHPUTS.resolve(model)
    options = found.options(node_gpus=8, node_cpus=96, num_nodes=2)
    if not options:
        raise AssertionError(f"{found.name} has no option on two nodes of 8 GPUs")
    for option in options:
        if not 0 < option.iteration_time < np.inf:
            raise AssertionError(f"{option} has no time above 0")
    if list(options) != sorted(options, key=lambda option: option.order()):
        raise AssertionError("the options are not in order: fewest GPUs first, then fastest")


def check_site(site: Any) -> None:
    """Assert that a site is a cluster on which jobs run.

    Args:
        site: a `ClusterSpec`, a function that returns one, or a name.

    Raises:
        AssertionError: a run on it breaks a rule that holds for every run.
        WindtunnelError: it is none.
    """
    cluster = SITES.resolve(site)
    jobs = {"submit_time": [0, 0, 1], "duration": [5, 5, 5], "num_gpus": [1, 1, 1]}
    check_outcome(simulate(jobs, cluster))


def check_metric(metric: Any) -> None:
    """Assert that a metric is a number, or None, of any run, and the same each time.

    Args:
        metric: a function of an outcome, or a name.

    Raises:
        AssertionError: two readings of one run differ.
        WindtunnelError: it returned no number.
    """
    for scenario in SCENARIOS:
        outcome = simulate(scenario.jobs, scenario.cluster)
        if measured(outcome, [metric]) != measured(outcome, [metric]):
            raise AssertionError(f"{scenario.name}: two readings of one run differ")


def _check_alike(name: str, flown: list[Outcome]) -> None:
    for outcome in flown:
        check_outcome(outcome)
        try:
            assert_outcomes_equal(flown[0], outcome)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error
