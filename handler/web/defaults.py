"""Defaults of `anneal serve`, for the command line, the web process and the health check; importing them loads nothing."""

from __future__ import annotations

BIND = "127.0.0.1:8080"
"""Where it listens."""
MAX_REQUESTS = 100_000
"""After so many the web process is replaced by a new one, should something in it grow; 0: never."""
