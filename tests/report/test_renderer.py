"""The process that draws: it may end, and only a sentence comes of it."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from windtunnel.errors import SpecError
from windtunnel.report import renderer

if TYPE_CHECKING:
    from pathlib import Path

BAR = {
    "mark": "bar",
    "data": {"values": [{"a": 1}]},
    "encoding": {"x": {"field": "a", "type": "quantitative"}},
}


@pytest.mark.slow
def test_what_draws_may_end_and_the_next_chart_is_drawn() -> None:
    first = renderer.vegalite_to_svg(BAR)
    assert first.startswith("<svg")
    drawer = renderer._Drawer.process
    assert drawer is not None
    drawer.kill()
    drawer.wait(30)
    with pytest.raises(SpecError, match=r"charts: the process that draws them ended \(-9\)"):
        renderer.vegalite_to_svg(BAR)
    assert renderer.vegalite_to_svg(BAR).startswith("<svg")
    assert renderer.vegalite_to_png(BAR, scale=1.0).startswith(b"\x89PNG")
    assert renderer.vegalite_to_pdf(BAR).startswith(b"%PDF")


def test_what_is_no_chart_says_so_and_draws_on() -> None:
    with pytest.raises(ValueError, match="conversion failed"):
        renderer.vegalite_to_svg({"mark": 3})
    assert renderer.vegalite_to_svg(BAR).startswith("<svg")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_worker_draws_by_itself() -> None:
    renderer.vegalite_to_svg(BAR)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if renderer.vegalite_to_svg(BAR).startswith("<svg") else 1
            renderer._close()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert renderer.vegalite_to_svg(BAR).startswith("<svg")


@pytest.mark.slow
def test_a_limit_of_address_space_is_one_sentence(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("job_id,submit_time,duration,num_gpus\na,0,30,1\nb,0,10,1\n")
    words = ["compare", str(trace), "--cluster", "pool:1", "--policies", "fifo,sjf"]
    limit = 8_000_000 << 10
    ran = subprocess.run(  # noqa: S603 - our own command; one thread
        [sys.executable, "-m", "windtunnel", *words, "--out", str(tmp_path / "x.html")],
        capture_output=True,
        check=False,
        text=True,
        timeout=200,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    if ran.returncode == 0:  # an engine that needs less
        assert (tmp_path / "x.html").exists()
        return
    assert ran.returncode == 2
    assert ran.stderr.startswith("Error: charts: ")
    assert ran.stderr.count("\n") == 1
    assert not (tmp_path / "x.html").exists()
