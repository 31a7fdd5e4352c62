"""`anneal render`: what a commit declares, whatever the cluster has of it; as YAML, JSON, or as Locutus prints it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import yaml

from handler.cli import reports
from handler.cli.filenames import from_files
from handler.cli.session import Session
from handler.config.secret_mask import Mask
from handler.config.settings import Target
from handler.engine.run.commit_mask import values
from handler.model.field_masking import masked
from handler.model.hidden_fields import without
from handler.model.manifest import Manifest
from handler.model.render import Rendered
from handler.model.tree import CommitInfo
from handler.render.set_digest import set_digest


@from_files()
def render(session: Session, target: str | None, commit: str, rollout: bool, show_secrets: bool, placeholders: bool) -> int:
    """Print the objects that a commit of TARGET declares, as YAML or JSON."""
    session.placeholders = placeholders
    chosen = session.target(target)
    session.sandbox.weak = True  # it only shows
    with session.output.working(f"rendering {chosen.name}"):
        info, rendered = rendered_at(session, chosen, commit)
    for note in rendered.notes:
        session.output.note(f"note: {note}")
    if rollout:
        session.output.text(one_line(flat(rendered, show_secrets=show_secrets)) + "\n")
        return reports.DONE_CODE
    hide = Mask.of(rendered.secrets)
    bodies = [(manifest.body() if show_secrets else _shown(manifest, rendered, hide), manifest.place) for manifest in rendered.manifests]
    if session.output.as_json:
        items = [{"place": place, "object": body} for body, place in bodies]
        about = {"target": chosen.name, "commit": info, "digest": set_digest(rendered)}
        session.output.document({**about, "items": items, "notes": rendered.notes})
    else:
        for body, place in bodies:
            session.output.text(f"---\n# {place}\n{as_yaml(body)}")
    return reports.DONE_CODE


def _shown(manifest: Manifest, rendered: Rendered, hide: Callable[[str], str]) -> dict[str, Any]:
    """Return an object fit to be shown: without what a Secret says, whatever the field is called. `hide`: masks `Rendered.secrets`."""
    shown: dict[str, Any] = _masked_texts(masked(without(manifest.body(), rendered.hidden.get(manifest.identity, ()))), hide)
    return shown


def rendered_at(session: Session, target: Target, commit: str = "") -> tuple[CommitInfo, Rendered]:
    """Fetch and render a commit, or the head. Raises AnnealError."""
    handler = session.handler
    session.sandbox.start()
    source = handler.source(target)
    sha = commit or source.head(target.revision).commit
    tree = source.fetch(sha, target.path)
    return tree.commit, handler.render(target, tree, older=bool(commit))


_NAMES = ("apiVersion", "kind", "name", "namespace")


def _masked_texts(value: Any, hide: Callable[[str], str]) -> Any:
    """Return an object without the texts that it was made from and that no text may show; what names objects stays."""
    if isinstance(value, dict):
        return {key if key in _NAMES else hide(key): each if key in _NAMES else _masked_texts(each, hide) for key, each in value.items()}
    if isinstance(value, list):
        return [_masked_texts(each, hide) for each in value]
    return hide(value) if isinstance(value, str) else value


# --- as Locutus prints it
_COMPARE = ("success", "failure")  # what of a Rollout may repeat what a Secret holds: its checks look into Secrets, too


def flat(rendered: Rendered, *, show_secrets: bool = False) -> dict[str, Any]:
    """Return the objects by how a Rollout may call them, and the Rollout, None where there is none."""
    hide = Mask.of(rendered.secrets)
    bodies = {each.identity: each.body() if show_secrets else _shown(each, rendered, hide) for each in rendered.manifests}
    shown = {key: _one([bodies[identity] for identity in found]) for key, found in sorted(rendered.keys.items())}
    rollout = rendered.rollout.body() if rendered.rollout else None
    return {"objects": shown, "rollout": rollout if show_secrets else _checks_hidden(rollout, Mask.of(values(rendered.manifests)))}


def _checks_hidden(value: Any, hide: Callable[[str], str], *, within: bool = False) -> Any:
    """Return a Rollout with the Secrets' values hidden in its checks (`within`: this is of one)."""
    if isinstance(value, dict):
        return {key: _checks_hidden(each, hide, within=within or key in _COMPARE) for key, each in value.items()}
    if isinstance(value, list):
        return [_checks_hidden(each, hide, within=within) for each in value]
    return hide(value) if within and isinstance(value, str) else value


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
