"""For every room: hypothesis' profiles, the reference data folder, a clean environment.

The default profile draws the same examples in every run, so that a build cannot fail by chance.
``HYPOTHESIS_PROFILE=explore`` draws new ones, many more; ``brief`` draws fewer, as
`make test` does, which leaves the rest to `make test-engines` and `make test-slow`.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

_SLOW_FIRST_CALL = (HealthCheck.too_slow,)  # the kernels load in the first example
for _name, _examples in (("fixed", 100), ("brief", 25)):
    settings.register_profile(
        _name,
        max_examples=_examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=_SLOW_FIRST_CALL,
    )
settings.register_profile(
    "explore", deadline=None, database=None, suppress_health_check=_SLOW_FIRST_CALL
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


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
