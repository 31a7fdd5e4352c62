"""Queries Prometheus for checks of rollouts.

Law: only servers that the operator's configuration lists are asked: a URL in git never causes a request (CWE-918). Answers are read within
limits of size and time, and redirects aren't followed.
"""
