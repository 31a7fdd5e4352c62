# Stands for NixOS' entry in tests: two options beside those of the modules given.
{ pkgs, modules, lib ? import ../../lib }:
lib.evalModules {
  modules = modules ++ [
    {
      options.services.nginx.enable = lib.mkOption { type = lib.types.bool; default = false; };
      options.networking.hostName = lib.mkOption { type = lib.types.str; default = "nixos"; };
    }
    { _module.args.pkgs = pkgs; }
  ];
}
