"""Handles: many arrays handed to a kernel as one pointer."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

from windtunnel.sim.compiled.handles import Handle

Parts = namedtuple("Parts", "first second")  # noqa: PYI024 - as the kernels' own


def test_a_handle_refuses_arrays_that_a_kernel_would_misread() -> None:
    whole = np.arange(8)
    assert Handle(Parts(whole, whole[2:5])).kind.resolve("second")[0] == 1
    with pytest.raises(ValueError, match="contiguous"):
        Handle(Parts(whole, whole[::2]))
