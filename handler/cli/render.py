"""`anneal render`: what a commit declares, before anything is asked of the cluster."""

from __future__ import annotations

from handler.cli import locutus_output, reports
from handler.cli.filenames import from_files
from handler.cli.session import Session
from handler.cli.yaml_output import as_yaml
from handler.config.settings import Target
from handler.model.field_masking import masked
from handler.model.manifest import digest_of
from handler.model.render import Rendered
from handler.model.tree import CommitInfo


@from_files()
def render(session: Session, target: str | None, commit: str, rollout: bool, show_secrets: bool) -> int:
    """Print the objects that a commit of TARGET declares, as YAML or JSON. Asks no cluster."""
    chosen = session.target(target)
    with session.output.working(f"rendering {chosen.name}"):
        info, rendered = rendered_at(session, chosen, commit)
    if rollout:
        session.output.text(locutus_output.line(locutus_output.flat(rendered, show_secrets=show_secrets)) + "\n")
        return reports.DONE_CODE
    bodies = [(manifest.body(), manifest.place) for manifest in rendered.manifests]
    shown = [(body if show_secrets else masked(body), place) for body, place in bodies]
    if session.output.as_json:
        items = [{"place": place, "object": body} for body, place in shown]
        session.output.document({"target": chosen.name, "commit": info, "digest": digest_of(rendered.manifests), "items": items})
    else:
        for body, place in shown:
            session.output.text(f"---\n# {place}\n{as_yaml(body)}")
    return reports.DONE_CODE


def rendered_at(session: Session, target: Target, commit: str = "") -> tuple[CommitInfo, Rendered]:
    """Fetch and render a commit, or the head. Raises AnnealError."""
    handler = session.handler
    session.sandbox.start()
    source = handler.source(target)
    sha = commit or source.head(target.revision).commit
    tree = source.fetch(sha, target.path)
    return tree.commit, handler.render(target, tree, older=bool(commit))
