"""URLs of git hosts and registries as other tools write them -> repository and chart source of a target. Pure."""

from __future__ import annotations

import re

from handler.cli.importing.custom_resource import CustomResource, SourceField
from handler.cli.importing.target_draft import NotATarget, TargetDraft
from handler.config.git_settings import git_url, token_user

_USERINFO = re.compile(r"^(https?://)[^/]*@")


def put_repository(part: TargetDraft, found: SourceField) -> str:
    """Take over a git URL, without credentials that it holds; return it. Raises NotATarget: no target can follow it."""
    given = found.text()
    url = git_url(given)
    clean = _USERINFO.sub(r"\1", url)
    text = "rewritten from host:path" if url != given else ""
    if clean != url:
        text = "held credentials, which aren't printed: put the password into GIT_TOKEN"
        part.put("repository.auth", {"basic": {"username": token_user(clean), "password": {"env": "GIT_TOKEN"}}})
    if not part.take(found, "repository.url", clean, "url", text):
        raise NotATarget("has a URL that no target can follow")
    if clean.startswith("ssh://"):
        part.put("repository.auth", {"ssh": {"privateKey": {"env": "GIT_SSH_KEY"}, "knownHosts": "/etc/anneal/known_hosts"}})
    return clean


def url_part(url: str) -> TargetDraft:
    """Return the repository and branch that a flag names. Raises NotATarget."""
    part = TargetDraft()
    named = CustomResource({"url": url}, "command line")
    put_repository(part, named.fields.at("url"))
    part.put("revision", {"branch": "main"})
    return part
