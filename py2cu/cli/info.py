"""`py2cu explain` and `py2cu doctor`: what a diagnostic means, and what this machine can build with.

In: a diagnostic code, or the machine. Out: text on stdout; `doctor` exits with 3 if `check` or `build` could not work.
"""

from __future__ import annotations

import re

import click

from py2cu.cli.console import exit_codes, refuse, table
from py2cu.cli.parameters import examples
from py2cu.codes import CODES, explanation


def _codes_from(_: click.Context, __: click.Parameter, start: str) -> list[str]:
    return [code for code in CODES if code.startswith(start.upper())]


@click.command(epilog=examples("py2cu explain P301", "py2cu explain        lists all codes"))
@click.argument("code", required=False, shell_complete=_codes_from)
@exit_codes()
def explain(code: str | None) -> None:
    """Explain a diagnostic, with an example and its correction.

    CODE is the text in brackets, as in `error[P301]`.
    """
    if code is None:
        click.echo(table([("code", "meaning"), *((name, row.heading) for name, row in CODES.items())]))
        return
    match = re.search(r"P\d{3}", code.upper())
    if match is None or match[0] not in CODES:
        refuse(f"there is no code {code}{_near(code)}\n  hint: `py2cu explain` lists the codes")
    click.echo(page(match[0]))


def _near(code: str) -> str:
    import difflib

    near = difflib.get_close_matches(code.upper().replace("O", "0"), CODES, 1)
    return f"; did you mean {near[0]}?" if near else ""


def page(code: str) -> str:
    """The explanation of `code` as printed: title, meaning, and the two examples if it has any."""
    import textwrap

    text = explanation(code)
    parts = [f"{code}: {CODES[code].heading}", textwrap.fill(text.meaning, 80, break_on_hyphens=False)]
    if text.wrong:
        parts += ["Wrong:", textwrap.indent(text.wrong.rstrip(), "    ")]
        parts += ["Right:", textwrap.indent(text.right.rstrip(), "    ")]
    return "\n\n".join(parts)


@click.command(epilog=examples("py2cu doctor        exits with 3 when `check` or `build` could not work here"))
@exit_codes()
def doctor() -> None:
    """Show which tools to build kernels this machine has, and how to install missing ones."""
    from py2cu.cli.doctor import diagnose, exit_status

    findings = diagnose()
    lines = table([(item.component, item.state.value, item.detail) for item in findings]).splitlines()
    for item, line in zip(findings, lines, strict=True):
        click.echo(line)
        if item.hint:
            click.echo(f"    hint: {item.hint}")
    raise click.exceptions.Exit(exit_status(findings))
