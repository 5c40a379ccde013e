"""Vega, in a process of its own: what its engine (V8) does when memory ends, it does to itself.

V8 reserves tens of GB of address space when it starts, and where it gets none (``ulimit -v``) it
ends its process on the spot. It also keeps Python's lock while it draws.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

from windtunnel.errors import SpecError
from windtunnel.report.drawing_process import ERROR, TEXT

_lock = threading.Lock()


class _Drawer:
    """The process that draws for this one; none before the first chart."""

    process: subprocess.Popen[bytes] | None = None
    of: int = 0


def vegalite_to_svg(spec: dict[str, Any]) -> str:
    """Return a Vega-Lite chart as SVG.

    Raises:
        SpecError: the process that draws ended, or cannot be started.
        ValueError: it is no chart.
    """
    return str(_ask("vegalite_to_svg", json.dumps(spec), allowed_base_urls=[]))


def vegalite_to_png(spec: dict[str, Any], *, scale: float) -> bytes:
    """Return a Vega-Lite chart as PNG; raises as `vegalite_to_svg`."""
    return _bytes(_ask("vegalite_to_png", json.dumps(spec), scale=scale, allowed_base_urls=[]))


def vegalite_to_pdf(spec: dict[str, Any]) -> bytes:
    """Return a Vega-Lite chart as PDF; raises as `vegalite_to_svg`."""
    return _bytes(_ask("vegalite_to_pdf", json.dumps(spec), allowed_base_urls=[]))


def svg_to_pdf(svg: str) -> bytes:
    """Return a picture as PDF; raises as `vegalite_to_svg`."""
    return _bytes(_ask("svg_to_pdf", svg))


def svg_to_png(svg: str, *, ppi: float) -> bytes:
    """Return a picture as PNG of so many pixels an inch; raises as `vegalite_to_svg`."""
    return _bytes(_ask("svg_to_png", svg, ppi=ppi))


def javascript_bundle(snippet: str) -> str:
    """Return Vega, Vega-Lite, vegaEmbed and a snippet as one script."""
    return str(_ask("javascript_bundle", snippet))


def _bytes(made: str | bytes) -> bytes:
    assert isinstance(made, bytes)  # noqa: S101 - for the type checker
    return made


def _ask(name: str, *args: Any, **options: Any) -> str | bytes:
    request = json.dumps([name, args, options]).encode()
    with _lock:
        process = _process()
        try:
            assert process.stdin is not None  # noqa: S101 - for the type checker
            assert process.stdout is not None  # noqa: S101
            process.stdin.write(struct.pack("<q", len(request)) + request)
            process.stdin.flush()
            size, kind = struct.unpack("<qc", _read(process.stdout, 9))
            content = _read(process.stdout, size)
        except (OSError, EOFError) as error:
            _Drawer.process = None
            raise SpecError("charts", _why(_ended(process))) from error
        except BaseException:  # interrupted halfway: what comes next would be another's answer
            _Drawer.process = None
            _ended(process)
            raise
    if kind == ERROR:
        raise ValueError(content.decode())
    return content.decode() if kind == TEXT else content


def _read(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _process() -> subprocess.Popen[bytes]:
    """Return the process that draws, started where there is none; a forked worker has its own."""
    if _Drawer.process is None or _Drawer.of != os.getpid():
        if _Drawer.of != os.getpid():
            atexit.register(_close)
        _Drawer.process = subprocess.Popen(  # noqa: S603 - our own file
            [sys.executable, "-P", str(Path(__file__).with_name("drawing_process.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C is for us
        )
        _Drawer.of = os.getpid()
    return _Drawer.process


def _close() -> None:
    if _Drawer.process is not None and _Drawer.of == os.getpid():
        _ended(_Drawer.process)
        _Drawer.process = None


def _ended(process: subprocess.Popen[bytes]) -> int:
    """End a process; return its exit code."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # what was not sent yet
                pipe.close()
    try:
        return process.wait(1)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _why(code: int) -> str:
    """Return why the process that draws may have ended, and what to do."""
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return f"the process that draws them ended ({code}); is there enough memory?"
    return (
        f"what draws them needs more address space than the {limit >> 10:,} kB that this process "
        "may have (ulimit -v): lift the limit, or ask for --json or a table instead of a page."
    )
