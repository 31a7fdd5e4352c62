"""What kustomize would fetch, fetched once for good: a repository's directory with all that it builds on, or one file.

Law: a repository is read as any other: its names, links and sizes are judged before anything is written. Credentials go to the host that
the configuration names them for.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from handler.cli.session import Session
from handler.config.git_settings import Repository, git_url
from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, GitUnavailable, ManifestInvalid, SourceRefused
from handler.model.render import Called
from handler.model.tree import Tree
from handler.render.folders import KUSTOMIZATIONS, inside
from handler.render.kustomize.kustomize_closure import Closure
from handler.render.kustomize.remotes import RemoteDirectory, is_remote_file, remote_directory, shown
from handler.render.tree_files import TreeFiles
from handler.source.git_host import GitHost
from handler.source.http_files import fetch_file

_FILES = (".yaml", ".yml", ".json")
_ODD = re.compile(r"[^\w.@+-]+")


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a URL holds. `root`, `place`: where its files are written and what an entry names, below `vendor`; `origin`: for people."""

    root: str
    place: str
    origin: str
    files: Mapping[str, bytes] = field(repr=False)


class RemoteBases:
    """Fetches; each repository and file once."""

    def __init__(self, session: Session) -> None:
        """Ask nothing yet."""
        self._session = session
        self._known: dict[str, Fetched] = {}

    def fetch(self, text: str) -> Fetched:
        """Return what an entry names. Raises AnnealError: it isn't there, the host refuses, or something of it does."""
        if text not in self._known:
            self._known[text] = self._fetched(text)
        return self._known[text]

    def _fetched(self, text: str) -> Fetched:
        remote = remote_directory(text)
        if remote is None or (is_remote_file(text) and not remote.ref and urlsplit(text).path.endswith(_FILES)):
            return _file(text)
        try:
            return self._directory(remote)
        except (GitUnavailable, AccessDenied) as no_repository:
            if not is_remote_file(text) or remote.ref:
                raise
            try:
                return _file(text)
            except AnnealError:
                raise no_repository from None

    def _directory(self, remote: RemoteDirectory) -> Fetched:
        """Fetch a directory of a repository with everything that its kustomization builds on."""
        repository = self._repository(remote.url)
        host = GitHost(repository)
        try:
            head = host.guess(remote.ref)
            tree = host.fetch(head.commit)
            files = self._closure(tree, remote)
        finally:
            host.close()
        root = posixpath.join(*_segments(urlsplit(repository.url).hostname or "", urlsplit(repository.url).path.removesuffix(".git")))
        root = f"{root}@{'-'.join(_segments(remote.ref))}" if remote.ref else root
        return Fetched(root, posixpath.normpath(posixpath.join(root, remote.path)), f"commit {head.commit}", files)

    def _closure(self, tree: Tree, remote: RemoteDirectory) -> dict[str, bytes]:
        """Return the files that a directory's kustomization builds on. Raises ManifestInvalid: an entry leads nowhere."""
        path = posixpath.normpath(remote.path) if remote.path else ""
        files = TreeFiles(tree)
        closure = Closure(tree, self._session.sandbox, Called(), charts_allowed=True, files=files, remote_allowed=True)
        problems = closure.run("" if path == "." else path)
        if problems:
            raise ManifestInvalid(*(replace(each, subject=f"{shown(remote.url)}: {each.subject}") for each in problems))
        charts = [use.directory for use in closure.charts if not use.wanted]
        needed = {*closure.readings, *closure.named}
        files.blobs = {path: oid for path, oid in files.blobs.items() if path in needed or any(inside(path, each) for each in charts)}
        return files.contents()

    def _repository(self, url: str) -> Repository:
        """Return a repository to ask, signed in to as the configuration does for the same host. Raises ConfigInvalid."""
        url = git_url(url)
        if url.startswith("file:"):
            raise ConfigInvalid.of(shown(url), "is a path of this machine", fix="copy it into the repository by hand")
        for known in (target.repository for target in self._session.operators_targets):
            if (urlsplit(known.url).scheme, urlsplit(known.url).netloc) == (urlsplit(url).scheme, urlsplit(url).netloc):
                return replace(known, url=url, aliases=())
        return Repository(url)


def _file(url: str) -> Fetched:
    """Fetch one file, and give it a kustomization: kustomize takes files from elsewhere as a directory only."""
    data = fetch_file(url)
    parts = urlsplit(url)
    segments = _segments(parts.hostname or "", parts.path)
    name = segments[-1] if segments[-1].endswith(_FILES) and segments[-1] not in KUSTOMIZATIONS else f"{segments[-1]}.yaml"
    if len(segments) == 1:
        raise SourceRefused.of(shown(url), "names no file")
    listed = json.dumps({"resources": [name]}).encode() + b"\n"
    root = "/".join(segments)
    return Fetched(root, root, f"sha256 {hashlib.sha256(data).hexdigest()}", {name: data, KUSTOMIZATIONS[0]: listed})


def _segments(*texts: str) -> list[str]:
    """Return the parts of paths as names of directories that nothing can trick."""
    parts = (_ODD.sub("-", part).strip(".-") for text in texts for part in text.split("/"))
    return [part for part in parts if part]
