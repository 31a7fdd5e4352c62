"""The configuration's half about git, as frozen values. Secret *references* live here, secret values never."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from handler.config.cluster_settings import Cluster
from handler.config.feedback_settings import FeedbackSettings
from handler.config.feedback_settings import GitHubAppAuth as GitHubAppAuth  # noqa: PLC0414 - it is imported from here
from handler.config.secret_ref import AwsSecret as AwsSecret  # noqa: PLC0414 - it is imported from here
from handler.config.secret_ref import SecretRef as SecretRef  # noqa: PLC0414 - it is imported from here
from handler.config.settings_shape import doc as _doc
from handler.model.target_matching import repository_key


@dataclass(frozen=True, slots=True)
class WebhookSecrets:
    """The secrets a provider may sign with: several at once, for rotation."""

    secrets: tuple[SecretRef, ...] = _doc("Accepted secrets, newest first.", factory=tuple)


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """HTTP basic credentials; a host's token is the password."""

    username: str = _doc("User name; GitHub tokens: x-access-token, GitLab tokens: oauth2.", kind="username")
    password: SecretRef = _doc("Password or token.")


@dataclass(frozen=True, slots=True)
class SshAuth:
    """A key for ssh:// URLs, and the host keys that are trusted."""

    private_key: SecretRef = _doc("Private key, as OpenSSH or PEM writes it.")
    known_hosts: str = _doc("File of the host keys to trust, in OpenSSH's known_hosts format; nothing else is.", kind="file")
    passphrase: SecretRef | None = _doc("Passphrase of the private key.", None)


@dataclass(frozen=True, slots=True)
class RepositoryAuth:
    """How the handler signs in to the git host: at most one way."""

    basic: BasicAuth | None = _doc("User name and password or token.", None)
    ssh: SshAuth | None = _doc("A key, for ssh:// URLs.", None)
    github_app: GitHubAppAuth | None = _doc("A GitHub App.", None)


@dataclass(frozen=True, slots=True)
class Tls:
    """Trust for the git host."""

    ca_file: str = _doc("PEM file of the authorities to trust instead of the system's.", "", kind="file")


DIRECTORY = "directory:"
_SHORT = re.compile(r"([A-Za-z0-9._-]+@)?([A-Za-z0-9][A-Za-z0-9._-]*):/?([^\s:@?#\\/][^\s:@?#\\]*)")


def directory_url(name: str) -> str:
    """Return what stands for the repository of a target that is a directory: a git target of its name is refused, until `retarget`."""
    return f"{DIRECTORY}{name}"


@dataclass(frozen=True, slots=True)
class Repository:
    """Where git is. Credentials and URL come from here, never from a payload."""

    url: str = _doc("https://, http:// or ssh:// URL of the repository.", kind="url")
    aliases: tuple[str, ...] = _doc("Other URLs that webhooks may name it by.", kind="alias", factory=tuple)
    auth: RepositoryAuth = _doc("Credentials.", factory=RepositoryAuth)
    tls: Tls = _doc("TLS trust.", factory=Tls)
    webhook: WebhookSecrets = _doc("Secrets of this repository's webhook; they replace the provider's.", factory=WebhookSecrets)
    feedback: FeedbackSettings | None = _doc("What the git host shows of commits and pull requests; without it nothing is.", None)

    @property
    def is_directory(self) -> bool:
        """Whether it stands for a directory, so that there is no git host to ask."""
        return self.url.startswith(DIRECTORY)

    @property
    def keys(self) -> frozenset[str]:
        """By what it is known, however its addresses are spelled."""
        return frozenset(repository_key(url) for url in (self.url, *self.aliases))

    def is_same(self, other: Repository) -> bool:
        """Whether both are one repository, under whichever of its addresses."""
        return not self.keys.isdisjoint(other.keys)


def token_user(url: str) -> str:
    """Return the user name beside which a git host takes a token as the password, as far as its URL shows; others take any."""
    host = url.partition("://")[2].partition("/")[0].lower()
    return next((user for word, user in (("gitlab", "oauth2"), ("bitbucket", "x-token-auth")) if word in host), "x-access-token")


