"""``obo call NAME METHOD ARG...``: one call, its result as JSON."""

import sys
from typing import Annotated, Any

import msgspec
import typer

from framework import BadRequest, RemoteError
from framework.cli.where import CLUSTER, At, ConfigFile, CredentialsDir, addresses, reach
from framework.com.receipt import CREC, DREC, Receipt, quorum


def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The object.")],
    method: Annotated[str, typer.Argument(metavar="METHOD")],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="ARG...", help="As JSON; what is no JSON is taken as a text.")
    ] = None,
    oneway: Annotated[bool, typer.Option("--oneway", help="Do not wait for an answer.")] = False,
    receipt: Annotated[
        str | None, typer.Option(metavar="all|first|N", help="How many replicas must answer; else a majority.")
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds.")] = 10.0,
    at: At = None,
    config: ConfigFile = CLUSTER,
    credentials: CredentialsDir = None,
) -> None:
    """Call a method of an object. Ends with 1 if the method raised, with 2 if the call could not be made."""
    values = [_value(a) for a in args or ()]
    with reach(addresses(at, config), config, credentials, timeout) as orb:
        remote = getattr(orb.object(name), method)
        if oneway:
            remote.oneway(*values)
            return
        wanted = _receipt(receipt)
        try:
            result = (remote if wanted is None else remote.with_(receipt=wanted))(*values)
        except RemoteError as error:
            print(error, *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
            raise typer.Exit(1) from None
    if result is not None:
        print(msgspec.json.encode(result).decode())


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _receipt(text: str | None) -> Receipt | None:
    if text is None:
        return None
    if text in ("all", "first"):
        return CREC if text == "all" else DREC
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise BadRequest(f"--receipt {text}: all, first, or how many")
    return quorum(int(text))
