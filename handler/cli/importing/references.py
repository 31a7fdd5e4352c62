"""What resources name each other by, across files: found in the input, or named with the command that prints it. Pure."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from handler.cli.importing.custom_resource import LOST, SET, CustomResource, FieldNote, SourceField
from handler.cli.importing.target_draft import NotATarget, TargetDraft
from handler.config.git_settings import git_url, token_user
from handler.model.advice import advice
from handler.model.errors import Problem
from handler.model.names import Identity, kubectl
from handler.model.tree import printable

SOURCES = "source.toolkit.fluxcd.io"
KUSTOMIZE = "kustomize.toolkit.fluxcd.io"


@dataclass(slots=True)
class References:
    """All resources of the input. `used`: by `id`, what another one names.

    `repository`: the URL of git for what has none of its own, as it was named; `around`: that of the checkout that the input lies in.
    """

    resources: Sequence[CustomResource]
    repository: str = ""
    around: str = ""
    used: set[int] = field(default_factory=set)
    _named: dict[tuple[str, str, str, str], CustomResource] = field(default_factory=dict)
    _parts: dict[int, TargetDraft] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in self.resources:
            self._named.setdefault((each.group, each.kind, each.namespace, each.name), each)

    def find(self, kind: str, namespace: str, name: str, user: CustomResource, group: str = SOURCES) -> CustomResource:
        """Return what a resource refers to. Raises NotATarget, with the command that prints it."""
        found = self.look(kind, namespace, name, group)
        if found is None:
            identity = Identity(group, kind, namespace, name)
            seen = f"refers to {printable(str(identity), 400)}, which isn't in the input"
            way = advice("give it, too; this prints it: {text}", kubectl("get", identity, "-o", "yaml"))
            raise NotATarget(seen, Problem(str(user), seen, user.place(), way))
        return found

    def look(self, kind: str, namespace: str, name: str, group: str = SOURCES) -> CustomResource | None:
        """Return the resource of this name, which is used then, or None."""
        found = self._named.get((group, kind, namespace, name))
        if found:
            self.used.add(id(found))
        return found

    def part(self, source: CustomResource, read: Callable[[CustomResource], TargetDraft]) -> TargetDraft:
        """Return what a resource gives to targets, read once. Raises NotATarget."""
        if id(source) not in self._parts:
            with reading(source):
                self._parts[id(source)] = read(source)
        return self._parts[id(source)]

    def home(self, user: CustomResource, candidates: Sequence[TargetDraft]) -> TargetDraft:
        """Return the repository of a resource whose chart isn't in git: the named one, the only candidate, or the checkout's.

        Raises NotATarget, with the flag that names one.
        """
        urls = {str(each.settings.get("repository")) for each in candidates}
        if self.repository:
            return _named(user, self.repository, "that of --repository")
        if len(urls) == 1:
            return candidates[0]
        if self.around:
            return _named(user, self.around, "that of the checkout which the input lies in")
        seen = f"has a chart that isn't in git, and a target follows a repository; the input has {len(urls) or 'none'}"
        way = "name the one that holds its values, or that is to hold them: --repository https://git.example.com/acme/shop.git"
        raise NotATarget(seen, Problem(str(user), seen, user.place(), way))


def _named(user: CustomResource, url: str, text: str) -> TargetDraft:
    user.notes.append(FieldNote(SET, str(user), "", user.place(), text, "repository"))
    return url_part(url)


@contextlib.contextmanager
def reading(source: CustomResource) -> Iterator[None]:
    """Note on a resource that nothing can be taken from it, and raise NotATarget that says so of the one that refers to it."""
    try:
        yield
    except NotATarget as refused:
        source.note(LOST, (), refused.why)
        raise NotATarget(f"takes from {source}, which {refused.why}", refused.problem) from None


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
