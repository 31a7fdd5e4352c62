"""Requests that a handler gives up soon: those that a test has chosen, while all others have the handler's own deadlines."""

from __future__ import annotations

from copy import copy
from urllib.parse import urlencode

import pytest
import urllib3

from handler.cluster.api import Api, ApiRequest
from tests.e2e.api_proxy import Chosen


def hurry(patch: pytest.MonkeyPatch, api: Api, chosen: Chosen, deadline: float, silence: float = 60.0) -> Api:
    """Give the chosen requests of an Api these deadlines, in seconds; return the Api that sends them, whose deadlines may change.

    The rest waits for as long as an API server that is busy with other tests takes.
    """
    hurried = copy(api)
    hurried._deadline, hurried._silence = deadline, silence

    def answered(request: ApiRequest, *, preload: bool) -> urllib3.BaseHTTPResponse:
        path = f"{request.path}?{urlencode(request.query)}" if request.query else request.path
        if not chosen(request.method, path):
            return Api._answered(api, request, preload=preload)
        try:
            return Api._answered(hurried, request, preload=preload)
        finally:
            api._date = hurried._date or api._date  # the server's clock, which the handler reads of its own Api

    patch.setattr(api, "_answered", answered)
    return hurried
