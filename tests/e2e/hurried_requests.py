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
        return Api._answered(hurried if chosen(request.method, path) else api, request, preload=preload)

    patch.setattr(api, "_answered", answered)
    return hurried
