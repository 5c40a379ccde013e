"""Request logs of vLLM: what was asked for, and when it was queued and answered."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from windtunnel.errors import TraceError
from windtunnel.serving.request_traces import RequestTrace
from windtunnel.serving.token_formats import vllm_rows

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True)
class RequestLog:
    """Requests with measured times, in order of arrival.

    Attributes:
        requests: as they were queued, s from the first.
        first, last: when their first and last tokens came, shape (n,), s on the same clock.
    """

    requests: RequestTrace
    first: np.ndarray
    last: np.ndarray

    def latencies(self) -> dict[str, np.ndarray]:
        """Return measured ttft, tpot (NaN for one token) and e2e, shape (n,) each, s."""
        output = self.requests.output_tokens
        further = np.where(output > 1, output - 1.0, np.nan)
        arrival = self.requests.arrival
        tpot = (self.last - self.first) / further
        return {"ttft": self.first - arrival, "tpot": tpot, "e2e": self.last - arrival}


def read_request_log(path: str | Path) -> RequestLog:
    """Read JSON lines, plain or gzipped, of ``input_toks`` and so on; see `vllm_rows`.

    Raises:
        TraceError: it cannot be read, or a value is wrong.
    """
    file = Path(path)
    try:
        with file.open("rb") as raw:
            gzipped = raw.read(2) == _GZIP
        opener = gzip.open if gzipped else open
        with opener(file, "rt", encoding="utf-8-sig") as lines:
            rows = vllm_rows(file, lines)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise TraceError(str(file), "a readable request log", hint=str(error)) from error
    rows = rows[np.argsort(rows[:, 2], kind="stable")]
    start = rows[0, 2]
    requests = RequestTrace(
        file.name,
        "vllm_log",
        rows[:, 2] - start,
        prompt_tokens=rows[:, 0].astype(np.int64),
        output_tokens=rows[:, 1].astype(np.int64),
    )
    return RequestLog(requests, rows[:, 3] - start, rows[:, 4] - start)
