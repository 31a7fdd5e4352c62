"""Custom resources of Flux and Argo CD -> the targets that do the same (`anneal import`).

    custom_resource   what was read, and which of its fields are accounted for
    target_draft      a target as it is put together, each value judged by the configuration's own forms
    flux_sources, flux_kustomization, flux_helm, argocd, argocd_sources
    conversion        one row a kind; references between resources, names of targets
    output            the configuration as YAML, what became of each field as comments; or all of it as JSON

Law: pure; no file, cluster or Secret is read. Each leaf of each resource ends in one of three lists: a setting, by itself, not taken over.
"""
