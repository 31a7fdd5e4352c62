"""Logs: one JSON object a line, plain lines on a terminal. Control characters are escaped, lengths capped.

Facts travel as `extra={"fields": {...}}`; the message stays a constant that can be searched for. What libraries say (their loggers,
Python's warnings, the end of a thread) goes the same way, so that nothing of it reaches standard error raw.

Law: no text is compared with a secret. A library's line has what stands in its code (the place, the text around its values), never a value.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TextIO

from handler.model import failure_trace

MAX_TEXT = 2000
MAX_TRACE = 8000
MAX_ITEMS = 100
MAX_DEPTH = 5

_OURS = "anneal"
_LOG = logging.getLogger("anneal.library")


def configure(stream: TextIO | None = None, level: int = logging.INFO, *, plain: bool = False) -> None:
    """Send every log record of the process to `stream` (default: standard error).

    `level`: of our own loggers; libraries are silent below INFO, where they print bodies and headers. `plain`: readable lines, not JSON.
    """
    target = stream or sys.stderr
    handler = logging.StreamHandler(target)
    handler.setFormatter(PlainFormatter() if plain or target.isatty() else JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(level, logging.INFO))
    logging.getLogger(_OURS).setLevel(level)
    warnings.showwarning = _warned
    threading.excepthook = _ended
    sys.excepthook = _died
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # our own errors report its retries
    logging.getLogger("botocore").setLevel(logging.ERROR)  # so is where it found no credentials


def _warned(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_more: object, **_named: object) -> None:  # noqa: ARG001 - Python's signature
    """Log a warning by its kind and the code that it is about."""
    _LOG.warning("a library warns", extra={"fields": {"warning": category.__name__, "place": failure_trace.place(filename, lineno)}})


def _died(_kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
    _LOG.critical("the process ended unexpectedly", exc_info=error)


def _ended(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_value and failed.exc_type is not SystemExit:
        _LOG.error("a thread ended unexpectedly", exc_info=failed.exc_value)


class JsonFormatter(logging.Formatter):
    """One JSON object a record. ASCII only: ESC, newlines, U+2028 and lone surrogates are all escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return json.dumps(self.facts(record))

    def facts(self, record: logging.LogRecord) -> dict[str, Any]:
        """Return what a record says, capped. Its own keys win over a field of the same name."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        line: dict[str, Any] = {"time": moment, "level": record.levelname.lower(), "logger": record.name}
        line["message"] = _text(_said(record))
        for key, value in getattr(record, "fields", {}).items():
            line.setdefault(str(key), _value(value, MAX_DEPTH))
        if not _is_ours(record):
            line["place"] = failure_trace.place(record.pathname, record.lineno)
        if record.exc_info and record.exc_info[1]:
            line["trace"] = failure_trace.trace(record.exc_info[1])[-MAX_TRACE:]  # the end of a trace matters most
        return line


def _is_ours(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] == _OURS


def _said(record: logging.LogRecord) -> str:
    """Return our message, or the text around the values of a library's; without values a library's text may be one itself."""
    if _is_ours(record):
        return record.getMessage()
    return str(record.msg) if record.args else ""


def _value(value: object, depth: int) -> Any:
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return round(value, 4)
    if depth and isinstance(value, Mapping):
        return {_text(str(key)): _value(item, depth - 1) for key, item in list(value.items())[:MAX_ITEMS]}
    if depth and isinstance(value, (list, tuple, set, frozenset)):
        return [_value(item, depth - 1) for item in list(value)[:MAX_ITEMS]]
    return _text(str(value))


def _text(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…"


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
