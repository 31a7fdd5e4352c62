"""The command line with short polls of a queue: a worker that is asked to stop waits for the end of one."""

from __future__ import annotations

from handler.worker import sqs_consumer

sqs_consumer.WAIT = 1.0

from handler.cli import main  # noqa: E402 - who imports it has the shorter one

if __name__ == "__main__":
    main()
