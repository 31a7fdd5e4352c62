"""`anneal render`: what a commit declares, whatever the cluster has of it; as YAML, JSON, or as Locutus prints it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

import yaml

from handler.cli import reports
from handler.cli.filenames import from_files
from handler.cli.session import Session
from handler.config.settings import Target
from handler.model.field_masking import MASKED, is_sensitive, masked
from handler.model.hidden_fields import without
from handler.model.render import Rendered
from handler.model.tree import CommitInfo
from handler.plan.compare import SECRET
from handler.render.set_digest import set_digest


@from_files()
def render(session: Session, target: str | None, commit: str, rollout: bool, show_secrets: bool, placeholders: bool) -> int:
    """Print the objects that a commit of TARGET declares, as YAML or JSON."""
    session.placeholders = placeholders
    chosen = session.target(target)
    session.sandbox.weak = True  # it only shows
    with session.output.working(f"rendering {chosen.name}"):
        info, rendered = rendered_at(session, chosen, commit, told=show_secrets)
    for note in rendered.notes:
        session.output.note(f"note: {note}")
    if rollout:
        session.output.text(one_line(flat(rendered, show_secrets=show_secrets)) + "\n")
        return reports.DONE_CODE
    bodies = [(manifest.body() if show_secrets else masked(without(manifest)), manifest.place) for manifest in rendered.manifests]
    if session.output.as_json:
        items = [{"place": place, "object": body} for body, place in bodies]
        about = {"target": chosen.name, "commit": info, "digest": set_digest(rendered)}
        session.output.document({**about, "items": items, "notes": rendered.notes})
    else:
        for body, place in bodies:
            session.output.text(f"---\n# {place}\n{as_yaml(body)}")
    return reports.DONE_CODE


def rendered_at(session: Session, target: Target, commit: str = "", *, told: bool = False) -> tuple[CommitInfo, Rendered]:
    """Fetch and render a commit, or the head. `told`: see `RenderRequest`. Raises AnnealError."""
    handler = session.handler
    session.sandbox.start()
    source = handler.source(target)
    sha = commit or source.head(target.revision).commit
    tree = source.fetch(sha, target.path)
    return tree.commit, handler.render(target, tree, older=bool(commit), told=told)


# --- as Locutus prints it
def flat(rendered: Rendered, *, show_secrets: bool = False) -> dict[str, Any]:
    """Return the objects by how a Rollout may call them, and the Rollout, None where there is none."""
    bodies = {each.identity: each.body() if show_secrets else masked(without(each)) for each in rendered.manifests}
    shown = {key: _one([bodies[identity] for identity in found]) for key, found in sorted(rendered.keys.items())}
    rollout = (rendered.rollout.body() if show_secrets else without(rendered.rollout)) if rendered.rollout else None
    of_secrets = {key for key, found in rendered.keys.items() if any(each.group_kind == SECRET for each in found)}
    return {"objects": shown, "rollout": rollout if show_secrets else _uncompared(rollout, of_secrets)}


def _uncompared(value: Any, of_secrets: Collection[str], *, within: bool = False) -> Any:
    """Return a Rollout without what its checks compare fields of a Secret with. `within`: this is of a step of one."""
    if isinstance(value, list):
        return [_uncompared(each, of_secrets, within=within) for each in value]
    if not isinstance(value, dict):
        return value
    if within and is_sensitive(SECRET, str(value.get("path", "metadata.name")).strip("{}.$")):
        return {**value, "value": {"static": MASKED}}
    within = within or value.get("object") in of_secrets
    return {key: _uncompared(each, of_secrets, within=within) for key, each in value.items()}


def _one(items: list[dict[str, Any]]) -> dict[str, Any]:
    return items[0] if len(items) == 1 else {"apiVersion": "v1", "kind": "List", "items": items}


def one_line(value: dict[str, Any]) -> str:
    """Write it as one line; ASCII, for a terminal obeys some other letters."""
    return json.dumps(value, separators=(",", ":"))


# --- as YAML
class _Dumper(yaml.SafeDumper):
    """Writes YAML that Go's decoders read as what it was: a text that could be taken for anything else is quoted."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - PyYAML's signature
        """Indent list items below their key, as Kubernetes' documentation does."""
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        """Write every value out."""
        return True


_SAFE = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*(?: [A-Za-z][A-Za-z0-9_./-]*)*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"})


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    tag = "tag:yaml.org,2002:str"
    if "\n" in text:
        return dumper.represent_scalar(tag, text, style="|")
    safe = _SAFE.fullmatch(text) and text.lower() not in _WORDS
    return dumper.represent_scalar(tag, text, style=None if safe else '"')


_Dumper.add_representer(str, _text)


def as_yaml(document: Any) -> str:
    """Return one YAML document, its keys in their own order."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20)
