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

  files = map (each: toString (each.file or "")) (evaluated.options.kubernixos.manifests.definitionsWithLocations or [ ]);
  position = manifest: builtins.foldl' (found: name: if found != null then found else builtins.unsafeGetAttrPos name manifest) null [
    "kind"
    "metadata"
    "apiVersion"
  ];
  # Many errors have no position of their own: the manifest that is being written has one.
  context = manifest: let found = position manifest; in if found == null then "anneal" else "anneal: ${found.file}:${toString found.line}";
  item = manifest: {
    object = builtins.addErrorContext (context manifest) (builtins.toJSON manifest);
    at = position manifest;
  };
  items = map item (if builtins.isList cfg.manifests then cfg.manifests else builtins.attrValues cfg.manifests);
in
{
  inherit files items;
  checksum = builtins.deepSeq items builtins.substring 0 62 (builtins.hashString "sha256" (builtins.toJSON cfg.manifests));
  server = if evaluated.options.kubernixos.server.isDefined or true then cfg.server else "";
}
