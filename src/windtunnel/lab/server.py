"""Serving the lab: one process on this machine, for browsers on this machine, without the network.

The page's scripts, styles and fonts come from marimo's own files; it asks for nothing else.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError
from windtunnel.lab.bench import put_up

if TYPE_CHECKING:
    from windtunnel.lab.bench import Bench

#: Browsers on this machine alone reach it.
HOST = "127.0.0.1"


def check_installed() -> None:
    """Check that what serves the page is there.

    Raises:
        SpecError: it is not.
    """
    try:
        import marimo  # noqa: F401
    except ImportError as error:
        raise SpecError("lab", "needs marimo: pip install 'windtunnel[lab]'.") from error


def listen(port: int) -> socket.socket:
    """Return a socket that listens on this machine.

    Args:
        port: 0 = any that is free.

    Raises:
        SpecError: the port is taken, or not allowed.
    """
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        message = f"found {port}: {error.strerror}; expected a free port, or 0 for any."
        raise SpecError("--port", message) from error
    listening.listen()  # who asks before the page is served waits for it
    return listening


def address(listening: socket.socket) -> str:
    """Return where the page of a listening socket is."""
    return f"http://{HOST}:{listening.getsockname()[1]}/"


def serve(bench: Bench, listening: socket.socket) -> None:
    """Serve the lab until it is interrupted.

    Args:
        bench: what is flown.
        listening: where.

    Raises:
        SpecError: marimo is not installed.
    """
    check_installed()
    import marimo
    import uvicorn
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    put_up(bench)
    page = str(Path(__file__).with_name("app.py"))
    made: Any = marimo.create_asgi_app(quiet=True).with_app(path="", root=page).build()
    # A page of another site that gives itself this machine's address has another name.
    guarded = TrustedHostMiddleware(made, allowed_hosts=[HOST, "localhost"])
    config = uvicorn.Config(guarded, log_level="warning", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listening])
