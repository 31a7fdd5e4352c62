# Stands for nixpkgs' lib in tests: so much of its module system as modules of Kubernixos need, written for this repository.
let
  inherit (builtins)
    all attrNames concatLists concatMap concatStringsSep filter foldl' functionArgs head isAttrs isBool isFunction isInt isList isString
    length listToAttrs mapAttrs tail toString;

  isType = name: value: isAttrs value && value._type or "" == name;
  dotted = concatStringsSep ".";
  recursiveUpdate =
    left: right:
    left // mapAttrs (name: value: if isAttrs value && isAttrs (left.${name} or null) then recursiveUpdate left.${name} value else value) right;

  mkOption = args: args // { _type = "option"; };
  mkIf = condition: content: { _type = "if"; inherit condition content; };
  mkMerge = contents: { _type = "merge"; inherit contents; };
  mkOverride = priority: content: { _type = "override"; inherit priority content; };
  mkDefault = mkOverride 1000;
  mkForce = mkOverride 50;

  last = values: builtins.elemAt values (length values - 1);
  plain = description: check: { inherit description check; merge = _: last; };
  accepted =
    type: name: value:
    if type.check value then value else throw "A definition for option `${name}' is not of type `${type.description}'. Definition values:\n- hidden";
  types = rec {
    unspecified = plain "unspecified value" (_: true);
    str = plain "string" isString;
    int = plain "signed integer" isInt;
    bool = plain "boolean" isBool;
    attrs = { description = "attribute set"; check = isAttrs; merge = _: foldl' (sum: each: sum // each) { }; };
    listOf = type: {
      description = "list of (${type.description})";
      check = isList;
      merge = name: values: map (value: type.merge name [ (accepted type name value) ]) (concatLists values);
    };
    attrsOf = type: {
      description = "attribute set of (${type.description})";
      check = isAttrs;
      merge =
        name: values:
        let
          keys = attrNames (foldl' (sum: each: sum // each) { } values);
          of = key: concatMap (value: if value ? ${key} then map (each: each.value) (discharged value.${key}) else [ ]) values;
          merged = key: type.merge "${name}.${key}" (map (accepted type "${name}.${key}") (of key));
        in
        listToAttrs (map (key: { name = key; value = merged key; }) (filter (key: of key != [ ]) keys));
    };
    either = one: other: {
      description = "${one.description} or ${other.description}";
      check = value: one.check value || other.check value;
      merge = name: values: (if all one.check values then one else other).merge name values;
    };
  };

  # A definition -> what is left of it once mkIf, mkMerge and priorities are taken off.
  discharged =
    value:
    if isType "merge" value then concatMap discharged value.contents
    else if isType "if" value then (if value.condition then discharged value.content else [ ])
    else if isType "override" value then map (each: each // { inherit (value) priority; }) (discharged value.content)
    else [ { inherit value; priority = 100; } ];

  # The definitions of one option in a module's configuration.
  definitions =
    path: value:
    if path == [ ] then discharged value
    else concatMap (each: map (found: found // { priority = if each.priority != 100 then each.priority else found.priority; }) (
      if isAttrs each.value && each.value ? ${head path} then definitions (tail path) each.value.${head path} else [ ]
    )) (discharged value);

  evalModules =
    { modules, specialArgs ? { }, ... }:
    let
      load =
        file: module:
        if builtins.isPath module || isString module then load (toString module) (import module)
        else if isFunction module then load file (module (arguments (functionArgs module)))
        else
          let from = module._file or file; in
          [
            {
              file = from;
              options = module.options or { };
              config = module.config or (if module ? options then { } else removeAttrs module [ "imports" "_file" "key" ]);
            }
          ]
          ++ concatMap (load from) (module.imports or [ ]);
      given = { inherit config lib; options = checked tree; } // specialArgs;
      arguments = names: if names == { } then given else mapAttrs (name: _: given.${name} or config._module.args.${name}) names // {
        inherit (given) config options lib;
      };
      loaded = concatMap (load "<unknown-file>") modules;
      at = path: concatMap (each: map (found: found // { inherit (each) file; }) (definitions path each.config)) loaded;

      # Options of all modules, as a tree.
      declare =
        path: declared:
        let
          names = attrNames (foldl' (sum: each: sum // each.value) { } declared);
          of = name: map (each: { inherit (each) file; value = each.value.${name}; }) (filter (each: each.value ? ${name}) declared);
          node = name: let found = of name; here = path ++ [ name ]; in
            if !(isType "option" (head found).value) then declare here found
            else if length found > 1 then
              throw "The option `${dotted here}' in `${(head found).file}' is already declared in `${(last found).file}'."
            else evaluate here (head found).value;
        in
        listToAttrs (map (name: { inherit name; value = node name; }) names);
      evaluate =
        path: option:
        let
          found = at path;
          least = foldl' (least: each: if each.priority < least then each.priority else least) 10000 found;
          used = filter (each: each.priority == least) found;
          name = dotted path;
        in
        option // {
          isDefined = found != [ ] || option ? default;
          definitionsWithLocations = map (each: { inherit (each) file value; }) used;
          value =
            if used != [ ] then option.type.merge name (map (each: accepted option.type name each.value) used)
            else option.default or (throw "The option `${name}' is used but not defined.");
        };
      tree = declare [ ] (map (each: { inherit (each) file; value = each.options; }) loaded);
      values = node: if isType "option" node then node.value else mapAttrs (_: values) node;

      # What is defined and not declared.
      stray =
        path: node: file: value:
        if isType "option" node then [ ] else concatMap (
          each:
          if !isAttrs each.value then [ ]
          else concatMap (name: if node ? ${name} then stray (path ++ [ name ]) node.${name} file each.value.${name} else [
            "The option `${dotted (path ++ [ name ])}' does not exist. Definition values:\n- In `${file}': hidden"
          ]) (attrNames each.value)
        ) (discharged value);
      strays = concatMap (each: stray [ ] (tree // { _module = mkOption { }; }) each.file each.config) loaded;
      checked = value: if (values' "check" true) && strays != [ ] then throw (head strays) else value;
      values' = name: default: let found = at [ "_module" name ]; in if found == [ ] then default else (last found).value;
      modulesArguments = foldl' (sum: each: sum // mapAttrs (_: value: (head (discharged value)).value) each.value) { } (at [ "_module" "args" ]);
      config = checked (values tree) // { _module.args = modulesArguments; };
    in
    { inherit config; options = checked tree; };

  lib = { inherit evalModules mkDefault mkForce mkIf mkMerge mkOption mkOverride recursiveUpdate types; };
in
lib
