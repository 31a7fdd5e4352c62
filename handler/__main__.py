"""`python -m handler` is `anneal`."""

from __future__ import annotations

from handler.cli import main

if __name__ == "__main__":
    main()
