"""A custom resource of another tool as it was read, and what a conversion says of each of its fields.

Law: pure. Nothing is dropped in silence: a leaf that no note covers is named by `note_unknown`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from handler.model.names import group_of
from handler.model.rollout import key_in_path
from handler.model.tree import printable

T = TypeVar("T")
FieldPath = tuple[str | int, ...]
SET, ITSELF, LOST = "set", "by itself", "not taken over"
OFF: tuple[Any, ...] = (None, False, 0, "", [], {})
_NAMES = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))
"""What each line of the output says already."""
_EMPTY = "says nothing"
_UNKNOWN = "import doesn't know this field; see what it does there, and whether docs/configuration.md has a setting for it"
_WORDS = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number", type(None): "nothing"}


@dataclass(frozen=True, slots=True)
class FieldNote:
    """What became of one field. `setting`: of the target; `halts`: the target would do something else without it, so it is suspended."""

    verdict: str
    source: str
    field: str
    place: str
    text: str = ""
    setting: str = ""
    halts: bool = False


@dataclass(frozen=True, slots=True)
class Lost:
    """A row of a table of fields: one that has no counterpart, why, and what to do instead."""

    why: str
    halts: bool = False


Rows = Mapping[str, str | Lost]
"""A field, its keys joined by points -> why nothing need be set for it, or that it is lost."""


@dataclass(slots=True)
class CustomResource:
    """One resource. `standing`: where its fields stand (see `handler.render.document.Standing`); `notes`: what became of its fields.

    `texts`: the YAML texts in it, as read, by the path of their field; `covered`: paths of which all is said; `wrong`: of a wrong type.
    """

    body: dict[str, Any]
    file: str
    line: int = 0
    standing: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, Any] = field(default_factory=dict)
    notes: list[FieldNote] = field(default_factory=list)
    covered: set[FieldPath] = field(default_factory=lambda: set(_NAMES))
    wrong: set[FieldPath] = field(default_factory=set)

    @property
    def group(self) -> str:
        """The API group."""
        return group_of(_text(self.body.get("apiVersion")))

    @property
    def kind(self) -> str:
        """The kind."""
        return _text(self.body.get("kind"))

    @property
    def namespace(self) -> str:
        """The namespace; `default` where none is written, as for kubectl."""
        return _text(self._metadata.get("namespace")) or "default"

    @property
    def name(self) -> str:
        """The name."""
        return _text(self._metadata.get("name"))

    @property
    def _metadata(self) -> Mapping[str, Any]:
        metadata = self.body.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    def __str__(self) -> str:
        """Read as `Kustomization/flux-system/apps`."""
        return printable("/".join((self.kind, self.namespace, self.name)), 400)

    @property
    def fields(self) -> SourceField:
        """The whole resource."""
        return SourceField(self, (), self.body)

    def place(self, path: FieldPath = ()) -> str:
        """Return file:line of a field, or of the nearest of its parents that has a line."""
        line, standing = self.line, self.standing
        for key in path:
            found = standing.get(f"[{key}]" if isinstance(key, int) else key_in_path(key))
            if found is None:
                break
            line, standing = found
        return printable(self.file, 400) + (f":{line}" if line else "")

    def note(self, verdict: str, path: FieldPath, text: str = "", setting: str = "", *, halts: bool = False) -> None:
        """Say what became of a field and of all below it. Of a value of a wrong type that was said before."""
        self.covered.add(path)
        if path in self.wrong:
            return
        made = FieldNote(verdict, str(self), shown(path), self.place(path), text, setting, halts)
        if made not in self.notes:
            self.notes.append(made)

    def note_unknown(self) -> None:
        """Name every leaf that nothing was said of."""
        for path, value in leaves(self.body):
            if not any(path[:length] in self.covered for length in range(len(path) + 1)):
                if value in OFF[3:] or value is None:
                    self.note(ITSELF, path, _EMPTY)
                else:
                    self.note(LOST, path, _UNKNOWN)

    @property
    def halts(self) -> bool:
        """Whether something is lost without which a target would do something else."""
        return any(each.halts for each in self.notes)


@dataclass(frozen=True, slots=True)
class SourceField:
    """A value of a resource and where it is; None where nothing is. Reading one of another type notes that."""

    of: CustomResource
    path: FieldPath
    value: Any

    def __bool__(self) -> bool:
        return self.value is not None

    def at(self, *keys: str | int) -> SourceField:
        """Return what is below; a key holds any characters."""
        value = self.value
        for key in keys:
            if isinstance(value, dict) and isinstance(key, str):
                value = value.get(key)
            else:
                value = value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else None
        return SourceField(self.of, (*self.path, *keys), value)

    def below(self, points: str) -> SourceField:
        """Return what is below, by keys joined by points."""
        return self.at(*points.split("."))

    def items(self) -> list[SourceField]:
        """Return a list's items."""
        return [self.at(index) for index in range(len(self._typed(list, [])))]

    def text(self) -> str:
        """Return a text, empty where there is none."""
        return self._typed(str, "")

    def flag(self) -> bool:
        """Return a truth, False where there is none."""
        return self._typed(bool, False)

    def texts(self) -> list[str]:
        """Return a list's texts."""
        return [text for item in self.items() if (text := item.text())]

    def mapping(self) -> dict[str, Any]:
        """Return a mapping, empty where there is none."""
        return self._typed(dict, {})

    def itself(self, why: str) -> None:
        """Note that nothing need be set for it."""
        if self:
            self.of.note(ITSELF, self.path, why)

    def lost(self, why: str, *, halts: bool = False) -> None:
        """Note that it has no counterpart."""
        if self:
            self.of.note(LOST, self.path, why, halts=halts)

    def set(self, setting: str, text: str = "") -> None:
        """Note which setting it became."""
        if self:
            self.of.note(SET, self.path, text, setting)

    def rows(self, rows: Rows) -> None:
        """Note what a table says of the fields below; what is switched off says nothing."""
        for points, row in rows.items():
            found = self.below(points)
            if isinstance(row, str):
                found.itself(row)
            elif found.value in OFF and found:
                found.itself(_EMPTY)
            else:
                found.lost(row.why, halts=row.halts)

    def _typed(self, wanted: type[T], otherwise: T) -> T:
        if self.value is None:
            return otherwise
        if type(self.value) is wanted:
            return self.value
        self.of.note(LOST, self.path, f"expected {_WORDS[wanted]}, found {_WORDS.get(type(self.value), 'something else')}", halts=True)
        self.of.wrong.add(self.path)
        return otherwise


def leaves(value: Any, path: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Yield path and value of all that isn't a mapping or list with something in it. No recursion: depth comes from outside."""
    stack: list[tuple[FieldPath, Any]] = [(path, value)]
    while stack:
        here, found = stack.pop()
        below = list(found.items()) if isinstance(found, dict) else list(enumerate(found)) if isinstance(found, list) else []
        if below:
            stack += [((*here, key), each) for key, each in reversed(below)]
        else:
            yield here, found


def shown(path: FieldPath) -> str:
    """Write a path as `spec.sources[0].helm`."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key_in_path(key)}" for key in path)
    return text.removeprefix(".")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
