"""`wiretape schema`: the specification of the tape format, as JSON Schema."""

from __future__ import annotations

import click


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of a tape's documents.

    The first document of a tape is a Header, the others are requests, responses, messages and ends. docs/tape-format.md
    explains them.
    """
    import orjson

    from wiretape.tape.format.documents import json_schema

    click.echo(orjson.dumps(json_schema(), option=orjson.OPT_INDENT_2).decode())
