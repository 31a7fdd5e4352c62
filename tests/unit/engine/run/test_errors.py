"""What of an error is kept and shown."""

from __future__ import annotations

from handler.engine.run.errors import masked_error
from handler.model.errors import ClusterUnavailable, PlanRefused, Problem
from handler.model.names import Identity

SAID = 'PATCH answered 500: conversion webhook for acme.io/v1, Kind=Login failed: url "hunter2" is unknown'


def test_what_a_failing_server_says_of_an_object_that_holds_what_isnt_shown_is_left_out() -> None:
    login, other = Identity("acme.io", "Login", "shop", "ann"), Identity("acme.io", "Login", "shop", "bob")
    error = masked_error(ClusterUnavailable(Problem(str(login), SAID), Problem(str(other), SAID)), {login})
    assert [each.message for each in error.problems] == ["PATCH answered 500; what it says may hold a value that isn't shown", SAID]
    assert masked_error(PlanRefused(Problem(str(login), SAID)), {login}).problems[0].message == SAID, "those are told apart before"
