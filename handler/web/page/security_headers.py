"""What a browser may do with a page: run our one script, show our own style and pictures, send forms to us; nothing else."""

from __future__ import annotations

_CSP = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
PAGE_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{kind} {source}" for kind, source in _CSP.items()),
    "Referrer-Policy": "same-origin",  # without any, browsers send `Origin: null` with forms
    "Cross-Origin-Opener-Policy": "same-origin",
}
