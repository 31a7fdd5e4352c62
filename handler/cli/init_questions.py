"""The questions of `anneal init`: each with its flag, what an answer must be, and the way out of one that isn't."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from handler.cli.check_table import ways
from handler.cli.init_hosts import guess
from handler.cli.init_manifests import directory, holds_any, manifests
from handler.cli.output import Output
from handler.config.git_settings import git_url
from handler.config.value_formats import FORMS
from handler.model.advice import advice
from handler.model.errors import ConfigInvalid, Problem
from handler.source.checkout import Checkout

Answers = dict[str, str]  # by the flag's name without dashes
_EXAMPLE = "https://git.example.com/acme/shop.git"
_BARE = re.compile(r"(?:[a-z+]+://)?([A-Za-z0-9][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)+(?::[0-9]+)?/[^\s@?#\\]+)")
_AZURE = re.compile(r"v3/([^/]+)/([^/]+)/([^/]+)")

_TOKEN = re.compile(r"gh[a-z]_|github_pat_|glpat-|ATBB|ATCTT")  # how the tokens of GitHub, GitLab and Bitbucket begin

Wrong = tuple[str, str]  # what is wrong with an answer, and the way out


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `default`: by the answers before, None: there is none; `needed`: whether it is asked at all, after those."""

    flag: str
    text: str
    wrong: Callable[[str], Wrong | None]
    default: Callable[[Answers], str | None]
    needed: Callable[[Answers], bool] = lambda _answers: True
    required: bool = False
    """Whether no default will do without a terminal."""


def questions(providers: tuple[str, ...], checkout: Checkout | None = None) -> tuple[Question, ...]:
    """Return the questions in their order. `providers`: whose webhooks can be chosen; `checkout`: the one that `init` runs in."""
    url = followed(checkout.remote) if checkout else None
    own = partial(checkout_of, checkout)
    return (
        Question("repository", "Repository (https:// or ssh:// URL)", url_wrong, lambda _: url, required=url is None),
        Question("ssh-key", "File of a private key that may read it", _file_wrong, _in_home("id_ed25519"), _by_ssh, required=True),
        Question("known-hosts", "File of its known_hosts lines", _file_wrong, _in_home("known_hosts"), _by_ssh, required=True),
        Question(
            "token-env",
            "Variable of the environment with a token (empty: it is public)",
            _variable_wrong,
            lambda _: "",
            lambda known: not _by_ssh(known),
        ),
        Question("branch", "Branch", FORMS["ref"].complaint, lambda known: _branch(own(known))),
        Question("path", "Directory of the manifests (.: the root)", FORMS["path"].complaint, lambda known: _manifests(own(known))),
        Question("name", "Name of the target", FORMS["name"].complaint, lambda known: name_of(known["repository"])),
        Question(
            "namespace",
            "Namespaces it may touch (objects with none: the first)",
            _spaces_wrong,
            lambda known: _spaces(own(known), known),
            required=True,
        ),
        Question(
            "provider",
            f"Webhooks come from\n  {', '.join(providers)}\n ",
            lambda text: None if text in providers else (f"expected one of {', '.join(providers)}, found {text!r}", ""),
            lambda known: guess(known["repository"], providers),
        ),
    )


def answered(asked: tuple[Question, ...], given: Mapping[str, str | None], output: Output) -> Answers:
    """Complete what flags have given by questions on a terminal, elsewhere by defaults.

    Raises ConfigInvalid for all flags that can't be; click.UsageError, with the whole command, for what is missing without a terminal.
    """
    problems = [
        Problem(f"--{each.flag}", wrong[0], fix=wrong[1])
        for each in asked
        if (value := given.get(each.flag)) is not None and (wrong := each.wrong(value))
    ]
    if problems:
        raise ConfigInvalid(*problems)
    known: Answers = {}
    missing: list[str] = []
    for each in asked:
        value = given.get(each.flag)
        if not each.needed(known):
            if value:
                raise click.UsageError(f"--{each.flag} doesn't go with this --repository")
            continue
        if value is None and output.interactive:
            value = _asked(each, each.default(known), output)
        if value is None and each.required:
            missing.append(each.flag)
        if value is None:
            value = each.default(known)
        known[each.flag] = _EXAMPLE if value is None else value
    if missing:
        flagged = [(f"--{flag}", value) for flag, value in known.items() if flag in missing or given.get(flag) is not None]
        whole = advice("anneal init{words}", [part for pair in flagged for part in pair])
        flags = " and ".join(f"--{flag}" for flag in missing)
        raise click.UsageError(f"{flags}: missing, and there is no terminal to ask on. The whole command:\n  {whole}")
    return known


