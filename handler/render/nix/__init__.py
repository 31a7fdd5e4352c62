"""The Nix renderer: NixOS modules that set `kubernixos.manifests`, evaluated by the operator's nix in a sandbox.

    nix_renderer     one render: closure, directories of the operator, program, objects        in the worker
    nix_closure      which files of the commit expressions name                                in the worker; nix_paths in the child
    nixpkgs          nixpkgs and other directories of the operator, known by their content     in the worker
    eval.nix         the program that nix evaluates; kubernixos.nix: the module                in the sandbox
    nix_output       what nix printed -> objects                                               in the child; nix_errors: its mistakes

Law: nothing is built, fetched or stored, no clock and no variable is read: the same files and the same nix make the same objects.
"""
