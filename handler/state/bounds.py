"""Where members of a target can be: what a record's annotations bound, and all that the record names besides.

Law: the annotations are KEP-3659's hints, and people and other tools edit them. A member of a kind that they leave out would be seen by no
LIST and live for ever, unmentioned; so whatever reads or writes a record adds the kinds and namespaces of the objects that it names.
"""

from __future__ import annotations

from dataclasses import replace

from handler.model.names import GroupKind
from handler.state.record import State


def bounded(state: State) -> State:
    """Return a state whose kinds and namespaces hold every object that it names: declared ones, and those that were kept."""
    named = (*state.declared, *(orphan.identity for orphan in state.orphans))
    kinds = {GroupKind(*pair) for pair in {(identity.group, identity.kind) for identity in named}} - state.kinds  # few kinds, many objects
    namespaces = {identity.namespace for identity in named if identity.namespace} - state.namespaces
    return replace(state, kinds=state.kinds | kinds, namespaces=state.namespaces | namespaces) if kinds or namespaces else state
