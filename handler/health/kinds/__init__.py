"""Health rules of each kind: pure functions from a live object to Health, kstatus' rules and ours."""
