"""Which way leads to a repository, and who signs in: read from its settings, here only. What a way needs is imported when it is taken."""

from __future__ import annotations

from handler.config.git_settings import Repository
from handler.model.optional_imports import needed_by
from handler.source.host_limits import HostLimits
from handler.source.http_transport import HttpTransport
from handler.source.shared import SharedConnections
from handler.source.signin import Anonymous, Basic, ReadSecret, SignIn
from handler.source.upload_pack import UploadPack


def upload_pack(
    repository: Repository, read: ReadSecret, limits: HostLimits, again: ReadSecret | None = None, shared: SharedConnections | None = None
) -> UploadPack:
    """Return the way to a repository. `shared`: what its handler's repositories have together.

    Raises:
        ConfigInvalid: its settings can't be used.
    """
    if repository.url.startswith("ssh:"):
        with needed_by("a repository by SSH"):
            from handler.source.ssh.ssh_upload_pack import SshUploadPack  # noqa: PLC0415 - paramiko takes 0.2 s, and few need it

        return SshUploadPack(repository, read, limits, again)
    signs_in = sign_in(repository, read, limits, again)
    return HttpTransport(repository.url, signs_in, repository.tls.ca_file, limits, shared or SharedConnections())


def sign_in(repository: Repository, read: ReadSecret, limits: HostLimits, again: ReadSecret | None = None) -> SignIn:
    """Return what signs in over HTTP."""
    auth = repository.auth
    if auth.github_app:
        from handler.source.github_app import GitHubApp  # noqa: PLC0415 - few need it and its cryptography

        return GitHubApp(auth.github_app, repository.url, read, repository.tls.ca_file, limits, again=again)
    return Basic(auth.basic, read, again) if auth.basic else Anonymous()
