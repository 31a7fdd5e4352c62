"""`anneal.yaml` becomes Settings, once, at start. Every mistake of every file is in one ConfigInvalid; no secret is resolved.

The way: text -> nodes (bounded) -> included targets appended -> `defaults` laid under each target -> decoded by the dataclasses' shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import yaml

from handler.config import target_order, value_formats
from handler.config.decode import BAD, Decoder, child, nearest, within
from handler.config.renderer_settings import AUTO, FILE, HELM, JSONNET, KUSTOMIZE, NIX
from handler.config.setting_fault import Fault
from handler.config.settings import Settings, Target, WebhookSettings
from handler.config.settings_shape import Slot
from handler.config.value_formats import FORMS
from handler.config.webhook_providers import STOCK, webhooks_of
from handler.config.yaml_nodes import ConfigMistakes, compose, join, merged, pairs, scalar, word
from handler.model.errors import ConfigInvalid

ReadInclude = Callable[[str, str], Sequence[tuple[str, str]]]
"""(glob, including file) -> (file, text) of each match, sorted; raises ConfigInvalid for a file that can't be read."""
API_VERSION, KIND = "anneal.dev/v1alpha1", "Config"
SYSTEM = Path("/etc/anneal/anneal.yaml")
MAX_BYTES = 4_000_000
_HEADER = ("apiVersion", "kind", "defaults", "include")
STOCK_RENDERERS = (AUTO, FILE, HELM, JSONNET, KUSTOMIZE, NIX)
"""The renderers of a program that adds none (`handler.render.RENDERERS`, which is not loaded for its names)."""


class ConfigNotFound(ConfigInvalid):
    """No configuration is named, and none is at the usual places."""


def find(flag: str | None, environ: Mapping[str, str], cwd: Path, *, beside: bool = True) -> Path:
    """Return --config, ANNEAL_CONFIG, ./anneal.yaml (`beside`) or SYSTEM. `handler.cli.trust` judges what lies beside.

    Raises ConfigInvalid: what was named isn't a file; ConfigNotFound.
    """
    named = (("--config", flag), ("ANNEAL_CONFIG", environ.get("ANNEAL_CONFIG")))
    for origin, value in named:
        if value:
            path = cwd / value
            if path.is_file():
                return path
            raise ConfigInvalid.of(origin, f"expected a file, found none at {path}", fix="run `anneal init` to write a first one")
    found = next((path for path in (*([cwd / "anneal.yaml"] if beside else []), SYSTEM) if path.is_file()), None)
    if found is None:
        fix = "run `anneal init`, pass --config FILE or set ANNEAL_CONFIG"
        raise ConfigNotFound.of("configuration", f"found neither {cwd / 'anneal.yaml'} nor {SYSTEM}", fix=fix)
    return found


def load(
    path: Path,
    read_include: ReadInclude | None = None,
    *,
    renderers: Collection[str] = STOCK_RENDERERS,
    providers: Collection[str] = STOCK,
) -> Settings:
    """Read a configuration and what it includes, by globs relative to its directory; the rest as for `parse`."""
    return parse(_text(path), str(path), read_include=read_include or matches, renderers=renderers, providers=providers)


def parse(
    text: str,
    file: str = "anneal.yaml",
    *,
    read_include: ReadInclude = lambda _glob, _file: (),
    renderers: Collection[str] = STOCK_RENDERERS,
    providers: Collection[str] = STOCK,
) -> Settings:
    """Turn the YAML of a configuration into Settings. Raises ConfigInvalid with every mistake, each with file and line.

    `file`: its name in messages; `read_include`: how a glob of `include` is read; `renderers`: names that `renderer.type` may have;
    `providers`: names that `webhooks` may have keys of.
    """
    mistakes = ConfigMistakes(file)
    root = compose(text, file)
    found = pairs(root, "", mistakes)
    decoder = Decoder(mistakes, {"renderer": renderers}, {WebhookSettings: webhooks_of(providers)})
    settings = _settings(cast(yaml.MappingNode, root), file, decoder, read_include) if found else BAD
    _untriggered(root, providers, mistakes)
    if found is not None and not found:
        mistakes.add(root, "", "expected a configuration, found an empty mapping", "run `anneal init` to write a first one")
    mistakes.settle()
    return cast(Settings, settings)


def _settings(root: yaml.MappingNode, file: str, decoder: Decoder, read_include: ReadInclude) -> Settings:
    _header(root, decoder)
    defaults = _defaults(root, decoder)
    targets = child(root, "targets")
    listed = _items(targets) if targets is None or word(targets) == "a list" else None
    included = [item for node in _included(root, file, decoder, read_include) for item in node]
    if listed is not None and (targets is not None or child(root, "include") is not None):
        items = [merged(defaults, item) if defaults else item for item in (*listed, *included)]
        root = _with_targets(root, items)
    named = {scalar(child(item, "name")): item for item in _items(child(root, "targets"))}
    decoder = replace(decoder, choices={**decoder.choices, "target": [*named], "dependency": [*named]})
    target_order.note_mistakes({name: _items(child(item, "dependsOn")) for name, item in named.items()}, decoder.mistakes)
    settings = cast(Settings, decoder.mapping(root, Settings, "", _HEADER))
    if settings is not BAD:
        _promotions(settings, named, decoder.mistakes)
    return settings


