"""Waits inside a run: what is waited for, what interrupts it, and the report of unhealthy objects."""
