"""A vendor's program, run for a render child behind walls of its own: kustomize, helm.

    order     what is run, over which files, within which limits          program; in the worker
    place     a private directory, always removed                         private_directories; in the worker
    run       the program, its output, its end                            program_supervisor; in the child
    walls     files, sockets, processes                                   program_walls, landlock; in the program's own process
    watch     memory, time, processes of all that it started              process_tree; in the child

Law: a program has the files of its order and nothing else, and leaves nothing behind: no file, no process.
"""
