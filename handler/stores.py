"""Who is asked for a secret that stands neither in the environment nor in a file: one row a place. Nothing is loaded before it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from handler.config.git import SecretRef
from handler.config.remote import Fetch, nowhere
from handler.config.settings import Settings

Reader = Callable[[Settings, Mapping[str, str]], Fetch]


READERS: Mapping[str, Reader] = {}
"""By the field of a reference that names the place."""


def fetcher(settings: Settings, environ: Mapping[str, str]) -> Fetch:
    """Return what asks the stores that this configuration's remote references name."""
    reader = cache(lambda place: READERS[place](settings, environ))

    def fetch(ref: SecretRef) -> str | None:
        place = next((place for place in READERS if getattr(ref, place)), "")
        ask: Fetch = reader(place) if place else nowhere
        return ask(ref)

    return fetch
