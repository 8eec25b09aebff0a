"""`py2cu cache list` and `py2cu cache clear`: what the cache holds, and how to empty it.

In: the cache on disk. Out: a table on stdout, or the number and size of the removed entries.
"""

from __future__ import annotations

import click

from py2cu.cli.console import exit_codes, table
from py2cu.cli.parameters import examples


@click.group(epilog=examples("py2cu cache list", "py2cu cache clear"))
def cache() -> None:
    """Show or remove the translations and libraries that py2cu keeps on disk."""


@cache.command("list")
@exit_codes()
def list_() -> None:
    """List the entries, the most recently used first."""
    import datetime

    from py2cu.build.store import entries

    rows = [("kind", "name", "size", "last use")]
    for entry in reversed(entries()):
        last_use = datetime.datetime.fromtimestamp(entry.last_use)
        rows.append((entry.kind.value, entry.name or "(damaged)", _size(entry.size), f"{last_use:%Y-%m-%d %H:%M:%S}"))
    click.echo(table(rows))


@cache.command()
@exit_codes()
def clear() -> None:
    """Remove all entries, and what interrupted builds left."""
    from py2cu.build import store

    removed = store.clear()
    entries = "1 entry" if len(removed) == 1 else f"{len(removed)} entries"
    click.echo(f"removed {entries}, {_size(sum(entry.size for entry in removed))}")


def _size(size: int) -> str:
    """A size with a unit: `12.3 kB`, as `doctor` counts."""
    return f"{size / 2**20:.1f} MB" if size >= 2**20 else f"{size / 2**10:.1f} kB"
