"""What a run's texts may not show: the operator's secrets, and what the Secrets of the commit hold, for a container may print them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from handler.config.masking import Mask
from handler.model.errors import AnnealError
from handler.model.manifest import Manifest, at
from handler.model.names import GroupKind

_SECRET = GroupKind("", "Secret")


@dataclass(slots=True)
class Hiding:
    """A mask of both. The Secrets are read at its first use: most runs have nothing to hide."""

    mask: Callable[[str], str]
    manifests: Iterable[Manifest] = field(repr=False)
    _declared: Mask | None = None

    def __call__(self, text: str) -> str:
        """Return the text with every spelling of every secret replaced."""
        if self._declared is None:
            self._declared = Mask.of(values(self.manifests))
        return self._declared(self.mask(text))


def hidden(error: AnnealError, mask: Callable[[str], str]) -> AnnealError:
    """Mask what an error's problems say. It stays the same error: its class tells who must act, what else it carries nobody shows."""
    error.problems = tuple(replace(each, message=mask(each.message), fix=mask(each.fix)) for each in error.problems)
    error.args = error.problems
    return error


def values(manifests: Iterable[Manifest]) -> Iterator[str]:
    """Yield what declared Secrets hold, as text; what is none is printed by nobody."""
    for manifest in manifests:
        if manifest.identity.group_kind != _SECRET:
            continue
        body = manifest.body()
        plain, encoded = at(body, "stringData"), at(body, "data")
        yield from (value for value in (plain.values() if isinstance(plain, dict) else ()) if isinstance(value, str))
        yield from filter(None, (_decoded(value) for value in (encoded.values() if isinstance(encoded, dict) else ())))


def _decoded(value: object) -> str:
    try:
        return base64.b64decode(value if isinstance(value, str) else "").decode()
    except (binascii.Error, ValueError):
        return ""
