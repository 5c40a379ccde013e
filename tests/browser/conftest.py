"""Chromium, watched: a page that asks for anything remote, or complains, fails its test."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

#: For a process that also loads marimo, on a machine that may be busy, s.
_PATIENCE = 60


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test of this folder; skip them unless they were asked for."""
    asked = "browser" in (config.getoption("markexpr") or "")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if not asked:
                item.add_marker(pytest.mark.skip(reason="runs in Chromium (make test-browser)"))


@dataclass
class Watched:
    """A page and what it did.

    Attributes:
        page: Playwright's page.
        complaints: errors and warnings of its console, and exceptions.
        remote: requests that left this machine; all of them are refused.
        dialogs: dialogs that it opened.
    """

    page: Any
    complaints: list[str] = field(default_factory=list)
    remote: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def assert_quiet(self) -> None:
        """Check that nothing was amiss, nothing came from elsewhere, and no name ran as script."""
        assert self.remote == []
        assert self.complaints == []
        assert self.dialogs == []
        assert self.page.evaluate("window.hostile") is None


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The installed Chromium; skips where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs the extra 'browser'")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def watch(chromium: Any) -> Iterator[Callable[..., Watched]]:
    """Open a page: ``watch(width=390, scheme="dark")``; nothing remote is let through."""
    contexts = []

    def opened(width: int = 1280, scheme: str = "light") -> Watched:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        watched = Watched(context.new_page())

        def guard(route: Any) -> None:
            url = route.request.url
            if url.startswith(("file://", "data:", "blob:", "http://127.0.0.1:")):
                route.continue_()
            else:
                watched.remote.append(url)
                route.abort()

        context.route("**/*", guard)
        page = watched.page
        page.on("console", lambda message: _note(watched, message))
        page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        page.on("websocket", lambda socket: _note_socket(watched, socket.url))
        page.on("dialog", lambda dialog: (watched.dialogs.append(dialog.message), dialog.dismiss()))
        return watched

    yield opened
    for context in contexts:
        context.close()


def _note(watched: Watched, message: Any) -> None:
    # Marimo preloads pictures for the case that the connection is lost.
    if "preloaded using link preload but not used" in message.text:
        return
    if message.type in {"error", "warning"}:
        watched.complaints.append(message.text)


def _note_socket(watched: Watched, url: str) -> None:
    if not url.startswith("ws://127.0.0.1:"):
        watched.remote.append(url)


@dataclass
class Lab:
    """A lab that a process of its own serves.

    Attributes:
        address: what was printed; it opens the lab once.
        process: the process.
        cookie: name and value of what the one who opened it got; empty before.
    """

    address: str
    process: subprocess.Popen[str]
    cookie: tuple[str, str] = ("", "")

    @property
    def page(self) -> str:
        """The address without what opens the lab."""
        return self.address.partition("?")[0]

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.page.rstrip("/").rpartition(":")[2])

    def enter(self) -> None:
        """Open the lab, as the first browser does."""
        with urllib.request.urlopen(self.address, timeout=60) as answer:  # noqa: S310 - ours
            name, _, value = answer.headers["Set-Cookie"].partition(";")[0].partition("=")
        self.cookie = (name, value)

    def lend_cookie(self, context: Any) -> None:
        """Let a browser be the one that opened the lab; nothing where none has."""
        name, value = self.cookie
        if name:
            cookie = {"name": name, "value": value, "url": self.page, "httpOnly": True}
            context.add_cookies([cookie | {"sameSite": "Strict"}])


@pytest.fixture(scope="session")
def serve() -> Callable[..., AbstractContextManager[Lab]]:
    """Return what lends a lab that a process of its own serves, by the words of its command."""
    pytest.importorskip("marimo", reason="needs the extra 'lab'")
    return _served


@contextmanager
def _served(*words: object) -> Iterator[Lab]:
    command = [sys.executable, "-m", "windtunnel", "lab", *map(str, words), "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    alarm = threading.Timer(_PATIENCE, process.kill)  # a lab that says nothing ends
    alarm.start()
    try:
        assert process.stdout is not None
        text = ""
        while not text.endswith("\n}\n"):
            line = process.stdout.readline()
            assert line, f"the lab ended, and printed {text!r}"
            text += line
        alarm.cancel()
        yield Lab(str(json.loads(text)["url"]), process)
    finally:
        alarm.cancel()
        process.terminate()
        try:
            process.communicate(timeout=_PATIENCE)
        finally:
            process.kill()
            process.communicate()


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str], str]:
    """Write a page and return its file:// address."""

    def write(html: str) -> str:
        path = tmp_path / "page.html"
        path.write_text(html, encoding="utf-8")
        return path.as_uri()

    return write
