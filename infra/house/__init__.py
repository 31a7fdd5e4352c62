"""The rules of the house, judged from the files of the checkout alone: `python -m infra.house`, a step of scripts/lint.

    sources   the Python files, each parsed once; what a fault is
    layers    the law of imports, as data
    imports   who imports whom, and from where
    code      how long things are, how they are called, what never stands in code
    prose     words that name no subject
    advice    where `handler` makes a command or a block of settings
    commands  that nothing makes one by hand, and that each is complete
    pages     what the pages name: links, paths, hosts, blocks
    messages  that what the pages quote is what the code says
    promises  that sentences of the pages and the tests that guard them are there
    forge     workflows, scripts, credentials

Nothing of the product is imported: what has to run it is a test.
"""
