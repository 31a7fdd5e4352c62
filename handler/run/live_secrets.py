"""What may not be said of a target's live objects where its commit isn't rendered: what its live Secrets hold.

    a run                          its commit's Secrets and fields                         `handler.run.hiding`
    a watch, a tick's look         the Secrets in the cluster that carry its label, read with its own rights    here

A controller repeats in a condition or an event what it has read, a password maybe.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from handler.cluster.api import Api
from handler.cluster.live import Object, members
from handler.config.masking import Mask
from handler.config.parts import parts
from handler.model.health import Health
from handler.model.names import PART_OF, Identity, identity_of
from handler.model.resource import Resource
from handler.run.hiding import fields, held, without_tokens

_SECRET = Resource("", "v1", "Secret", "secrets", namespaced=True)


def live_hiding(api: Api, declared: Collection[Identity], applyset: str, mask: Callable[[str], str]) -> Callable[[str], str]:
    """Return a mask of what a target's Secrets hold, whole and in parts, and of JSON web tokens.

    Args:
        api: with the target's identity.
        declared: the objects of the target; only where Secrets are among them is anything read.
        applyset: the value of its label.
        mask: hides what else is secret.

    Raises:
        AnnealError: the Secrets can't be read.

    """
    spaces = {each.namespace for each in declared if each.group_kind == _SECRET.group_kind}
    names = {name for each in declared for name in (each.name, each.namespace)}
    live = members(api, [_SECRET], f"{PART_OF}={applyset}", tuple(sorted(spaces))) if spaces else ()
    hidden = Mask.of(text for secret in live for text in _said_of(secret, names))
    return lambda text: without_tokens(hidden(mask(text)))


def without_fields(live: Object, found: Health) -> Health:
    """Return a verdict whose words don't repeat what stands in the object's own fields whose name says that they hold a secret."""
    if not found.message:
        return found
    identity = identity_of(live)
    hidden = Mask.of(fields(identity.group_kind, live, (identity.name, identity.namespace)))
    return replace(found, message=hidden(found.message))


def _said_of(secret: Object, names: Collection[str]) -> Iterator[str]:
    for value in held(secret):
        yield value
        yield from parts(value) - set(names)
