"""Charts that git doesn't hold: from OCI registries and chart repositories, below the URLs that the operator lists for a target.

    which            a version of a range, as Helm reads them          chart_versions
    known            what git, the target or its record hold of it     chart_pins
    where            the listed prefix, its credential and authority   chart_sources
    how              one bounded request, redirects judged             chart_http
    from             a registry | a repository with its index.yaml     oci_registry, chart_repository
    once a render    the index of a repository                         chart_index_cache
    all of it        chart_fetcher, with its cache by digest

Law: nothing is asked that no listed prefix covers; a credential goes to its own origin; what is returned has the digest that is known.
"""
