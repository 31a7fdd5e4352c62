"""The way to Prometheus, for checks of rollouts: a query, and what it finds.

Law: only what the operator's configuration lists is asked. A URL in git is no reason to send a request anywhere (CWE-918), and what answers
is read within limits of size and time, without following it elsewhere.
"""
