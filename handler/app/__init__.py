"""Puts the engine and its adapters together: what `anneal`, its web process, its worker and its functions have in common."""
