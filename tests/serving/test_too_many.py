"""More requests than a machine holds are refused before any is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from windtunnel.errors import SpecError
from windtunnel.serving.arrivals import MOST_REQUESTS, Deterministic, Gamma, MarkovModulated
from windtunnel.serving.workload import generate

if TYPE_CHECKING:
    from windtunnel.serving.arrivals import ArrivalProcess


@pytest.mark.parametrize(
    "process",
    [Gamma(2e7), Deterministic(2e7), MarkovModulated((1.0, 1.0), (0.0, 4e7)), Gamma(1e300)],
)
def test_no_process_draws_them(process: ArrivalProcess) -> None:
    with pytest.raises(SpecError, match=f"requests; expected at most {MOST_REQUESTS:,}"):
        process.arrivals(200.0)


def test_neither_do_models_together_nor_copies() -> None:
    few = generate(["small"], duration=10.0, rate=10.0)
    with pytest.raises(SpecError, match=f"at most {MOST_REQUESTS:,}"):
        few.repeat(10**9)
