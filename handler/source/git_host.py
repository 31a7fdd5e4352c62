"""A repository on a git host: `head` resolves what is followed, `fetch` brings a commit.

Measured with 5,000 files: a whole repository is fastest as one pack of depth 1; one directory is fastest as trees first (`blob:none`), and
its blobs at the first need. A host's capabilities are remembered: later a head is one request, a fetch one or two.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TypeVar

from handler.config.git_settings import Repository, Revision
from handler.model.deadline import left
from handler.model.errors import AnnealError, ConfigInvalid, GitUnavailable, RefNotFound, SourceRefused, TransientError
from handler.model.optional_imports import needed_by
from handler.model.refs import Head, is_commit_id, ref_problem
from handler.model.tree import CommitInfo, printable
from handler.source import git_protocol
from handler.source.ancestry import KnownAncestry, leads_to, parents
from handler.source.bounded_connections import Deadline, Pools
from handler.source.fetch_cache import FetchCache, HeadCache, TreeCache
from handler.source.fetched_tree import FetchedTree
from handler.source.git_objects import COMMIT, Accept, Objects, accept_any, read_commit
from handler.source.host_limits import HostLimits
from handler.source.http_transport import HttpTransport
from handler.source.pack import PackBroken, read_pack
from handler.source.signin import Anonymous, Basic, ReadSecret, SignIn, from_environment
from handler.source.upload_pack import UploadPack

T = TypeVar("T")

_WANTS = 10_000  # of one request: half a megabyte, below the body sizes that proxies commonly accept


class SharedConnections:
    """What one handler's repositories share: the last commits, `most` bytes of them, and one pool a host. Thread-safe."""

    def __init__(self, most: int = HostLimits().cache) -> None:
        self.commits = TreeCache(most)
        self._pools: dict[tuple[str, str, str], Pools] = {}
        self._lock = threading.Lock()

    def pools(self, scheme: str, netloc: str, ca_file: str) -> Pools:
        """Return the connections to a host, made once for all that trust it by the same authorities."""
        with self._lock:
            key = scheme, netloc.lower(), ca_file
            if key not in self._pools:
                self._pools[key] = Pools(scheme, netloc, ca_file)
            return self._pools[key]


