"""The door: verify, match, enqueue, answer. It never touches a cluster or a git host, so nothing slow can make a webhook time out.

`loop` reads requests in front of the threads (`incoming`: when one is whole; `crowd`: who gives way at a full door), `server` is gunicorn's
settings. `app` puts the routes together, `webhooks` and `replay` are the two that ask for runs, `body` reads what is sent within bounds,
`answers` says what every answer looks like.
"""
