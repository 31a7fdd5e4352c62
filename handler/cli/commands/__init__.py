"""What the command line looks like: each command's arguments, options and help, in the order of a target's life.

Law: a module of this package imports click, `handler.cli.options` and constants, so that `anneal COMMAND --help` answers at once. What a
command does is the function of the same name in the module of `handler.cli` that its declaration names: it is imported when it is called,
it takes a Session and the declared arguments, and it returns the exit code.
"""
