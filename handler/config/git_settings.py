"""The configuration's half about git, as frozen values. Secret *references* live here, secret values never."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from handler.config.settings_shape import doc as _doc


@dataclass(frozen=True, slots=True)
class AwsSecret:
    """A secret of AWS Secrets Manager."""

    id: str = _doc("Name or ARN.", kind="awsSecret")
    key: str = _doc("Key of a secret that is a JSON object; empty: the whole text.", "", kind="secretKey")
    stage: str = _doc(
        "Which version; AWSPREVIOUS beside AWSCURRENT in a list: both are valid while one is rotated.", "AWSCURRENT", kind="stage"
    )


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Where a secret value is found: exactly one place."""

    env: str = _doc("Name of an environment variable.", "", kind="env")
    file: str = _doc("Path of a file; a trailing newline is dropped.", "", kind="secretFile")
    aws_secrets_manager: AwsSecret | None = _doc("A secret of AWS Secrets Manager.", None)
    aws_parameter: str = _doc("Name or ARN of a parameter of AWS Systems Manager.", "", kind="awsParameter")
    kubernetes_secret: str = _doc("namespace/name/key of a Secret in the handler's own cluster.", "", kind="kubernetesSecret")

    @property
    def remote(self) -> bool:
        """Whether a store must be asked for it, over the network."""
        return not (self.env or self.file)

    def __str__(self) -> str:
        if aws := self.aws_secrets_manager:
            stage = f", {aws.stage}" if aws.stage != "AWSCURRENT" else ""
            return f"AWS secret {aws.id}" + (f", key {aws.key}" if aws.key else "") + stage
        places = ("environment variable", "file", "AWS parameter", "Secret")
        names = (self.env, self.file, self.aws_parameter, self.kubernetes_secret)
        return next((f"{place} {name}" for place, name in zip(places, names, strict=True) if name), "no place")


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
class GitHubAppAuth:
    """A GitHub App: short-lived installation tokens, made from its key."""

    app_id: str = _doc("App id or client id.", kind="appId")
    installation_id: int = _doc("Installation id.", kind="number")
    private_key: SecretRef = _doc("The app's private key, PEM.")
    api_url: str = _doc("The API; of an Enterprise Server e.g. https://github.example.com/api/v3.", "https://api.github.com", kind="server")


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

    @property
    def is_directory(self) -> bool:
        """Whether it stands for a directory, so that there is no git host to ask."""
        return self.url.startswith(DIRECTORY)


def token_user(url: str) -> str:
    """Return the user name beside which a git host takes a token as the password, as far as its URL shows; others take any."""
    host = url.partition("://")[2].partition("/")[0].lower()
    return next((user for word, user in (("gitlab", "oauth2"), ("bitbucket", "x-token-auth")) if word in host), "x-access-token")


def git_url(text: str) -> str:
    """Return git's short form for SSH (`git@host:path`; git-clone(1), GIT URLS) as the ssh:// URL that it means; anything else as it is."""
    found = _SHORT.fullmatch(text)
    return f"ssh://{found[1] or 'git@'}{found[2]}/{found[3]}" if found else text


def git_references(repository: Repository) -> Iterator[tuple[str, SecretRef]]:
    """Yield what a repository's sign-in needs, each with its place below `auth`."""
    auth = repository.auth
    if auth.basic:
        yield "basic.password", auth.basic.password
    if auth.ssh:
        yield "ssh.privateKey", auth.ssh.private_key
        if auth.ssh.passphrase:
            yield "ssh.passphrase", auth.ssh.passphrase
    if auth.github_app:
        yield "githubApp.privateKey", auth.github_app.private_key


@dataclass(frozen=True, slots=True)
class Revision:
    """What is deployed: exactly one of branch, tag, semver and commit. Default: branch main."""

    branch: str = _doc("Branch name.", "", kind="ref")
    tag: str = _doc("Tag name.", "", kind="ref")
    semver: str = _doc("Range of versions; the highest tag in it is deployed.", "", kind="semver")
    commit: str = _doc("Full commit id.", "", kind="sha")

    @property
    def ref(self) -> str:
        """The full ref name, empty for a fixed commit and for a range of versions."""
        if self.commit or self.semver:
            return ""
        return f"refs/tags/{self.tag}" if self.tag else f"refs/heads/{self.branch or 'main'}"

    def __str__(self) -> str:
        return f"the highest tag in {self.semver}" if self.semver else self.ref or f"commit {self.commit}"


@dataclass(frozen=True, slots=True)
class Verify:
    """Whose signature a commit must carry before anything of it is rendered. Any of the keys will do."""

    ssh: tuple[str, ...] = _doc("Public SSH keys, as in authorized_keys.", kind="sshKey", factory=tuple)
    pgp: tuple[str, ...] = _doc("Armored OpenPGP public keys.", kind="pgpKey", factory=tuple)
