"""The entry point of any WSGI server. `python -m handler.web` serves the same with gunicorn."""

from handler.web.bootstrap import application

__all__ = ["application"]
