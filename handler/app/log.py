"""Logs: one JSON object a line, plain lines on a terminal. Secrets are masked, control characters escaped, lengths capped.

Facts travel as `extra={"fields": {...}}`; the message stays a constant that can be searched for. What libraries say (their loggers,
Python's warnings, the end of a thread) goes the same way, so that nothing of it reaches standard error raw.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TextIO

MAX_TEXT = 2000
MAX_TRACE = 8000
MAX_ITEMS = 100
MAX_DEPTH = 5

Mask = Callable[[str], str]
_LOG = logging.getLogger("anneal.library")


def configure(mask: Mask, stream: TextIO | None = None, level: int = logging.INFO, *, plain: bool = False) -> None:
    """Send every log record of the process to `stream` (default: standard error), each text through `mask` first.

    `level`: of our own loggers; libraries are silent below INFO, where they print bodies and headers. `plain`: readable lines, not JSON.
    """
    target = stream or sys.stderr
    handler = logging.StreamHandler(target)
    handler.setFormatter(PlainFormatter(mask) if plain or target.isatty() else JsonFormatter(mask))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.INFO))
    logging.getLogger("anneal").setLevel(level)
    warnings.showwarning = _warned
    threading.excepthook = _ended
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # its debug and retry lines name URLs and headers
    logging.getLogger("botocore").setLevel(logging.ERROR)  # where credentials were found, and traces of what our own errors say


def _warned(message: Warning | str, category: type[Warning], *_place: object, **_more: object) -> None:
    """Log a warning without the place on this machine that Python prints."""
    _LOG.warning("a library warns", extra={"fields": {"warning": category.__name__, "seen": str(message)}})


def _ended(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value and failed.exc_type is not SystemExit:
        _LOG.error("a thread ended unexpectedly", exc_info=failed.exc_value)


class JsonFormatter(logging.Formatter):
    """One JSON object a record. ASCII only: ESC, newlines, U+2028 and lone surrogates are all escaped."""

    def __init__(self, mask: Mask) -> None:
        super().__init__()
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return json.dumps(self.facts(record))

    def facts(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return what a record says, masked and capped. Its own keys win over a field of the same name."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        line: dict[str, Any] = {"time": moment, "level": record.levelname.lower(), "logger": record.name}
        line["message"] = self._text(record.getMessage())
        for key, value in getattr(record, "fields", {}).items():
            line.setdefault(str(key), self._value(value, MAX_DEPTH))
        if record.exc_info:
            # The end of a trace matters most.
            line["trace"] = self._mask(self.formatException(record.exc_info))[-MAX_TRACE:]
        return line

    def _value(self, value: object, depth: int) -> Any:
        if value is None or isinstance(value, (bool, int)):
            return value
        if isinstance(value, float):
            return round(value, 4)
        if depth and isinstance(value, Mapping):
            items = list(value.items())[:MAX_ITEMS]
            return {self._text(str(key)): self._value(item, depth - 1) for key, item in items}
        if depth and isinstance(value, (list, tuple, set, frozenset)):
            return [self._value(item, depth - 1) for item in list(value)[:MAX_ITEMS]]
        return self._text(str(value))

    def _text(self, text: str) -> str:
        masked = self._mask(text)
        return masked if len(masked) <= MAX_TEXT else masked[:MAX_TEXT] + "…"


class PlainFormatter(JsonFormatter):
    """One readable line a record, for a person at a terminal; a trace follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line. Values stay JSON, so that nothing from outside reaches the terminal unescaped."""
        line = self.facts(record)
        moment, level, message = line.pop("time")[11:19], line.pop("level"), line.pop("message")
        trace = line.pop("trace", "")
        del line["logger"]
        rest = " ".join(f"{_plain(key)}={json.dumps(value)}" for key, value in line.items() if value not in ("", None, [], {}))
        lines = [f"{moment} {level:7} {_plain(message)} {rest}".rstrip(), *map(_plain, trace.splitlines())]
        return "\n".join(lines)


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in text)
