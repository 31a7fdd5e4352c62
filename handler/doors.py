"""The two doors of functions, each a part of the same application: git hosts' deliveries, and named tokens' requests and questions.

Neither keeps anything: what is asked is in the queue when it is answered. `api` alone reaches clusters, and only reads there.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from flask import Flask

from handler.answering import Answers
from handler.config.settings import Target
from handler.feedback.emf import Lines
from handler.ground import Ground, clusters, ground
from handler.once import Once
from handler.queues.inbox import Closed
from handler.queues.ledger import Ledger
from handler.queues.pending import Work
from handler.reading import Json, Readable, Reader
from handler.web.app import NOBODY, Part, create_app
from handler.web.reads import Behind

WEBHOOKS: frozenset[Part] = frozenset({"webhooks"})
TOKENS: frozenset[Part] = frozenset({"replay", "reads"})


def webhooks(environ: Mapping[str, str] = os.environ) -> Flask:
    """Make the door of git hosts; it knows webhook secrets alone. Raises ConfigInvalid, SecretUnavailable, QueueInvalid."""
    base = ground(environ, {"webhooks"})
    most = base.settings.webhooks.max_body
    return create_app(base.settings, base.secrets, base.queue, lambda: True, worker=NOBODY, metrics=Lines(), max_body=most, parts=WEBHOOKS)


def api(environ: Mapping[str, str] = os.environ) -> Flask:
    """Make the door of named tokens; it knows their secrets alone. Raises ConfigInvalid, SecretUnavailable, QueueInvalid."""
    base = ground(environ, {"tokens"})
    most = base.settings.webhooks.max_body
    return create_app(
        base.settings,
        base.secrets,
        base.queue,
        lambda: True,
        worker=behind(base, environ),
        metrics=Lines(),
        max_body=most,
        parts=TOKENS,
    )


def behind(base: Ground, environ: Mapping[str, str]) -> Behind:
    """Return who answers where there is no worker process to ask: the records alone, and no memory."""
    handler = Once(lambda: clusters(base, environ))

    def records(target: Target) -> Readable:
        return handler.get().records(target)

    answers = Answers(Ledger(), Reader(base.settings, records, base.secrets.mask), _taken, lambda: "", base.secrets.mask)

    def ask(question: str, **about: Any) -> Json:
        return answers.answer({"ask": question, **about})

    return Behind(ask, lambda _request: None, sees=False)


def _taken(_work: Work) -> Json:
    """Take no job by a question: there is a queue for that."""
    raise Closed
