# The options of Kubernixos: what modules may set, and what is made of it.
{ config, lib, ... }:
let
  inherit (lib) mkOption types;
  cfg = config.kubernixos;
  option = type: default: description: mkOption { inherit type default description; };

  # A label has at most 63 characters. The sum is that of the manifests before they carry it.
  checksum = builtins.substring 0 62 (builtins.hashString "sha256" (builtins.toJSON cfg.manifests));
  labelled = manifest: lib.recursiveUpdate manifest { metadata.labels.kubernixos = checksum; };
  items = if builtins.isList cfg.manifests then cfg.manifests else builtins.attrValues cfg.manifests;
in
{
  options.kubernixos = {
    manifests = option (types.either (types.listOf types.attrs) (types.attrsOf types.attrs)) { } "Kubernetes objects, by a name or as a list.";
    server = option types.str "" "Address of the API server that these manifests are for; empty: any.";
    version = option types.str "" "Version of Kubernetes. Anneal asks the API server itself: each object is tried on it before one is applied.";
    schemas = option types.unspecified null "Schemas that kubeval would read; not used.";
    skipSchemas = option (types.listOf types.str) [ ] "Kinds that kubeval would pass over; not used.";
    build = option types.unspecified null "A package of the manifests; nothing is built.";
    checksum = option types.str checksum "Checksum of the manifests, the value of their label.";
    eval = option types.attrs { } "What is evaluated: the checksum and the List that is applied.";
  };
  config.kubernixos.eval = {
    config = { inherit checksum; inherit (cfg) server skipSchemas version; };
    manifests = { apiVersion = "v1"; kind = "List"; items = map labelled items; };
  };
}
