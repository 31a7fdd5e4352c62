"""The page: how targets stand, what they would change, and what a person may decide about them, in a browser.

    access, roles, sessions         who is asking, and what of the targets they may see and do
    proxy_headers, oidc             the ways to sign in (`identity_provider` asks one)
    routes, views                   paths -> views, the headers of every answer; what every view works with
    site_pages, target_pages        the worker's answers (`views`) -> what a template shows, by `overview` and `target_view`
    acts                            what a person may decide: shown, confirmed, done
    rendering, templates, static    HTML, by Jinja with everything escaped; one script, one style sheet
    live_feed                       what changes meanwhile, to all open pages

Law: it asks the worker and reaches no cluster. What it shows comes from git, clusters and strangers: all of it is escaped, links lead to
http and https alone, and a browser runs nothing but our one file.
"""
