"""The process that draws charts, started by `windtunnel.report.renderer`; imports nothing of ours.

A request is a name of vl_convert's, arguments and options as JSON; an answer is one byte for what
it is (text, bytes, an error's text) and its content. Both come after their length, 8 bytes.
"""

import json
import signal
import struct
import sys
from typing import BinaryIO

TEXT, BYTES, ERROR = b"t", b"b", b"e"


def answer(source: BinaryIO, sink: BinaryIO) -> None:
    """Draw until the other side is gone."""
    import vl_convert

    while len(head := source.read(8)) == 8:  # noqa: PLR2004 - bytes of a length
        name, args, options = json.loads(source.read(struct.unpack("<q", head)[0]))
        try:
            made = getattr(vl_convert, name)(*args, **options)
            kind, content = (TEXT, made.encode()) if isinstance(made, str) else (BYTES, bytes(made))
        except ValueError as error:
            kind, content = ERROR, str(error).encode()
        sink.write(struct.pack("<q", len(content)) + kind + content)
        sink.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other side's business
    answer(sys.stdin.buffer, sys.stdout.buffer)
