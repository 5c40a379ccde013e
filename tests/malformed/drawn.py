"""One strategy for the mutated files of a sample, whatever its kind, and how many are drawn."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from catalogue import SAMPLES
from grid_mutants import of_cell, of_raw_cell, of_table
from hypothesis import strategies as st
from mutants import Foreign, of_bytes
from parquet_mutants import of_parquet
from tree_mutants import of_shape, of_value

if TYPE_CHECKING:
    from mutants import Mutant
    from samples import Sample

#: How many times more files ``HYPOTHESIS_PROFILE=explore`` tries.
MORE = 20 if os.environ.get("HYPOTHESIS_PROFILE") == "explore" else 1
#: Files drawn for a sample, and the share of them that must differ: some are drawn twice.
DRAWN, DISTINCT = 90, 0.4
_OTHERS = Foreign(tuple(sample.data for sample in SAMPLES.values()))


def mutated(sample: Sample) -> st.SearchStrategy[Mutant]:
    """Return a strategy for files made from a sample."""
    kinds = [of_bytes(sample, _OTHERS)]
    if sample.grid is not None:
        kinds += [of_cell(sample), of_cell(sample), of_raw_cell(sample), of_table(sample)]
    if sample.tree is not None:
        kinds += [of_value(sample), of_value(sample), of_shape(sample)]
    if sample.table is not None:
        kinds += [of_parquet(sample), of_parquet(sample)]
    return st.one_of(kinds)


def drawn(sample: Sample) -> int:
    """Return how many files of a sample are tried."""
    return DRAWN * MORE * sample.cost // 100


def distinct(sample: Sample) -> int:
    """Return how many different files there must be among them in any run."""
    return int(DISTINCT * DRAWN * sample.cost // 100)
