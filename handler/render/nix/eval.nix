# Modules -> Kubernetes objects. Evaluated by `nix-instantiate --eval --strict --json` in restricted mode.
#
# Everything that is imported sees `scope` in place of Nix' own names: a clock and what fetches are refused by name, wherever they are called.
{
  modules,
  packages,
}:
let
  refused = name: why: throw "anneal: ${name} ${why}";
  fetcher = name: _: refused name "would fetch, and a render has no network";
  overridden = {
    import = path: builtins.scopedImport scope path;
    scopedImport = more: path: builtins.scopedImport (scope // more) path;
    fetchGit = fetcher "fetchGit";
    fetchMercurial = fetcher "fetchMercurial";
    fetchTarball = fetcher "fetchTarball";
    fetchTree = fetcher "fetchTree";
  };
  hidden = {
    currentTime = refused "currentTime" "is a clock, and the same commit must make the same objects";
    fetchClosure = fetcher "fetchClosure";
    fetchurl = fetcher "fetchurl";
    getFlake = fetcher "getFlake";
    # What nix may read of ours has no name: it is another directory each time.
    nixPath = builtins.filter (each: builtins.substring 0 7 each.prefix != "anneal:") builtins.nixPath;
  };
  names = builtins // overridden // hidden // { builtins = names; };
  scope = overridden // { builtins = names; } // builtins.listToAttrs (
    map (name: { name = "__${name}"; value = hidden.${name}; }) (builtins.attrNames hidden)
  );

  # nixpkgs: a set, what makes one, or a directory that may hold no more than its lib.
  given = packages scope;
  has = path: file: builtins.pathExists (path + file);
  called = found: if builtins.isFunction found then found { } else found;
  at =
    path:
    if has path "/lib/default.nix" && !has path "/default.nix" then
      { lib = scope.import (path + "/lib"); inherit path; }
    else
      called (scope.import path);
  pkgs =
    if builtins.isString given then at (/. + given)
    else if builtins.isPath given then at given
    else called given;
  inherit (pkgs) lib;

  listed = let found = modules scope; in if builtins.isList found then found else [ found ];
  nixos = pkgs ? path && has (/. + toString pkgs.path) "/nixos/lib/eval-config.nix";
  evaluate =
    all:
    if nixos then
      scope.import (/. + "${toString pkgs.path}/nixos/lib/eval-config.nix") { inherit pkgs; modules = all; }
    else
      lib.evalModules { modules = all ++ [ { _module.args.pkgs = lib.mkDefault pkgs; } ]; };

  # A tree that brings a module of its own, such as a copy of the original's, has declared the same options.
  ours = evaluate (listed ++ [ ./kubernixos.nix ]);
  unchecked = evaluate (listed ++ [ { _module.check = false; } ]);
  succeeds = value: let tried = builtins.tryEval value; in tried.success && tried.value;
  declared = !succeeds (ours.options.kubernixos.manifests ? type) && succeeds (unchecked.options ? kubernixos.manifests);
  evaluated = if declared then evaluate listed else ours;
  cfg = evaluated.config.kubernixos;

  # A manifest that was made by a function has no position: the module that defines it has a file.
  definitions = evaluated.options.kubernixos.manifests.definitionsWithLocations or [ ];
  defining = name: builtins.filter (each: builtins.isAttrs each.value && each.value ? ${name}) definitions;
  listedIn = builtins.concatMap (each: if builtins.isList each.value then map (_: each.file) each.value else [ ]) definitions;
  fileOf = found: default: if found == [ ] then default else toString (builtins.head found);
  position = manifest: builtins.foldl' (found: name: if found != null then found else builtins.unsafeGetAttrPos name manifest) null [
    "kind"
    "metadata"
    "apiVersion"
  ];
  # Many errors have no position of their own: the manifest that is being written has one.
  context = manifest: let found = position manifest; in if found == null then "anneal" else "anneal: ${found.file}:${toString found.line}";
  item = file: manifest: {
    object = builtins.addErrorContext (context manifest) (builtins.toJSON manifest);
    at = position manifest;
    inherit file;
  };
  first = fileOf (map (each: each.file) definitions) "";
  items =
    if builtins.isAttrs cfg.manifests then
      map (name: item (fileOf (map (each: each.file) (defining name)) first) cfg.manifests.${name}) (builtins.attrNames cfg.manifests)
    else if builtins.length listedIn == builtins.length cfg.manifests then
      builtins.genList (n: item (toString (builtins.elemAt listedIn n)) (builtins.elemAt cfg.manifests n)) (builtins.length cfg.manifests)
    else
      map (item first) cfg.manifests;
in
{
  inherit items;
  checksum = builtins.deepSeq items builtins.substring 0 62 (builtins.hashString "sha256" (builtins.toJSON cfg.manifests));
  server = if evaluated.options.kubernixos.server.isDefined or true then cfg.server else "";
}
