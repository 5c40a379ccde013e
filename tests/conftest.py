"""For all tests: hypothesis' examples, the reference data folder, a clean environment.

By default the same examples are drawn in every run, so that a build cannot fail by chance.
``HYPOTHESIS_PROFILE`` names what is drawn instead: ``brief`` a twentieth, as `make test` does,
which leaves the rest to `make test-engines` and `make test-slow`; ``quarter``; and ``explore`` new
ones, twenty times as many.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.internal.entropy import deterministic_PRNG

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

# Beside another process, threads for tiny matrices take turns in waiting for a core: numpy, which
# is not loaded yet, has one here, and in all processes that tests start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
#: Shares of the examples that a property asks for.
_SHARES = {"brief": 0.05, "quarter": 0.25, "fixed": 1.0, "explore": 20.0}
_SLOW = (
    HealthCheck.too_slow,  # the kernels load in the first example
    HealthCheck.data_too_large,  # a field of a million characters is
    HealthCheck.differing_executors,
)
for _name in _SHARES:
    settings.register_profile(
        _name,
        deadline=None,
        derandomize=_name != "explore",
        database=None,
        suppress_health_check=_SLOW,
    )
_profile = os.environ.get("HYPOTHESIS_PROFILE", "fixed")
settings.load_profile(_profile)
if _profile != "explore":
    # No constants from the modules loaded so far: what is drawn would hang on the tests before.
    vars(providers)["_get_local_constants"] = Constants
#: The properties of which a share is drawn.
_SHARED: set[object] = set()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep what collecting made, which lives to the end, from being searched for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        # As it makes its generator, hypothesis looks for who holds it: the frozen are not found.
        with deterministic_PRNG():
            pass
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder that ``WINDTUNNEL_DATA`` names, with the published traces; skips without it."""
    chosen = os.environ.get("WINDTUNNEL_DATA", "")
    if not chosen:
        pytest.skip("WINDTUNNEL_DATA is not set: no reference data")
    folder = Path(chosen)
    if not folder.is_dir():
        pytest.skip(f"WINDTUNNEL_DATA={chosen} is not a folder")
    return folder


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let child processes hear Ctrl-C, which they ignore where the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def plugins_forgotten() -> Iterator[None]:
    """Forget after the test what it registered: policies, placements, readers ..."""
    from windtunnel.plugins import registrations_forgotten

    with registrations_forgotten():
        yield


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let a property draw the share of its examples that this run is for; three at least."""
    function = getattr(item, "function", None)
    if function is None or not is_hypothesis_test(function) or function in _SHARED:
        return
    _SHARED.add(function)
    own = function._hypothesis_internal_use_settings
    wanted = max(min(own.max_examples, 3), round(own.max_examples * _SHARES[_profile]))
    function._hypothesis_internal_use_settings = settings(own, max_examples=wanted)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow all but so many cases, evenly chosen, of a test of which a sample is enough."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for found in cases.values():
        marker = found[0].get_closest_marker("sample")
        assert marker is not None
        wanted = min(marker.args[0], len(found))
        chosen = {at * len(found) // wanted for at in range(wanted)}
        for at, item in enumerate(found):
            if at not in chosen:
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """End a process that does not end by itself after its tests: a thread or a child hangs."""
    faulthandler.dump_traceback_later(
        float(os.environ.get("WINDTUNNEL_EXIT_WITHIN", "120")), exit=True, file=sys.__stderr__
    )
