"""Judges the checkout: prints `file:line: what is wrong, and what to do` for every fault, and exits with 1 if there is one."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor

from infra.house import code, commands, forge, imports, messages, pages, promises, prose
from infra.house.sources import Fault, read


def product() -> list[Fault]:
    """Return what is wrong with the product and its pages."""
    handler, others = read("handler"), read("infra", "scripts")
    found: list[Iterable[Fault]] = [
        *(rule(source) for source in (*handler, *others) for rule in (code.of_file, code.of_product, prose.of_texts, prose.of_messages)),
        *(code.of_handler(source) for source in handler),
        code.of_all_handler(handler),
        imports.of_product(handler),
        commands.of_handler(handler),
        commands.of_pages(),
        pages.of_pages(),
        prose.of_pages(),
        messages.of_pages(handler),
        promises.of_table(),
        forge.of_forge(handler),
    ]
    return [fault for each in found for fault in each]


def tests() -> list[Fault]:
    """Return what is wrong with the tests, and with what is committed."""
    return [*_tests()]


def _tests() -> Iterator[Fault]:
    sources = read("tests")
    for source in sources:
        yield from code.of_file(source)
        yield from prose.of_texts(source)
        if source.name.startswith(("tests/unit/", "tests/fakes/")):
            yield from forge.linux(source)
    yield from imports.of_tests(sources)
    yield from code.of_all_tests()
    yield from forge.of_committed()


def main() -> int:
    """Judge both halves side by side; return 1 if a rule is broken."""
    with ProcessPoolExecutor(2, initializer=gc.disable) as halves:  # a million nodes of trees, none of them garbage
        running = [halves.submit(half) for half in (product, tests)]
        found = sorted({fault for each in running for fault in each.result()})
    for fault in found:
        print(f"{fault.name}:{fault.line}: {fault.said}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
