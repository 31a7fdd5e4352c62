"""Libraries that not every form carries: a package of cloud functions leaves out what few need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from handler.model.advice import advice
from handler.model.errors import ConfigInvalid

_DISTRIBUTIONS = {"re2": "google-re2"}  # PyPI's re2 is another project


@contextmanager
def needed_by(subject: str, packed: str = "scripts/package --ssh") -> Iterator[None]:
    """Import what `subject` of the configuration needs; `packed`: the command that packs it. Raises ConfigInvalid: it isn't installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in {"", "handler"}:
            raise
        name = _DISTRIBUTIONS.get(library, library.replace("_", "-"))
        fix = advice("{text} packs it for functions; elsewhere: pip install {}", packed, name)
        raise ConfigInvalid.of(subject, f"needs the library {library}, which isn't installed here", fix=fix) from None
