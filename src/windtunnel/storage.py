"""What a run keeps on disk: files that appear whole, folders for the while, the place of downloads.

Whatever is under way is locked by its process and carries a name by which it is known
(``.windtunnel-....part`` beside a result, ``windtunnel-...`` in the folder for temporary files).
The system drops the locks of a process that ends, however it ends: who writes next to what a
killed run left takes that away. Nothing else is ever removed.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import os
import re
import secrets
import shutil
import stat
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PART = re.compile(r"\.windtunnel-[0-9a-f]{16}\.part")
_SCRATCH = re.compile(r"windtunnel-[0-9a-f]{16}")
#: Scratch folders -> the open file that holds the lock, and the process that made them.
_held: dict[Path, tuple[int, int]] = {}


def cache_dir() -> Path:
    """Return the folder that downloads go to: ``WINDTUNNEL_CACHE``, or the system's place for such.

    It may not exist yet.
    """
    if chosen := os.environ.get("WINDTUNNEL_CACHE"):
        return Path(chosen)
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("windtunnel"))


@contextlib.contextmanager
def replacing(target: str | os.PathLike[str], *, durable: bool = False) -> Iterator[Path]:
    """Lend a file beside ``target`` to write to; it takes the target's place when all went well.

    The file exists, empty, and is to be opened by its path. A file that is replaced keeps its
    permissions.

    Args:
        target: what appears whole or not at all.
        durable: also after a loss of power.

    Raises:
        OSError: it cannot be written; it names ``target``, and nothing is left behind.
    """
    place = Path(target)
    with _naming(place):
        _sweep(place.parent.absolute())
        temporary, lock = _new_file(place.parent)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(lock, stat.S_IMODE(place.stat().st_mode))
            with _naming(place, temporary):
                yield temporary
                if durable:
                    os.fsync(lock)
                temporary.replace(place)
        finally:
            temporary.unlink(missing_ok=True)
            os.close(lock)


@contextlib.contextmanager
def replacing_folder(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Lend a folder beside ``target``; it takes the target's place when all went well.

    Into a folder that is there its files go one by one, each whole; others stay.

    Raises:
        OSError: it cannot be written; it names ``target``, and nothing is left behind.
    """
    place = Path(target)
    with _naming(place):
        _sweep(place.parent.absolute())
        temporary = place.parent / f".windtunnel-{secrets.token_hex(8)}.part"
        temporary.mkdir()
        lock = _locked(temporary)
        try:
            with _naming(place, temporary):
                yield temporary
                if not place.exists():
                    temporary.rename(place)
                    return
                for path in sorted(temporary.iterdir()):
                    path.replace(place / path.name)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            os.close(lock)


def scratch_folder() -> Path:
    """Return a new folder for what memory cannot hold, in the folder for temporary files.

    It is removed by `drop_scratch`, at the latest when the process ends.

    Raises:
        OSError: it cannot be made; it names the folder for temporary files.
    """
    parent = Path(tempfile.gettempdir())
    with _naming(parent):
        _sweep(parent)
        folder = parent / f"windtunnel-{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        if not _held:
            atexit.register(drop_all_scratch)
        _held[folder] = _locked(folder), os.getpid()
    return folder


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Lend a folder as `scratch_folder` makes one."""
    folder = scratch_folder()
    try:
        yield folder
    finally:
        drop_scratch(folder)


def drop_scratch(folder: Path) -> None:
    """Remove a folder that `scratch_folder` made, with all that is in it."""
    lock, owner = _held.pop(folder, (0, 0))
    if owner == os.getpid():  # a forked worker knows of it, too
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def drop_all_scratch() -> None:
    """Remove every folder that `scratch_folder` made in this process."""
    for folder in list(_held):
        drop_scratch(folder)


def _new_file(folder: Path) -> tuple[Path, int]:
    """Make a locked file; another process may sweep it away before it is locked."""
    while True:
        path = folder / f".windtunnel-{secrets.token_hex(8)}.part"
        lock = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
        if _lock(lock) and path.exists():
            return path, lock
        os.close(lock)


def _locked(folder: Path) -> int:
    """Return an open file that holds a folder's lock; the folder is made again where it was swept.

    Raises:
        OSError: the folder cannot be opened.
    """
    while True:
        folder.mkdir(mode=0o777 if folder.suffix else 0o700, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        if _lock(lock) and folder.exists():
            return lock
        os.close(lock)


def _lock(file: int) -> bool:
    """Lock an open file; where the file system has no locks, nothing is ever swept."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


@functools.cache  # once in a process, or a study of many runs would look at each other's files
def _sweep(folder: Path) -> None:
    """Remove what killed runs of this user left in a folder."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _PART.fullmatch(entry.name) or _SCRATCH.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _remove_if_left(entry)


def _remove_if_left(entry: os.DirEntry[str]) -> None:
    """Remove a file or folder that no process holds.

    Raises:
        OSError: it is gone, another user's, or locked.
    """
    if entry.is_symlink() or entry.stat(follow_symlinks=False).st_uid != os.geteuid():
        return
    file = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)
        else:
            Path(entry.path).unlink()
    finally:
        os.close(file)


@contextlib.contextmanager
def _naming(place: Path, temporary: Path | None = None) -> Iterator[None]:
    """Let errors of the system name the file that the user knows: a full disk names none."""
    try:
        yield
    except OSError as error:
        named = str(error.filename or "")
        ours = not named or _PART.fullmatch(Path(named).name) is not None
        ours = ours or (temporary is not None and named.startswith(str(temporary)))
        if not ours or error.errno is None:  # those of the network have no number
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(place)) from error
