"""Which nodes a command talks to, and as whom: ``--at``, or OBO_AT, or a cluster.toml; ``--credentials``, or OBO_TOKEN
and the like, or the [security] of the cluster.toml."""

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from framework import BadRequest, Orb, connect
from framework.net.security import Security

At = Annotated[
    str | None,
    typer.Option("--at", metavar="ADDRESSES", envvar="OBO_AT", help="host:port,host:port; else those of the config."),
]
ConfigFile = Annotated[Path, typer.Option("--config", metavar="FILE", envvar="OBO_CONFIG", help="The cluster.toml.")]
CredentialsDir = Annotated[
    Path | None,
    typer.Option(
        "--credentials",
        metavar="DIR",
        envvar="OBO_CREDENTIALS",
        help="ca.pem, cert.pem, key.pem, token; else OBO_CA, OBO_CERT, OBO_KEY, OBO_TOKEN; else those of the config.",
    ),
]
CLUSTER = Path("cluster.toml")


def addresses(at: str | None, config: Path) -> list[str]:
    """Only the addresses are read: a caller need not have the classes."""
    if at:
        return [a.strip() for a in at.split(",") if a.strip()]
    return list(nodes(config).values())


def nodes(config: Path) -> dict[str, str]:
    """Name and address of each node of a cluster.toml."""
    found = _table(config).get("nodes")
    if not isinstance(found, dict) or not found:
        raise BadRequest(f"{config}: [nodes] is missing or empty")
    return {str(name): str(address) for name, address in found.items()}


def reach(places: str | list[str], config: Path, credentials: Path | None, timeout: float = 10.0) -> Orb:
    """A client of these nodes, with the credentials that the user has named."""
    return connect(places, timeout, **access(config, credentials))


def access(config: Path, credentials: Path | None) -> Any:
    """What ``connect`` is to be told. The environment goes before the file."""
    found: dict[str, Any] = {"insecure": truth(os.environ.get("OBO_INSECURE", ""))}
    one_by_one = {name: os.environ.get(f"OBO_{name.upper()}") for name in ("token", "ca", "cert", "key")}
    found |= {name: value for name, value in one_by_one.items() if value}
    if credentials is None and config.exists():
        # with a certificate and a token from the environment nothing is missing: the file need not be right
        client = None if {"token", "ca"} <= found.keys() else security(config).client
        credentials = Path(client) if client else None
    if credentials is not None:
        found["credentials"] = credentials
    return found


def truth(text: str) -> bool:
    return text.strip().lower() in ("1", "true", "yes", "on")


def security(config: Path) -> Security:
    """The [security] of a cluster.toml; empty if there is none."""
    try:
        return msgspec.convert(_table(config).get("security", {}), Security).at(config.parent)
    except msgspec.ValidationError as error:
        raise BadRequest(f"{config}: [security]: {error}") from None
    except BadRequest as error:
        raise BadRequest(f"{config}: {error}") from None


def _table(config: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadRequest(f"{config}: {error}; name the nodes with --at host:port, or the file with --config") from None
