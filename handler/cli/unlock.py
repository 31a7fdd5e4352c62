"""`anneal unlock`: frees the Lease of a worker that died. One that still renews keeps it."""

from __future__ import annotations

from handler.cli import reports
from handler.cli.session import Session


def unlock(session: Session, target: str | None) -> int:
    """Free the Lease of TARGET when its holder doesn't renew it; watches for one Lease duration at most."""
    chosen = session.target(target)
    lock = session.handler.lock(chosen)
    with session.output.working(f"watching the Lease of {chosen.name}"):
        holder = lock.force_unlock()
    if session.output.as_json:
        session.output.document({"target": chosen.name, "freed": holder})
    session.output.line(f"{chosen.name}: freed from {holder}" if holder else f"{chosen.name}: nobody held it", "good")
    return reports.DONE_CODE
