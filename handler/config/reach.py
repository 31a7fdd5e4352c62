"""What a configuration can reach, and a digest of exactly that: hosts, clusters, files, variables, stores, programs, included files.

Law: nothing is asked or run. Of the files that it names those are read that lie in the checkout and say what is reached or runs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

import yaml

from handler.config.cluster_settings import Cluster
from handler.config.settings import Settings, Target
from handler.config.settings_shape import Slot, slots
from handler.config.yaml_nodes import children, compose, scalar
from handler.model.advice import word
from handler.model.errors import ConfigInvalid

HOSTS, CLUSTERS, AWS, FILES, INCLUDED = "hosts", "clusters", "AWS", "files", "included files"
VARIABLES, STORED, PROGRAMS = "environment variables", "secrets in stores", "programs"
GROUPS = (HOSTS, CLUSTERS, AWS, FILES, INCLUDED, VARIABLES, STORED, PROGRAMS)
KINDS = {
    **dict.fromkeys(("url", "server", "metricsUrl", "pageUrl", "issuer", "ociUrl", "chartUrl", "chartPrefix", "queueUrl", "bind"), HOSTS),
    **dict.fromkeys(("file", "secretFile"), FILES),
    "env": VARIABLES,
    **dict.fromkeys(("awsSecret", "awsParameter", "kubernetesSecret"), STORED),
    **dict.fromkeys(("eksCluster", "region", "roleArn", "kmsArn"), AWS),
}
"""A kind of setting -> what it names. All other kinds say what is done there (`tests/unit/config/test_reach.py` knows each)."""
_DEFAULT = "the default: that of KUBECONFIG, of ~/.kube/config, or the pod's own"
_IN_KUBECONFIG = {
    **dict.fromkeys(("server", "proxy-url", "idp-issuer-url"), HOSTS),
    **dict.fromkeys(("tokenFile", "client-certificate", "client-key", "certificate-authority", "idp-certificate-authority"), FILES),
}


@dataclass(frozen=True, slots=True)
class Reach:
    """What is named, by its group, sorted; the digest also says what goes with what: which secret to which host."""

    named: dict[str, Sequence[str]]
    digest: str


def reach(settings: Settings, here: Path, root: Path, included: Sequence[str]) -> Reach:
    """Return what settings reach. `here`: where relative paths begin; `root`: of the checkout; `included`: the included files."""
    reading = _Reading(str(here), root.resolve())
    reading.named[INCLUDED] = {os.path.realpath(each) for each in included}
    parts = [reading.part(settings), sorted(reading.named[INCLUDED])]
    named: dict[str, Sequence[str]] = {group: sorted(found) for group, found in reading.named.items() if found}
    return Reach(named, hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest())


class _Reading:
    """Collects the names while the parts of a configuration that hold any are put together."""

    def __init__(self, here: str, root: Path) -> None:
        self._here, self._root = here, root
        self.named: dict[str, set[str]] = {group: set() for group in GROUPS}

    def part(self, value: Any, kind: str = "") -> Any:
        """Return what of a value counts; nothing where it names nothing. A list's order and repetitions don't count."""
        if isinstance(value, tuple):
            return sorted({json.dumps(found, sort_keys=True) for each in value if (found := self.part(each, kind))})
        if is_dataclass(value) and not isinstance(value, type):
            found = {slot.key: self._slot(value, slot) for slot in slots(type(value))}
            if isinstance(value, Cluster):
                found["name"] = self._add(CLUSTERS, _DEFAULT if value == Cluster() else value.name)
            if isinstance(value, Target):
                found["programs"] = [self._add(PROGRAMS, each) for each in value.programs]
            return {key: each for key, each in found.items() if each}
        group = KINDS.get(kind, "") if value else ""
        if group == FILES:
            return self._file(value, counts=kind == "file")
        return self._add(group, str(value)) if group else None

    def _slot(self, value: Any, slot: Slot) -> Any:
        found = getattr(value, slot.name)
        if isinstance(value, Cluster) and slot.key == "kubeconfig" and found and found.file:
            return [self._kubeconfig(os.path.expanduser(each)) for each in found.file.split(":") if each]  # noqa: PTH111 - as it is loaded
        if slot.key == "nixPath":
            return [self._file(str(each), counts=False) for each in json.loads(found or "{}").values()]
        if slot.key == "sandbox" and found == "weak":
            return self._add(PROGRAMS, "those that render, also without walls (sandbox: weak)")
        return self.part(found, slot.kind)

    def _add(self, group: str, name: str) -> str:
        self.named[group].add(name)
        return name

    def _file(self, path: str, *, counts: bool) -> list[str]:
        """Name a file by where its links lead. `counts`: what it holds, too, where it lies in the checkout."""
        real = _real(self._here, path)
        return [self._add(FILES, real), self._content(real) if counts else ""]

    def _content(self, real: str) -> str:
        if not (Path(real).is_relative_to(self._root) and os.path.isfile(real)):  # noqa: PTH113 - of any text
            return ""
        try:
            with open(real, "rb") as stream:  # noqa: PTH123 - as above
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError:
            return ""

    def _kubeconfig(self, path: str) -> list[str]:
        """Name a kubeconfig, and of one in the checkout what that names; files in the checkout that it names count by what they hold."""
        found = self._file(path, counts=True)
        if not found[1]:
            return found
        directory = os.path.dirname(os.path.join(self._here, path))  # noqa: PTH118, PTH120 - links stay as they are, as it is loaded
        try:
            nodes = [*_nodes(compose(Path(found[0]).read_text(), found[0]), set())]
        except (ConfigInvalid, OSError, ValueError):
            return [*found, self._add(PROGRAMS, f"whatever {found[0]} names: it can't be read here")]
        for node in nodes:
            if isinstance(node, yaml.MappingNode):
                self._in_kubeconfig(node, directory)
        texts = {_real(directory, scalar(each)) for each in nodes if scalar(each)}
        return [*found, *(f"{each} {content}" for each in sorted(texts) if (content := self._content(each)))]

    def _in_kubeconfig(self, node: yaml.MappingNode, directory: str) -> None:
        fields = {scalar(key): value for key, value in node.value}
        if "command" in fields:
            arguments = children(fields["args"]) if "args" in fields else []
            self._add(PROGRAMS, " ".join(word(scalar(each)) for each in (fields["command"], *arguments)))
        for key, group in _IN_KUBECONFIG.items():
            if text := scalar(fields.get(key)):
                self._add(group, _real(directory, text) if group == FILES else text)


def _real(directory: str, path: str) -> str:
    """Return where a path and its links lead; one that no file can have stays as it is."""
    return path if "\0" in path else os.path.realpath(os.path.join(directory, path))  # noqa: PTH118 - a link may lead nowhere


def _nodes(node: yaml.Node, seen: set[int]) -> Iterator[yaml.Node]:
    """Yield a node and all below, each once."""
    if id(node) not in seen:
        seen.add(id(node))
        yield node
        for each in children(node):
            yield from _nodes(each, seen)
