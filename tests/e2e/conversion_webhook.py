"""A conversion webhook on loopback, as a vendor runs one: in v1 an Offer has a `price`, in v2 the same is its `cost.amount`."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.e2e.documents import Document, definition
from tests.rooms.source.certificates import Authority


class _Converter(BaseHTTPRequestHandler):
    busy = threading.Event()

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.busy.is_set():
            self.send_error(429)
            return
        asked = review["request"]
        objects = [_converted(item, asked["desiredAPIVersion"]) for item in asked["objects"]]
        answer = {"uid": asked["uid"], "convertedObjects": objects, "result": {"status": "Success"}}
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _converted(item: dict[str, Any], version: str) -> dict[str, Any]:
    spec = dict(item.get("spec") or {})
    if version.endswith("/v2") and "price" in spec:
        spec["cost"] = {"amount": spec.pop("price")}
    elif version.endswith("/v1") and "cost" in spec:
        spec["price"] = spec.pop("cost")["amount"]
    return {**item, "apiVersion": version, "spec": spec}


@contextmanager
def converted(group: str, place: Path, busy: threading.Event | None = None) -> Iterator[Document]:
    """Serve conversions, and yield the definition of Offers that asks for them. `busy`: while it is set each is answered with 429."""
    authority = Authority(place, "vendor")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.certificate("converter"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Converter", (_Converter,), {"busy": busy or threading.Event()}))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    client = {
        "url": f"https://127.0.0.1:{server.server_address[1]}/convert",
        "caBundle": base64.b64encode(authority.file.read_bytes()).decode(),
    }
    try:
        yield _definition(group, client)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _definition(group: str, client: dict[str, str]) -> Document:
    crd = definition(group)
    (first,) = crd["spec"]["versions"]
    amount: Document = {"cost": {"type": "object", "properties": {"amount": {"type": "integer"}}}}
    schemas: dict[str, Document] = {"v1": {"price": {"type": "integer"}}, "v2": amount}
    alike: Document = {"note": {"type": "string"}, "size": {"type": "integer"}}
    crd["spec"]["versions"] = [
        {**first, "name": name, "storage": name == "v2", "schema": {"openAPIV3Schema": _schema({**own, **alike})}}
        for name, own in schemas.items()
    ]
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}
    return crd


def _schema(spec: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