class GitHost:
    """One repository. Safe to share between threads; connections and the last commits are kept."""

    def __init__(
        self,
        repository: Repository,
        read: ReadSecret = from_environment,
        limits: HostLimits = HostLimits(),  # noqa: B008 - frozen
        again: ReadSecret | None = None,
        shared: SharedConnections | None = None,
    ) -> None:
        """Prepare; nothing is asked yet. Raises ConfigInvalid: the URL can't be asked or holds credentials.

        `read` is asked for each secret at each need, `again` for one that was refused.
        `shared`: with other repositories; None: its own.
        """
        self._limits = limits
        shared = shared or SharedConnections(limits.cache)
        self._transport = upload_pack(repository, read, limits, again, shared)
        self._offer: git_protocol.Advertisement | None = None
        self._commits = FetchCache(self._fetched, self._transport.subject, limits.total, shared.commits)
        self._looks = HeadCache(self._asked)
        self._ancestry = KnownAncestry(self._led_to)

    def close(self) -> None:
        """Close idle connections."""
        self._transport.close()

    def head(self, revision: Revision, since: float = math.inf) -> Head:
        """Return the branch, tag, highest tag in a range, or commit that a revision names.

        `since`: an answer to another target's question of this monotonic second or later will do; infinity: ask now. Raises
        RefNotFound: no such ref, or no tag in the range; AccessDenied, ConfigInvalid, GitUnavailable, SourceRefused: the host
        refuses, fails or sends too much.
        """
        return Head(revision.commit) if revision.commit else self._looks.get(revision, since)

    def guess(self, name: str) -> Head:
        """Return what a short name means, as `git fetch` guesses: an id, a tag, a branch; empty: what HEAD leads to. Raises as `head`."""
        if is_commit_id(name):
            return Head(name)
        for ref in (f"refs/tags/{name}", f"refs/heads/{name}") if name else ("HEAD",):
            found = None if name and ref_problem(ref) else self._look(git_protocol.ExactRef(ref))
            if found:
                return found
        raise RefNotFound.of(printable(name) or "HEAD", f"neither a tag nor a branch of the host ({self._transport.subject})")

    def _asked(self, revision: Revision) -> Head:
        if not revision.semver:
            return self._named(revision.ref)
        head = self._highest(revision.semver)
        if head is None:
            seen = f"no tag of the host is in this range of versions ({self._transport.subject})"
            fix = "push a tag such as v1.2.3, or change the target's revision"
            raise RefNotFound.of(f"revision.semver {revision.semver}", seen, fix=fix)
        return head

    def _highest(self, semver: str, commit: str = "") -> Head | None:
        """Return the highest tag in a range of versions, of those that name a commit where one is given."""
        from handler.source.tag_versions import HighestTag  # noqa: PLC0415 - loads a library that only such targets need

        return self._look(HighestTag(semver, commit))

    def _look(self, wanted: git_protocol.WantedRef) -> Head | None:
        head = self._operation(lambda deadline: self._refs(deadline, wanted))
        if head and not is_commit_id(head.commit):
            raise GitUnavailable.of(self._transport.subject, f"the host names no commit id for {printable(head.ref)}")
        return head

    def _named(self, ref: str) -> Head:
        if problem := ref_problem(ref):
            raise SourceRefused.of(printable(ref) or "ref", problem, fix="set revision.branch or revision.tag")
        head = self._look(git_protocol.ExactRef(ref))
        if head is None:
            raise RefNotFound.of(
                printable(ref), f"not on the host ({self._transport.subject})", fix="push it, or change the target's revision"
            )
        return head

    def fetch(self, sha: str, path: str = "", accept: Accept = accept_any) -> FetchedTree:
        """Bring exactly this commit into memory, without history, and check every tree on the way to `path` and below it.

        `accept` judges the commit each time before any tree is read; one that is refused stays kept. Blobs come with it when `path`
        is the root or the host offers no filters, else at the first `blobs`. Raises RefNotFound: the host has or gives no such
        commit; SourceRefused: a rule or limit is broken; CommitUnverified: by `accept`; and as `head`.
        """
        if not is_commit_id(sha):
            raise SourceRefused.of(printable(sha) or "commit", "is not a full commit id of 40 hex digits")
        tree = self._commits.get(sha, path)
        tree.judge(accept)
        try:
            tree.check(path)
        except TransientError:
            self._commits.drop(sha)  # what the host left out it may send when it is asked anew
            raise
        finally:
            self._commits.trim()
        return tree

    def commit(self, sha: str) -> CommitInfo | None:
        """Return what history shows of a commit, without files; None: the host gives no commit alone. Raises as `fetch`."""
        return self._operation(lambda deadline: self._alone(deadline, sha), sha)

    def reaches(self, head: str, commit: str) -> bool:
        """Whether a commit is `head`, or one that it leads to by parents; asked once, for the answer never changes.

        Raises RefNotFound: the host doesn't have one of them; SourceRefused: no commit, or too much lies between; and as `head`.
        """
        for sha in (head, commit):
            if not is_commit_id(sha):
                raise SourceRefused.of(printable(sha) or "commit", "is not a full commit id of 40 hex digits")
        return head == commit or self._ancestry.get(head, commit)

    def proves(self, revision: Revision, commit: str, head: str = "") -> bool:
        """Whether a revision leads to a commit: its head does (`reaches`), or a tag that is in its range of versions now names it.

        `head`: what the revision names now; empty: the host is asked. Raises as `head` and `reaches`.
        """
        head = head or self.head(revision).commit
        tag = self._highest(revision.semver, commit) if revision.semver and commit != head else None
        return (tag is not None and tag.commit == commit) or self.reaches(head, commit)

    def between(self, commit: str, head: str) -> Mapping[str, tuple[str, ...]]:
        """Return the commits that `head` leads to and `commit` doesn't, each with its parents. Raises as `reaches`."""
        self._here(commit)
        found = self._operation(lambda deadline: self._since(deadline, head, commit), head)
        return {sha: tuple(parents(content)) for sha, (kind, content) in found.items() if kind == COMMIT and sha != commit}

    def _led_to(self, head: str, commit: str) -> bool:
        self._here(commit)
        return self._operation(lambda deadline: leads_to(self._since(deadline, head, commit), head, commit), head)

    def _here(self, commit: str) -> None:
        """Fetch a commit that others are fetched since; a host that filters nothing gives none alone."""
        if self.commit(commit) is None:
            self.fetch(commit)

    def _since(self, deadline: Deadline, head: str, commit: str) -> Objects:
        """Fetch the commits that `head` leads to and `commit` doesn't; a host without filters sends what they changed, too."""
        offer = self._offered(deadline)
        request = git_protocol.fetch(offer, [head], leave=git_protocol.TREES if offer.filters else "", have=commit)
        try:
            return self._pack(deadline, offer, request, have=commit)
        except SourceRefused as refused:
            fix = "" if offer.filters else "let the host leave files out: git config uploadpack.allowFilter true"
            seen = f"whether {head[:12]} leads to it isn't known: {refused.problems[0].message}"
            raise SourceRefused.of(f"commit {commit[:12]}", seen, fix=fix) from None

    def _alone(self, deadline: Deadline, sha: str) -> CommitInfo | None:
        offer = self._offered(deadline)
        if not (offer.shallow and offer.filters):
            return None
        kind, content = self._pack(deadline, offer, git_protocol.fetch(offer, [sha], depth=1, leave=git_protocol.TREES)).get(sha, (0, b""))
        return read_commit(sha, content)[0] if kind == COMMIT else None

    def recheck(self, sha: str, path: str = "") -> None:
        """Do nothing: no signature is required here."""

    def _fetched(self, sha: str, path: str) -> FetchedTree:
        objects = self._operation(lambda deadline: self._commit_objects(deadline, sha, whole=not path), sha)
        kind, content = objects.get(sha, (0, b""))
        if not kind:
            raise GitUnavailable.of(self._transport.subject, f"the host sent something else than commit {sha}")
        if kind != COMMIT:
            raise SourceRefused.of(sha, "is not a commit", fix="deploy a branch, or a tag of a commit")
        commit, root = read_commit(sha, content)
        return FetchedTree(commit, root, objects, self._limits, partial(self._blobs, sha))

    def _commit_objects(self, deadline: Deadline, sha: str, *, whole: bool) -> Objects:
        offer = self._offered(deadline)
        if not offer.shallow:
            raise GitUnavailable.of(self._transport.subject, "the host doesn't offer to fetch a commit without its history")
        return self._pack(
            deadline, offer, git_protocol.fetch(offer, [sha], depth=1, leave="" if whole or not offer.filters else git_protocol.BLOBS)
        )

    def _blobs(self, sha: str, oids: Collection[str]) -> Objects:
        """Fetch blobs; a host that filters but doesn't serve single objects sends the whole commit instead."""
        try:
            return self._operation(lambda deadline: self._blob_objects(deadline, list(oids)), sha)
        except RefNotFound:
            return self._operation(lambda deadline: self._commit_objects(deadline, sha, whole=True), sha)

    def _blob_objects(self, deadline: Deadline, oids: list[str]) -> Objects:
        offer, spent = self._offered(deadline), 0
        found: Objects = {}
        for start in range(0, len(oids), _WANTS):
            wants = oids[start : start + _WANTS]
            sent = self._pack(deadline, offer, git_protocol.fetch(offer, wants), spent)
            spent += sum(len(content) for _, content in sent.values())
            found |= {oid: sent[oid] for oid in wants if oid in sent}
        return found

    def _refs(self, deadline: Deadline, wanted: git_protocol.WantedRef) -> Head | None:
        offer = self._offer if self._offer and self._offer.version == 2 else self._discovered(deadline, wanted)
        if offer.version != 2:
            return offer.head
        with self._transport.command(deadline, git_protocol.ls_refs(offer, wanted), self._limits.refs) as stream:
            return git_protocol.read_refs(stream, wanted)

    def _offered(self, deadline: Deadline) -> git_protocol.Advertisement:
        return self._offer or self._discovered(deadline, None)

    def _discovered(self, deadline: Deadline, wanted: git_protocol.WantedRef | None) -> git_protocol.Advertisement:
        with self._transport.advertisement(deadline, self._limits.refs) as stream:
            offer = git_protocol.read_advertisement(stream, wanted)
        if offer.object_format != "sha1":
            raise ConfigInvalid.of(
                self._transport.subject,
                f"uses {'sha256' if offer.object_format == 'sha256' else 'other'} ids; only SHA-1 repositories are supported",
            )
        self._offer = offer
        return offer

    def _pack(self, deadline: Deadline, offer: git_protocol.Advertisement, request: bytes, spent: int = 0, have: str = "") -> Objects:
        with self._transport.command(deadline, request, self._limits.pack) as stream:
            pack = git_protocol.read_fetched(stream, offer.version, have)
        return read_pack(pack, self._limits, self._transport.subject, spent)

    def _operation(self, ask: Callable[[Deadline], T], sha: str = "") -> T:
        """Run one operation under its deadline, and raise our errors; after any the host's capabilities are asked anew."""
        subject = self._transport.subject
        try:
            with Deadline(left(self._limits.total)) as deadline:
                return ask(deadline)
        except (AnnealError, PackBroken, git_protocol.HostRefused) as error:
            self._offer = None
            if isinstance(error, AnnealError):
                raise
            if isinstance(error, PackBroken):
                raise GitUnavailable.of(subject, f"the host sent a broken pack: {error}") from None
            if sha and error.gone:
                fix = "push it again, or let the host serve it (git config uploadpack.allowAnySHA1InWant true)"
                raise RefNotFound.of(f"commit {sha}", "is gone from the host or not served by it", fix=fix) from None
            raise GitUnavailable.of(subject, "the host refused by git's ERR", fix=self._transport.by_hand) from None


def upload_pack(
    repository: Repository, read: ReadSecret, limits: HostLimits, again: ReadSecret | None = None, shared: SharedConnections | None = None
) -> UploadPack:
    """Return the transport to a repository; only what it needs is imported. Raises ConfigInvalid: its settings can't be used."""
    if repository.url.startswith("ssh:"):
        with needed_by("a repository by SSH"):
            from handler.source.ssh.ssh_upload_pack import SshUploadPack  # noqa: PLC0415 - paramiko takes 0.2 s, and few need it

        return SshUploadPack(repository, read, limits, again)
    sign_in = _sign_in(repository, read, limits, again)
    return HttpTransport(repository.url, sign_in, repository.tls.ca_file, limits, (shared or SharedConnections()).pools)


def _sign_in(repository: Repository, read: ReadSecret, limits: HostLimits, again: ReadSecret | None) -> SignIn:
    auth = repository.auth
    if auth.github_app:
        from handler.source.github_app import GitHubApp  # noqa: PLC0415 - few need it and its cryptography

        return GitHubApp(auth.github_app, repository.url, read, repository.tls.ca_file, limits, again=again)
    return Basic(auth.basic, read, again) if auth.basic else Anonymous()
