"""The door: verify, match, enqueue, answer. It never touches a cluster or a git host, so nothing slow can make a webhook time out.

`app` puts the routes together, `webhooks` and `replay` are the two that ask for runs, `body` reads what is sent within bounds,
`answers` says what every answer looks like, `server` is the gunicorn worker that cuts slow clients off.
"""
