"""Queries Prometheus for checks of rollouts.

Only servers that the operator's configuration lists are asked: a URL in git never causes a request (CWE-918).
"""
