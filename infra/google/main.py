"""Google Cloud Functions: git hosts' door, entry point `webhook`. The queue is Amazon's, the workers are elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import functions_framework
from flask import Request
from werkzeug.wrappers import Response

from handler.functions import wsgi

os.environ.setdefault("ANNEAL_CONFIG", str(Path(__file__).with_name("anneal.yaml")))


@functions_framework.http
def webhook(request: Request) -> Response:
    """Answer a delivery, from the bytes that were signed."""
    return Response.from_app(wsgi, request.environ)
