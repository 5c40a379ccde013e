"""For tests of plug-ins and engines: ``wt.testing.check_policy(mine)``.

`check_outcome` asserts what holds for every run, `assert_outcomes_equal` that two are the same, bit
for bit. For each kind of plug-in there is a function that flies it on `SCENARIOS`, small runs that
were worked out by hand, and asserts what its kind promises. `jobs` and `clusters` are strategies
for tests with hypothesis.
"""

from windtunnel.testing.conformance import (
    check_metric,
    check_placement,
    check_policy,
    check_predictor,
    check_reader,
    check_site,
    check_throughput_model,
    check_writer,
)
from windtunnel.testing.equality import PER_JOB, PER_NODE, PER_SEGMENT, assert_outcomes_equal
from windtunnel.testing.invariants import check_outcome
from windtunnel.testing.scenarios import SCENARIOS, Scenario
from windtunnel.testing.strategies import clusters, jobs

__all__ = [
    "PER_JOB",
    "PER_NODE",
    "PER_SEGMENT",
    "SCENARIOS",
    "Scenario",
    "assert_outcomes_equal",
    "check_metric",
    "check_outcome",
    "check_placement",
    "check_policy",
    "check_predictor",
    "check_reader",
    "check_site",
    "check_throughput_model",
    "check_writer",
    "clusters",
    "jobs",
]


def __dir__() -> list[str]:
    return __all__