def _promotions(settings: Settings, named: Mapping[str, yaml.Node], mistakes: ConfigMistakes) -> None:
    """Note what is wrong between targets that promote, where it is written."""

    def note(name: str, fault: Fault) -> None:
        node, below = within(named[name], ("revision", "promoted", fault.field, *fault.within))
        mistakes.add(node, join(f"targets[{name}]", below), fault.message, fault.fix)

    target_order.note_promotions(settings, note)


def _header(root: yaml.MappingNode, decoder: Decoder) -> None:
    for key, kind in (("apiVersion", "apiVersion"), ("kind", "document")):
        node = child(root, key)
        if node is None:
            decoder.mistakes.add(root, key, "is required and missing", f"add `{key}: {FORMS[kind].example}`")
        else:
            decoder.value(node, _slot(key, str, kind), key)


def _untriggered(root: yaml.Node, providers: Collection[str], mistakes: ConfigMistakes) -> None:
    """Note secrets of stock providers that this program leaves out."""
    for name in STOCK:
        node = child(child(root, "webhooks"), name) if name not in providers else None
        if node is not None:
            mistakes.add(node, f"webhooks.{name}", "unknown key", nearest(name, providers))


def _slot(key: str, hint: object, kind: str) -> Slot:
    return Slot(key, key, hint, optional=False, required=True, default=None, kind=kind, doc="")


def _defaults(root: yaml.MappingNode, decoder: Decoder) -> yaml.Node | None:
    """Return `defaults` if it is one; its own mistakes are noted once, here."""
    node = child(root, "defaults")
    if node is None:
        return None
    partial = replace(decoder, partial=True)
    partial.mapping(node, Target, "defaults")
    name = child(node, "name")
    if name is not None:
        decoder.mistakes.add(name, "defaults.name", "expected settings that targets share, found a name", "names belong to the targets")
    return node


def _items(node: yaml.Node | None) -> list[yaml.Node]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _with_targets(root: yaml.MappingNode, items: list[yaml.Node]) -> yaml.MappingNode:
    old = child(root, "targets") or root
    sequence = yaml.SequenceNode("tag:yaml.org,2002:seq", items, old.start_mark, old.end_mark)
    key = yaml.ScalarNode("tag:yaml.org,2002:str", "targets", old.start_mark, old.end_mark)
    kept = [(name, value) for name, value in root.value if scalar(name) != "targets"]
    return yaml.MappingNode(root.tag, [*kept, (key, sequence)], root.start_mark, root.end_mark)


def _included(root: yaml.MappingNode, file: str, decoder: Decoder, read_include: ReadInclude) -> Iterator[list[yaml.Node]]:
    """Yield the targets of each included file, each file once."""
    node = child(root, "include")
    globs = decoder.value(node, _slot("include", tuple[str, ...], "include"), "include") if node else ()
    seen = {file}
    for item, glob in zip(_items(node), () if globs is BAD else globs, strict=False):
        try:
            files = read_include(glob, file)
        except ConfigInvalid as refused:
            decoder.mistakes.take(refused)
            continue
        if not files:
            decoder.mistakes.add(item, f"include[{glob}]", "expected files, found none", "remove the glob or add a file")
        for name, text in files:
            if name not in seen:
                seen.add(name)
                yield _targets_of(text, name, decoder)


def _targets_of(text: str, file: str, decoder: Decoder) -> list[yaml.Node]:
    """Return the targets of an included file: `targets: [...]`, a list of targets or one target."""
    try:
        node = compose(text, file)
    except ConfigInvalid as refused:
        decoder.mistakes.take(refused)
        return []
    if isinstance(node, yaml.MappingNode) and child(node, "targets") is not None:
        found = pairs(node, "", decoder.mistakes) or {}
        for key, (at, _) in found.items():
            if key != "targets":
                message = "an included file holds nothing beside `targets`"
                decoder.mistakes.add(at, value_formats.plain(key), message, "move it to the main file")
        node = found["targets"][1]
        if not isinstance(node, yaml.SequenceNode):
            decoder.mistakes.add(node, "targets", f"expected a list, found {word(node)}")
            return []
    return _items(node) if isinstance(node, yaml.SequenceNode) else [node]


def matches(glob: str, file: str) -> list[tuple[str, str]]:
    """Read the files that a glob matches, relative to a file's directory. Raises ConfigInvalid: one can't be read."""
    paths = sorted(path for path in Path(file).parent.glob(glob) if path.is_file())
    return [(str(path), _text(path)) for path in paths]


def _text(path: Path) -> str:
    """Read a file of the configuration, UTF-8 with or without a byte order mark."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigInvalid.of("configuration", f"can't be read: {error.strerror}", place=f"{path}:1") from None
    if len(raw) > MAX_BYTES:
        raise ConfigInvalid.of("configuration", f"is larger than {MAX_BYTES} bytes", place=f"{path}:1")
    try:
        return re.sub("\r\n?", "\n", raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigInvalid.of("configuration", "expected UTF-8 text", place=f"{path}:{line}") from None
