"""How large a record may become, and what is left out of one that is larger, in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from handler.model.errors import StateInvalid
from handler.model.names import state_name
from handler.state.cluster_port import Body
from handler.state.configmap import decode, encode
from handler.state.record import Progress, State

LIMIT = 700_000  # most bytes of data and binaryData (as base64); the API server's own limit is 1 MiB
_COMMENTS = 20  # of pull requests that stay as long as anything does that isn't needed: without its note a comment is posted anew
_BRIEF = 200  # characters of what a step says where there is no room for more


def fitted(state: State, namespace: str, tooling: str) -> tuple[State, Body]:
    """Return what will really be stored, trimmed to the limit, and its ConfigMap.

    What git hosts have goes first, but for the newest comments, then history, changed subjects, what a rollout's steps say, the drift
    record, the read paths (the next push then renders); `declared` never. Raises StateInvalid: that isn't enough, or a value breaks its
    rule and couldn't be read again.
    """
    for smaller in _trimmed(state):
        body = encode(smaller, namespace, tooling)
        if size(body) <= LIMIT:
            return decode(body, namespace, state.target, tooling), body
    raise StateInvalid.of(
        f"ConfigMap/{namespace}/{state_name(state.target)}",
        f"the record of {len(state.declared)} objects needs {size(body)} bytes, {LIMIT} are allowed",
        fix="split the target in two",
    )


def _trimmed(state: State) -> Iterator[State]:
    yield state
    kept = tuple(each for each in state.commit_statuses if each.is_owed or not each.is_end)
    state = replace(state, pull_requests=state.pull_requests[:_COMMENTS], commit_statuses=kept)
    yield state
    for count in (10, 5):
        yield replace(state, history=state.history[:count])
    bare = replace(state, history=tuple(replace(run, changed=()) for run in state.history[:5]))
    yield bare
    for most in (_BRIEF, 0):
        bare = replace(bare, rollout=_shortened(bare.rollout, most))
        yield bare
    yield replace(bare, drift=())
    yield replace(bare, drift=(), reads_paths=())
    yield replace(bare, drift=(), reads_paths=(), pull_requests=())


def _shortened(rollout: Progress | None, most: int) -> Progress | None:
    return rollout and replace(rollout, steps=tuple(replace(step, message=step.message[:most], stood=()) for step in rollout.steps))


def size(body: Body) -> int:
    """Return how many bytes of data a ConfigMap holds."""
    return sum(len(value.encode()) for part in ("data", "binaryData") for value in body[part].values())
