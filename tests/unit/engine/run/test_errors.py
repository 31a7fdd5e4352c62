"""What of an error is kept and shown."""

from __future__ import annotations

from collections.abc import Collection

from handler.cluster.errors import refused
from handler.engine.run.errors import masked_error
from handler.model.errors import ClusterUnavailable
from handler.model.names import Identity

WORDS = 'conversion webhook for acme.io/v1, Kind=Login failed: url "hunter2" is unknown'
LOGIN, PATH = Identity("acme.io", "Login", "shop", "ann"), "/apis/acme.io/v1/namespaces/shop/logins/ann"


def test_what_a_failing_server_says_of_an_object_that_holds_what_isnt_shown_is_left_out() -> None:
    def told(closed: Collection[Identity]) -> str:
        body = {"kind": "Status", "code": 500, "message": WORDS}
        (problem,) = masked_error(refused(500, body, "PATCH", PATH, str(LOGIN)), closed).problems
        return problem.message

    assert told({LOGIN}) == "PATCH answered 500; what it says may hold a value that isn't shown"
    assert told(()) == f"PATCH answered 500: “{WORDS}”"


def test_why_nothing_answers_is_said_of_every_object() -> None:
    silent = ClusterUnavailable.of(str(LOGIN), "PATCH got no answer from https://a: connection refused")
    assert masked_error(silent, {LOGIN}).problems[0].message.endswith("connection refused")