def git_url(text: str) -> str:
    """Return git's short form for SSH (`git@host:path`; git-clone(1), GIT URLS) as the ssh:// URL that it means; anything else as it is."""
    found = _SHORT.fullmatch(text)
    return f"ssh://{found[1] or 'git@'}{found[2]}/{found[3]}" if found else text


def git_references(repository: Repository) -> Iterator[tuple[str, SecretRef]]:
    """Yield what a repository's sign-in needs, each with its place in the repository."""
    auth = repository.auth
    if auth.basic:
        yield "auth.basic.password", auth.basic.password
    if auth.ssh:
        yield "auth.ssh.privateKey", auth.ssh.private_key
        if auth.ssh.passphrase:
            yield "auth.ssh.passphrase", auth.ssh.passphrase
    if auth.github_app:
        yield "auth.githubApp.privateKey", auth.github_app.private_key


def feedback_references(repository: Repository) -> Iterator[tuple[str, SecretRef]]:
    """Yield what writes the statuses of a repository's commits, each with its place in the repository."""
    feedback = repository.feedback
    if feedback and feedback.token:
        yield "feedback.token", feedback.token
    if feedback and feedback.github_app:
        yield "feedback.githubApp.privateKey", feedback.github_app.private_key


@dataclass(frozen=True, slots=True)
class Promoted:
    """What other targets have proven: the newest commit whose reads each of them has kept healthy for `soak`, without a break."""

    from_: tuple[str, ...] = _doc(
        "The target that proves commits; of several, or of those that a glob matches, each must.", kind="promoter"
    )
    soak: float = _doc("For how long.", 1800.0, kind="duration")
    cluster: Cluster | None = _doc("Where their records are, where another installation writes them; read only.", None)
    state_namespace: str = _doc("The namespace of those records; empty: as here.", "", kind="namespace")
    installation: str = _doc("The installation that writes those records; empty: as here.", "", kind="name")

    @property
    def is_elsewhere(self) -> bool:
        """Whether the records are another installation's, so that their targets aren't configured here."""
        return self.cluster is not None or bool(self.state_namespace or self.installation)


@dataclass(frozen=True, slots=True)
class Revision:
    """What is deployed: exactly one of branch, tag, semver and commit. Default: branch main. A promoted commit is one of the branch."""

    branch: str = _doc("Branch name.", "", kind="ref")
    tag: str = _doc("Tag name.", "", kind="ref")
    semver: str = _doc("Range of versions; the highest tag in it is deployed.", "", kind="semver")
    commit: str = _doc("Full commit id.", "", kind="sha")
    promoted: Promoted | None = _doc(
        "Follow what other targets have proven, as far as it is on the branch; without it the branch's head.", None
    )

    @property
    def ref(self) -> str:
        """The full ref name, empty for a fixed commit and for a range of versions."""
        if self.commit or self.semver:
            return ""
        return f"refs/tags/{self.tag}" if self.tag else f"refs/heads/{self.branch or 'main'}"

    def is_like(self, other: Revision) -> bool:
        """Whether two name the same of a repository, whichever commits of it others must have proven."""
        return (self.ref, self.semver, self.commit) == (other.ref, other.semver, other.commit)

    def __str__(self) -> str:
        followed = f"the highest tag in {self.semver}" if self.semver else self.ref or f"commit {self.commit}"
        return f"{followed}, promoted from {', '.join(self.promoted.from_)}" if self.promoted else followed


@dataclass(frozen=True, slots=True)
class Verify:
    """Whose signature a commit must carry before anything of it is rendered. Any of the keys will do."""

    ssh: tuple[str, ...] = _doc("Public SSH keys, as in authorized_keys.", kind="sshKey", factory=tuple)
    pgp: tuple[str, ...] = _doc("Armored OpenPGP public keys.", kind="pgpKey", factory=tuple)
