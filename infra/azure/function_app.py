"""Azure Functions: git hosts' door, anonymous, for a signature proves the sender. The queue is Amazon's, the workers are elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import azure.functions

from handler.functions import wsgi
from handler.functions.gateway import whole

os.environ.setdefault("ANNEAL_CONFIG", str(Path(__file__).with_name("anneal.yaml")))
app = azure.functions.WsgiFunctionApp(app=whole(wsgi), http_auth_level=azure.functions.AuthLevel.ANONYMOUS, function_name="webhook")
