"""Serving the lab: one process on this machine, for browsers on this machine, without the network.

The page's scripts, styles and fonts come from marimo's own files; it asks for nothing else.
"""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from windtunnel import storage
from windtunnel.errors import SpecError
from windtunnel.lab.bench import put_up
from windtunnel.lab.gate import Gate

if TYPE_CHECKING:
    from types import FrameType

    from windtunnel.lab.bench import Bench

#: Browsers on this machine alone reach it.
HOST = "127.0.0.1"
#: What a tab that was closed held is kept so long, s: for one that is loaded again.
_TTL = 5
#: Largest message of the page, bytes; most connections at once.
_MESSAGE, _CONNECTIONS = 1 << 20, 100


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
    """Return where the page of a listening socket is, without what opens it."""
    return f"http://{HOST}:{listening.getsockname()[1]}/"


class Server:
    """A lab that is ready to be served.

    Args:
        bench: what is flown.
        listening: where.

    Attributes:
        address: what opens the lab, once, in one browser.

    Raises:
        SpecError: marimo is not installed.
    """

    def __init__(self, bench: Bench, listening: socket.socket) -> None:
        check_installed()
        import marimo

        put_up(bench)
        page = str(Path(__file__).with_name("app.py"))
        app = marimo.create_asgi_app(quiet=True, session_ttl=_TTL, skew_protection=False)
        gate = Gate(app.with_app(path="", root=page).build(), listening.getsockname()[1])
        self._gate: Any = gate
        self._listening = listening
        self.address = f"{address(listening)}?token={gate.token}"

    def serve(self) -> None:
        """Serve until SIGINT or SIGTERM, which end the process.

        A flight or a picture under way is in a thread that cannot be stopped from outside, and the
        server would wait for it; nothing here is worth waiting for.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _leave)
        import uvicorn

        config = uvicorn.Config(
            self._gate,
            log_level="warning",
            server_header=False,
            ws_max_size=_MESSAGE,
            limit_concurrency=_CONNECTIONS,
        )
        server = uvicorn.Server(config)
        server.handle_exit = _leave
        server.run(sockets=[self._listening])


def _leave(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - a signal's handler
    storage.drop_all_scratch()
    os._exit(128 + number)
