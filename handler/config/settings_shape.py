"""What the settings' dataclasses look like from outside: YAML keys, types, defaults. Loader and schema read the same shape."""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

from handler.config.value_formats import duration
from handler.model.to_json import camel

Json = NewType("Json", str)
"""A mapping of any content, as canonical JSON; empty: none is written."""


def doc(text: str, default: Any = MISSING, *, factory: Any = MISSING, kind: str = "") -> Any:
    """Return a dataclass field whose `doc` and `kind` (a row of `FORMS` or `RANGES`) the loader and schema read."""
    made: Any = partial(field, metadata={"doc": text, "kind": kind})
    return made(default=default, default_factory=factory)


@dataclass(frozen=True, slots=True)
class Slot:
    """One field: `key` in YAML, `type` without None, `kind` names its form, `default` (unless `required`), `words` in place of its list.

    A list of words with a `kind` takes texts of that form, too.
    """

    name: str
    key: str
    type: Any
    optional: bool
    required: bool
    default: Any
    kind: str
    doc: str
    words: tuple[str, ...] = ()

    @property
    def item(self) -> Any:
        """The type of a list's items; None for anything else."""
        item = get_args(self.type)[0] if get_origin(self.type) is tuple else None
        return get_args(item)[0] if get_origin(item) in (Union, UnionType) else item


@cache
def slots(cls: type) -> tuple[Slot, ...]:
    """Return a settings class' fields, in the order they are written."""
    hints = get_type_hints(cls)
    return tuple(_slot(field, hints[field.name]) for field in fields(cls))


def _slot(field: Field[Any], hint: Any) -> Slot:
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    words, *lists = [option for option in options if option is not NoneType]
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return Slot(
        name=field.name,
        key=camel(field.name),
        type=lists[0] if lists else words,
        optional=NoneType in options,
        required=default is MISSING,
        default=default,
        kind="json" if words is Json else field.metadata.get("kind", ""),
        doc=field.metadata["doc"],
        words=get_args(words) if lists else (),
    )


def written(value: Any, kind: str = "") -> Any:
    """Return a value as YAML or JSON would hold it; what equals its default is left out of mappings."""
    if kind == "duration":
        return duration(value)
    if kind == "json":
        return json.loads(value or "{}")
    if isinstance(value, tuple):
        return [written(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((slot, getattr(value, slot.name)) for slot in slots(type(value)))
        return {slot.key: written(found, slot.kind) for slot, found in pairs if slot.required or found != slot.default}
    return value
