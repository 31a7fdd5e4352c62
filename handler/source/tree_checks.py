"""Tree objects under suspicion: dulwich's `Tree.check` covers the format (modes, order, duplicates), `names` what it leaves open."""

from __future__ import annotations

from dulwich.errors import ObjectFormatException
from dulwich.object_format import SHA1
from dulwich.objects import Tree, parse_tree

from handler.model.tree import printable
from handler.source.tree_names import Children, children_of, refused


def read_tree(data: bytes, path: str) -> Children:
    """Parse and check one tree object.

    `path`: where it was reached, for the error only.

    Raises:
        SourceRefused: any entry breaks a rule; the name is shown escaped.
    """
    try:
        tree = Tree.from_string(data)
        tree.check()
        entries = list(parse_tree(data, SHA1.oid_length, strict=True))
    except (ObjectFormatException, ValueError, AssertionError) as error:
        raise refused(path, f"git tree is malformed: {printable(_said(error))}") from None
    return children_of(((raw, mode, oid.decode()) for raw, mode, oid in entries), path)


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__
