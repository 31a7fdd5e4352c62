"""Queries Prometheus for checks of rollouts, only at servers that the configuration lists: no URL in git is asked (CWE-918)."""
