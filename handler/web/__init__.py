"""The door: verify, match, enqueue, answer. It never touches a cluster or a git host, so nothing slow can make a webhook time out.

`gunicorn_worker` reads whole requests in front of the threads, `app` puts the routes together, `webhooks` and `replay_endpoint` accept
requests for runs, `responses` forms every answer.
"""

from __future__ import annotations

BIND = "127.0.0.1:8080"  # where it listens
MAX_REQUESTS = 100_000  # after so many the web process is replaced by a new one, should something in it grow; 0: never
