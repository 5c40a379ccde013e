"""Pages in Chromium, opened as files: hostile names stay text, nothing is loaded, all is drawn."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import windtunnel as wt
from windtunnel.report.occupancy import occupancy_page
from windtunnel.report.page import comparison_page
from windtunnel.traces import Trace, TraceMetadata

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = (
    "<script>window.hostile = 1; alert(1)</script>",
    '"><img src=x onerror="window.hostile = 2">',
    "</script><script>window.hostile = 3</script>",
    "\x1b[31mred\x1b[0m",
    "x" * 10_000,
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd",
    "=cmd()|' /C calc'!A0",
    "../../etc/passwd",
    "{{ 7 * 7 }}",
    "javascript:window.hostile=4",
)
WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")


def hostile_runs(n: int = 60) -> tuple[Trace, dict[str, wt.Outcome]]:
    """Return a trace whose every name is hostile, and two runs of it."""
    rng = np.random.default_rng(2)
    names = [HOSTILE[i % len(HOSTILE)] for i in range(n)]
    jobs = {
        "job_id": [f"{name}{i}" for i, name in enumerate(names)],
        "submit_time": np.sort(rng.uniform(0, 3000, n)),
        "duration": rng.uniform(10, 900, n),
        "num_gpus": rng.choice([1.0, 2.0, 8.0], n),
        **dict.fromkeys(("user", "vc", "workload", "template"), names),
    }
    cluster = wt.ClusterSpec((wt.NodeType(2, 8, "<b>A100"),), name=HOSTILE[0])
    flown = {name: wt.simulate(jobs, cluster, name) for name in ("fifo", "srtf")}
    runs = dict(zip(HOSTILE[:2], flown.values(), strict=True))
    about = TraceMetadata(HOSTILE[0], source=HOSTILE[1], notes=HOSTILE)
    return Trace(flown["fifo"].jobs, cluster=cluster, metadata=about), runs


@functools.cache
def hostile_comparison(*, interactive: bool) -> str:
    trace, runs = hostile_runs()
    return comparison_page(
        runs, trace=trace, command=HOSTILE[0], title=HOSTILE[2], interactive=interactive
    )


@pytest.mark.parametrize("interactive", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_comparison_of_hostile_names_is_harmless(
    watch: Callable[..., Any],
    written: Callable[[str], str],
    *,
    interactive: bool,
    width: int,
    scheme: str,
) -> None:
    watched = watch(width, scheme)
    page = watched.page
    page.goto(written(hostile_comparison(interactive=interactive)))
    page.get_by_role("heading", name="Who ran where", exact=True).wait_for()
    if interactive:
        page.locator("#places1 svg").wait_for()
    scripts = page.locator("script").count()
    assert scripts == (4 if interactive else 0)
    assert page.locator("img").count() == 0
    assert page.locator("figure svg").count() >= 9
    # The page itself never scrolls sideways; wide tables do, in boxes of their own.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    watched.assert_quiet()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_chart_of_a_time_line_can_be_inspected(
    watch: Callable[..., Any], written: Callable[[str], str], width: int
) -> None:
    _, runs = hostile_runs()
    html, _ = occupancy_page(runs[HOSTILE[0]], HOSTILE[0])
    watched = watch(width, "dark")
    page = watched.page
    page.goto(written(html))
    bars = page.locator("#occupancy svg .mark-rect.role-mark path")
    bars.first.wait_for()
    assert bars.count() > 60
    before = bars.first.get_attribute("d")
    box = page.locator("#occupancy svg").bounding_box()
    bars.nth(5).hover(force=True)
    tip = page.locator("#vg-tooltip-element.visible")
    tip.wait_for()
    assert "GPUs" in tip.inner_text()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.wheel(0, -600)
    page.wait_for_function(
        "old => document.querySelector('#occupancy svg .mark-rect.role-mark path')"
        ".getAttribute('d') !== old",
        arg=before,
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    watched.assert_quiet()


@pytest.mark.parametrize("interactive", [False, True])
def test_a_script_that_comes_to_stand_in_a_page_does_not_run(
    watch: Callable[..., Any], written: Callable[[str], str], *, interactive: bool
) -> None:
    evil = (
        "<script>window.hostile = 1</script><img src=x onerror='window.hostile = 2'>"
        "<script src='https://example.com/x.js'></script><img src='https://example.com/x.png'>"
    )
    page = hostile_comparison(interactive=interactive).replace("<main>", f"<main>{evil}", 1)
    watched = watch()
    watched.page.goto(written(page))
    watched.page.get_by_role("heading", name="Who ran where", exact=True).wait_for()
    assert watched.page.evaluate("window.hostile") is None
    assert watched.remote == []
    assert len(watched.complaints) >= 4  # each of them was refused
