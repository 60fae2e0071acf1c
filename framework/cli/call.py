"""``obo call NAME METHOD ARG...``: one call, its result as JSON."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import typer

from framework import BadRequest, NoSuchMethod, RemoteError, connect
from framework.cli.describe import find
from framework.cli.where import CLUSTER, At, ConfigFile, addresses
from framework.declare.suggest import did_you_mean
from framework.orb.as_json import receipt_named

_NAMED = re.compile(r"([A-Za-z_]\w*)=(.*)\Z", re.S)


def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The object; obo ls lists them.")],
    method: Annotated[str, typer.Argument(metavar="METHOD", help="obo describe NAME shows them.")],
    args: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARG...",
            help="By position, or by name as in amount=5. JSON; what is no JSON, or for a str no JSON text, "
            "is taken as it stands. After '--' also what begins with '-'.",
        ),
    ] = None,
    oneway: Annotated[
        bool, typer.Option("--oneway", help="Do not wait for an answer, not even for a refusal.")
    ] = False,
    receipt: Annotated[
        str, typer.Option(metavar="majority|all|first|N", help="How many replicas must answer.")
    ] = "majority",
    timeout: Annotated[float, typer.Option(help="Seconds.")] = 10.0,
    at: At = None,
    config: ConfigFile = CLUSTER,
) -> None:
    """Call a method of an object. Ends with 1 if the method raised, with 2 if the call could not be made.

    Example: obo call bank transfer ann bob amount=5 --receipt all
    """
    wanted = receipt_named(receipt)
    if not 0 < timeout < float("inf"):
        raise BadRequest(f"--timeout {timeout:g}: more than 0 seconds, and finite")
    if oneway and receipt != "majority":
        raise BadRequest("--oneway waits for no answer: leave out --receipt")
    with connect(addresses(at, config), timeout) as orb:
        told = find(orb.look("objects"), name)
        signature = _signature(told, method)
        if oneway and signature["returns"] != "None":
            raise BadRequest(f"{name}.{method} returns a value: leave out --oneway, which is for '-> None'")
        values, named = _arguments(signature, args or ())
        # to all replicas, also a readonly one: a command has no session that says what it must have seen
        remote = getattr(orb.object(name), method).with_(receipt=wanted, to=told["replicas"])
        if oneway:
            remote.oneway(*values, **named)
            return
        try:
            result = remote(*values, **named)
        except RemoteError as error:
            print(error, *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
            raise typer.Exit(1) from None
    if result is not None:
        print(msgspec.json.encode(result).decode())


def _signature(told: Mapping[str, Any], method: str) -> Mapping[str, Any]:
    for one in told["signatures"]:
        if one["name"] == method:
            found: Mapping[str, Any] = one
            return found
    raise NoSuchMethod(f"{told['name']} has no method {method!r}; {did_you_mean(method, told['methods'])}")


def _arguments(signature: Mapping[str, Any], words: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """By position or by name: a word is named only if it begins with the name of a parameter and '='."""
    parameters: dict[str, str] = {p["name"]: p["type"] for p in signature["parameters"]}
    values: list[Any] = []
    named: dict[str, Any] = {}
    for word in words:
        found = _NAMED.match(word)
        if found is not None and found[1] in parameters:
            if found[1] in named:
                raise BadRequest(f"argument {found[1]!r} is given twice")
            named[found[1]] = _value(found[2], parameters[found[1]])
        elif named:
            raise BadRequest(f"argument {word!r} has no name, but stands after {next(iter(named))!r}, which has one")
        else:
            types = list(parameters.values())
            values.append(_value(word, types[len(values)] if len(values) < len(types) else ""))
    return values, named


def _value(text: str, type_name: str) -> Any:
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
    return value if type_name != "str" or isinstance(value, str) else text
