"""The kustomize renderer; `kustomize_renderer` has the flow.

Law: the worker decides what a build may see: kustomize_closure, generated_kustomization, remotes. The child parses what git holds and what
the program said: kustomization, kustomize_output, kustomize_errors.
"""
