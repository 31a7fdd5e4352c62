"""The Helm renderer; `helm_renderer` has the flow.

Law: the worker gathers what helm reads: helm_charts, helm_values, chart_facts. The child parses what charts hold and what helm said:
chart_scan, helm_output, helm_errors, made_anew, pieces.
"""
