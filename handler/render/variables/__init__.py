"""Variables in rendered objects, as Flux' `postBuild` writes them: after every renderer, before admission.

variables      the worker's half: which names stand for what, from settings and the cluster; the objects that come back
substitution   the child's half: objects -> objects, field by field, what may not come from the cluster refused
expression     one text: `${name}`, defaults, parts, replacements
trimming       `${name#pattern}` and its kin
flux_scalars   what YAML makes of a text once its variables are written out
"""
