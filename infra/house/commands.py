"""A command that a message or a page advises is complete, and made by `advice` alone, which gives each word of others to it as one word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from infra.house.advice import COMMAND, MAKER, PROSE, built, calls, sites
from infra.house.pages import PAGES, name
from infra.house.sources import Fault, Source, line_at

HERE = "infra/house/commands.py"
NOT_LITERAL = {"handler/plan/missing_settings.py", "handler/render/jsonnet/jsonnet_errors.py"}  # a table's, which are literals
OURS = {"handler/cli/live_look.py", "handler/cli/status_table.py", "handler/engine/run/promotion_claims.py", "handler/model/names.py"}
"""Modules that put a verb of ours into a command."""
FLAGS = {
    *("handler/cli/init.py", "handler/render/folders.py", "handler/render/helm/helm_values.py"),
    "handler/render/variables/variables.py",
}
"""Modules that put flags into a command, which `advice` has made."""
BY_HAND = {
    "-f -: nothing is piped into it; write: kustomize build DIR | {}": "a command of `again`",
    "# anneal import: {}\n": "no command",
    "anneal import: {}; next: anneal check": "no command",
    "`installation: NAME` and `installationFrom: {}`": "a constant",
    "add `roles: [{}]`": "a constant",
    "a kustomize folder ({})": "no command",
    "the Kubernetes that helm {} assumes": "no command",
    "kustomize reads this as {} alone: rename it, or add the file to {}": "no command",
    " [trace: {}]": "no YAML",
    "`failureLimit: {}`": "a number",
    "`progressTimeout: {}`": "a duration",
    "HTTP/1.1 200 OK\r\nDate: {}\r\nConnection: close\r\nContent-Type: text/event-stream\r\n": "no YAML",
    "{}{}\r\nretry: {}\n\n": "no YAML",
    "event: {}\ndata: {}\n\n": "no YAML",
}
DESCRIBES = {"handler/config/settings.py", "handler/cli/init.py"}
"""Modules whose texts say what a command is for, instead of advising it."""
WITHOUT_NAMESPACE = re.compile(
    r"kubectl (?:\S+$|apply\b|config |version|api-resources\b|create namespace |get --raw |get TYPE|get -l|rollout restart\b|[^a-z]"
    r"|\S+ (?:namespaces? |Namespace/|crd |apiservices?|\S*webhookconfigurations\b|\{\} \{\} --type=json|\[\^))"
)
"""What no namespace belongs to, or what names no object: a mention of kubectl, the `-l` of a page over all, a placeholder, a pattern."""
NEEDS_TARGET = "apply|approve|history|unpin|resume|suspend|retarget|unlock|rollback|replay|prune|plan|rollout"
_KUBECTL = re.compile(r"kubectl [^;`\n]+")
_BARE = re.compile(rf"^(?:run )?`?anneal (?:{NEEDS_TARGET})(?:`|$|[;,:]| (?!\{{|shop|TARGET|NAME|T\b|-f|[A-Z]))")


def of_handler(handler: Sequence[Source]) -> Iterator[Fault]:
    """Yield commands and blocks that are made by hand, and commands that are advised without what they need."""
    opened: set[str] = set()
    unknown: set[str] = set()
    for source in handler:
        yield from _incomplete(source)
        if source.name == MAKER:
            continue
        yield from _by_hand(source)
        for site in sites(source):
            if isinstance(site, ast.Call):
                unknown.add(source.name)
                if source.name not in NOT_LITERAL:
                    yield Fault(source.name, site.lineno, "the template of this `advice` is no literal: write it here")
            elif any("{text}" in PROSE.split(found)[0] for found in COMMAND.findall(site.template)):
                opened.add(source.name)
                if source.name not in OURS | FLAGS:
                    line = int(site.place.rpartition(":")[2])
                    yield Fault(source.name, line, "{text} stands in a command as it is: use {}, {path} or {words}")
    for left in sorted((NOT_LITERAL - unknown) | ((OURS | FLAGS) - opened)):
        yield Fault(HERE, 1, f"{left} is an exception that it doesn't need any more: take it out")


def of_pages() -> Iterator[Fault]:
    """Yield the commands of pages that name no namespace."""
    for path in PAGES:
        text = path.read_text() if path.name != "CHANGELOG.md" else ""
        for quoted in re.finditer(r"`(kubectl [^`]+)`", text):
            for command in _kubectl(quoted[1]):
                if not re.search(r" (?:-n|-A)\b", command):
                    yield Fault(name(path), line_at(text, quoted.start()), f"`{command}` names no namespace: add -n NAMESPACE, or -A")


def _by_hand(source: Source) -> Iterator[Fault]:
    for line, text in built(source):
        if text not in BY_HAND:
            yield Fault(source.name, line, f"{text!r} is a command or YAML made by hand: call `advice`, or list it in BY_HAND of {HERE}")
    for call in calls(source, "Advice") if source.name not in OURS else ():
        yield Fault(source.name, call.lineno, "makes an Advice itself: call `advice`")
    for node in source.of(ast.Import):
        if any(each.name == "shlex" for each in node.names):
            yield Fault(source.name, node.lineno, "quotes for a shell itself: call `advice`")


def _incomplete(source: Source) -> Iterator[Fault]:
    if source.name in DESCRIBES or not ("kubectl " in source.text or "anneal " in source.text):
        return
    for line, text in _texts(source):
        for command in _kubectl(text):
            if " -n " not in command:
                yield Fault(source.name, line, f"`{command}` names no namespace: add -n")
        for command in re.findall(r"`(anneal [^`]+)`", text) + ([text] if text.startswith("anneal ") else []):
            if _BARE.match(command):
                yield Fault(source.name, line, f"`{command}` names no target: add it")


def _texts(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and text of the literals of a module but for its docstrings; what is filled in stands as `{}`."""
    inside = {id(part) for node in source.of(ast.JoinedStr) for part in ast.walk(node) if part is not node}
    bare = {id(node.value) for node in source.of(ast.Expr)}
    for node in source.texts():
        if id(node) not in inside | bare:
            yield node.lineno, str(node.value)
    for node in source.of(ast.JoinedStr):
        if id(node) not in inside | bare:
            yield node.lineno, "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def _kubectl(text: str) -> list[str]:
    return [found for found in _KUBECTL.findall(text) if not WITHOUT_NAMESPACE.match(found)]
