# The command line as a derivation (`nix-build infra/nix`): `anneal`, and `kubernixos` with nixpkgs as the default of PACKAGES.
#
# Tests evaluate it; they don't build it, for nixpkgs can't be fetched there. What of requirements.txt a nixpkgs lacks is left out, and
# what needs that says so when it is used: CEL expressions, PGP signatures.
{
  pkgs ? import <nixpkgs> { },
  packages ? pkgs.path, # what PACKAGES is where the environment doesn't say it
}:
let
  root = ../..;
  python = pkgs.python3Packages;
  lines = builtins.filter builtins.isString (builtins.split "\n" (builtins.readFile (root + "/requirements.txt")));
  name = line: builtins.match "([A-Za-z0-9.-]+).*" line;
  # nixpkgs writes names in lower case, with dashes.
  lower = builtins.replaceStrings
    [ "A" "B" "C" "D" "E" "F" "G" "H" "I" "J" "K" "L" "M" "N" "O" "P" "Q" "R" "S" "T" "U" "V" "W" "X" "Y" "Z" ]
    [ "a" "b" "c" "d" "e" "f" "g" "h" "i" "j" "k" "l" "m" "n" "o" "p" "q" "r" "s" "t" "u" "v" "w" "x" "y" "z" ];
  required = map (line: lower (builtins.head (name line))) (builtins.filter (line: name line != null) lines);
  there = builtins.partition (each: builtins.hasAttr each python) required;
in
python.buildPythonApplication {
  pname = "anneal-gitops";
  version = builtins.head (builtins.match ".*__version__ = \"([^\"]+)\".*" (builtins.readFile (root + "/handler/__init__.py")));
  pyproject = true;
  src = builtins.path {
    name = "anneal";
    path = root;
    filter = path: _: builtins.match ".*/(\\.git|\\.venv|tests)" path == null;
  };
  build-system = [ python.setuptools ];
  dependencies = map (each: python.${each}) there.right;
  pythonRelaxDeps = true;
  pythonRemoveDeps = there.wrong;
  nativeBuildInputs = [ pkgs.makeWrapper ];
  doCheck = false;
  postInstall = ''
    wrapProgram $out/bin/anneal --suffix PATH : ${pkgs.nix}/bin
    makeWrapper $out/bin/anneal $out/bin/kubernixos --add-flags kubernixos --set-default PACKAGES '${toString packages}'
  '';
  meta = {
    description = "GitOps without a controller fleet; with Kubernixos' own words";
    mainProgram = "anneal";
  };
}
