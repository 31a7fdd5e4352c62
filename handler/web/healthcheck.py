"""The health check of a container: `python -m handler.web.healthcheck [HOST:PORT]` ends with 0 if `/readyz` answers 200 there, else with 1.

It needs no program but Python's own, and loads nothing of the door. Where it asks: the argument, else ANNEAL_BIND, as `anneal serve`.
"""

from __future__ import annotations

import http.client
import os
import sys
from collections.abc import Mapping, Sequence

from handler.web import BIND

PATIENCE = 4.0  # seconds; the check as a whole is given five
_EVERYWHERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}


def unwell(bind: str) -> str:
    """Ask whether web process and worker are there; return what is wrong, empty: nothing. `bind`: `host:port`, as served."""
    host, _, port = bind.rpartition(":")
    host = host.strip("[]")
    try:
        connection = http.client.HTTPConnection(_EVERYWHERE.get(host, host), int(port), timeout=PATIENCE)
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        said = answer.read(1000).decode(errors="replace").strip()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"{bind}: {type(error).__name__}: {error}"
    return "" if answer.status == 200 else f"{bind}: {answer.status} {said}"


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Check; return the exit status. What is wrong goes to standard error, which container engines keep."""
    wrong = unwell(arguments[0] if arguments else environ.get("ANNEAL_BIND") or BIND)
    if wrong:
        sys.stderr.write(f"{wrong}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
