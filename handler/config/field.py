"""How a field of a settings class is written: its description and the kind of value, beside its default. Loader and schema read them."""

from __future__ import annotations

from dataclasses import field
from typing import Any


def doc(text: str, default: Any = ..., *, factory: Any = None, kind: str = "") -> Any:
    """Return a dataclass field whose `doc` and `kind` (a row of `forms.FORMS` or `forms.RANGES`) the loader and schema read."""
    metadata = {"doc": text, "kind": kind}
    if factory is not None:
        return field(default_factory=factory, metadata=metadata)
    if default is ...:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)
