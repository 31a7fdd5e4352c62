"""Processes of servers that die at random while a test goes on."""

from __future__ import annotations

import random
import threading

from tests.e2e.serve_process import Part, Serving

MURDERS: tuple[tuple[Part, ...], ...] = (("worker",), ("web",), ("supervisor",), ("supervisor", "worker", "web"))


class KillingThread(threading.Thread):
    """Kills processes of one server after the other until it is asked to stop; a server without supervisor is started again."""

    def __init__(self, servers: list[Serving], chance: random.Random, every: float) -> None:
        """`every`: seconds between two deaths."""
        super().__init__(daemon=True)
        self.servers, self.chance, self.every = servers, chance, every
        self.ended = threading.Event()
        self.count = 0

    def run(self) -> None:
        while not self.ended.wait(self.every):
            server, parts = self.chance.choice(self.servers), self.chance.choice(MURDERS)
            server.kill(*parts)
            self.count += 1
            if "supervisor" in parts:
                server.start()

    def stop(self) -> None:
        self.ended.set()
        self.join()
