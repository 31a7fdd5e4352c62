"""The bench: what Anneal costs, measured beside kubectl on one API server (DESIGN.md section 10)."""
