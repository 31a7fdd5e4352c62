"""The jsonnet renderer; `jsonnet_renderer` has the flow.

Law: the worker resolves imports: jsonnet_imports. The child lexes programs, evaluates them and reads what they make: import_lexer,
evaluation, jsonnet_output, jsonnet_errors.
"""
