"""What the made-up hosts of these tests have in common: an HTTP server on loopback, in a thread, while they are entered."""

from __future__ import annotations

import threading
from http.server import ThreadingHTTPServer


class Listening:
    """A host. `_listen` is called on entering, with the host's own kind of server."""

    def _listen(self, server: ThreadingHTTPServer) -> None:
        self._listener = server
        self._thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown()
        self._listener.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.server_address[1])