def _asked(question: Question, default: str | None, output: Output) -> str:
    while True:
        text = output.ask(question.text, default)
        wrong = question.wrong(text)
        if wrong is None:
            return text
        output.line(f"  {wrong[0]}", "bad", hang=2)
        for number, way in enumerate(ways(wrong[1])):
            output.line(f"  {'→' if not number else ' '} {way}", hang=4)


# --- what an answer must be
def url_wrong(text: str) -> Wrong | None:
    """Say what is wrong with a repository's URL, and how to write the one that is meant."""
    wrong = FORMS["url"].complaint(text)
    if wrong is None:
        return None
    if text.startswith(("/", ".", "~", "file:")):
        directory = text.removeprefix("file://")
        return "a directory is no repository that a server follows", advice(
            "apply it as it is: anneal apply -f {path} --name shop -n shop", directory
        )
    web, by_key = _meant(text)
    if by_key:
        return "git's short form for SSH isn't a URL", f"write {web}; or with a key {by_key}"
    if web and not text.startswith(("http://", "https://", "ssh://")):
        return "expected an https:// or ssh:// URL", f"write {web}"
    return wrong[0], wrong[1] or f"write it like {_EXAMPLE}"


def _meant(text: str) -> tuple[str, str]:
    """Return the URL over HTTPS that another spelling means, and of git's short form the one for a key, too; else empty ones."""
    by_key = git_url(text)
    host, _, path = by_key.partition("@")[2].partition("/")
    if by_key != text and ("." in host or host == "localhost"):
        azure = _AZURE.fullmatch(path) if host == "ssh.dev.azure.com" else None
        web = f"https://dev.azure.com/{azure[1]}/{azure[2]}/_git/{azure[3]}" if azure else f"https://{host}/{path}"
        return web, by_key
    bare = _BARE.fullmatch(text)
    return (f"https://{bare[1]}", "") if bare else ("", "")


def _variable_wrong(text: str) -> Wrong | None:
    if _TOKEN.match(text):
        return "that looks like a token, and only the name of its variable is written", "name the variable, e.g. GIT_TOKEN"
    wrong = FORMS["env"].complaint(text) if text else None
    return (wrong[0], "name the variable, e.g. GIT_TOKEN; its value is never asked for") if wrong else None


def _file_wrong(text: str) -> Wrong | None:
    if not Path(text).expanduser().is_absolute():
        return f"expected the absolute path of a file, found {text!r}", f"write {Path(text).absolute()}"
    return FORMS["file"].complaint(text)


def _spaces_wrong(text: str) -> Wrong | None:
    names = split(text)
    return next(filter(None, map(FORMS["namespace"].complaint, names)), None) if names else ("expected at least one namespace", "")


def split(text: str) -> list[str]:
    """Return the names in a text, separated by commas or spaces, each once."""
    return list(dict.fromkeys(text.replace(",", " ").split()))


# --- defaults
def checkout_of(checkout: Checkout | None, known: Answers) -> Checkout | None:
    """Return the checkout if its own repository is followed, else None: then it says nothing of the answers."""
    return checkout if checkout and followed(checkout.remote) == known["repository"] else None


def followed(remote: str) -> str | None:
    """Return the URL by which a server follows the repository of a checkout's remote; None where there is none, as of a directory."""
    scheme, found, rest = remote.partition("://")
    place, slash, path = rest.partition("/")
    url = f"{scheme}://{place.rpartition('@')[2]}/{path}" if found and slash and scheme in ("http", "https") else remote
    return next((each for each in (url, _meant(url)[0]) if url_wrong(each) is None), None)


def _branch(checkout: Checkout | None) -> str:
    return (checkout.branch if checkout else "") or "main"


def _manifests(checkout: Checkout | None) -> str:
    """Return the directory that `init` runs in, if it holds manifests, else the one that does; the root where that alone holds YAML."""
    if checkout is None:
        return "deploy"
    inside = checkout.inside if checkout.inside and holds_any(checkout.root / checkout.inside) else ""
    found = inside or directory(checkout.root) or ("." if any(checkout.root.glob("*.y*ml")) else "deploy")
    return "deploy" if FORMS["path"].complaint(found) or not found.isprintable() else found


def _spaces(checkout: Checkout | None, known: Answers) -> str:
    """Return the namespaces that the manifests name; where they name none, the target's name."""
    return " ".join(manifests(checkout.root / known["path"]).namespaces if checkout else ()) or known["name"]


def name_of(url: str) -> str:
    """Return a name for the target of a repository."""
    last = url.rstrip("/").rpartition("/")[2].removesuffix(".git").lower()
    return re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:50].strip("-") or "app"


def _in_home(name: str) -> Callable[[Answers], str]:
    return lambda _answers: str(Path("~/.ssh").expanduser() / name)


def _by_ssh(answers: Answers) -> bool:
    return answers["repository"].startswith("ssh://")
