"""`anneal retarget`: accepts that a target's repository, installation or cluster is another than its record says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handler.cli import reports
from handler.cli.session import Session
from handler.model.errors import StateInvalid
from handler.state.record import State


def retarget(session: Session, target: str | None, yes: bool) -> int:
    """Accept the repository, installation and cluster that TARGET's configuration names now."""
    chosen = session.target(target)
    handler, output = session.handler, session.output
    store = handler.store(chosen)
    state = store.read().state
    if state is None:
        raise StateInvalid.of(f"target {chosen.name}", "has no record here: it never ran", fix=f"anneal apply {chosen.name}")
    wanted: dict[str, Any] = {
        "repository": chosen.repository.url,
        "installation": handler.settings.installation,
        "cluster_uid": handler.objects(chosen).cluster_uid(),
    }
    moved = {} if state.fresh else {key: [getattr(state, key), value] for key, value in wanted.items() if getattr(state, key) != value}
    for key, (was, becomes) in moved.items():
        output.line(f"{key.replace('_', ' ')}: {was} → {becomes}")
    asked = bool(moved) and not yes
    if asked and not (output.interactive and output.confirm(f"Let {chosen.name} take that over, with all its objects?")):
        output.line("nothing was changed; -y accepts it without asking", "warn", err=True)
        return reports.FAILED

    def accept(now: State) -> State:
        # Another repository means that what was read no longer says anything: the next run renders and plans fully.
        status = replace(now.status, refusal=None)
        return replace(now, **wanted, status=status, reads="", settings="", held=None, approval=None, pin=None)

    if moved:
        store.update(accept)
    output.line(f"{chosen.name}: retargeted; next: anneal plan {chosen.name}" if moved else f"{chosen.name}: nothing differs", "good")
    if output.as_json:
        output.document({"target": chosen.name, "accepted": moved})
    return reports.DONE_CODE
