"""``obo compose init``: what the first container of a deployment does. It makes certificates, a token and, for
PostgreSQL, passwords, and gives each node a directory of its own with what that node needs and nothing else.

It may run again at any time: it adds what is missing, renews certificates that end soon, and hands out what has
changed, for example tokens. Nothing that is in use is replaced without a reason.
"""

import os
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from framework.errors import BadRequest
from framework.net.files import content, write
from framework.net.security import Security, loopback
from framework.orb.config import parse, split_address

PORT = 7401  # on which every node listens, in its own container
SOON = 30.0  # days before its end from which a certificate is made anew
OWN = Security("ca.pem", "{node}.pem", "{node}.key", "tokens.toml")  # beside the cluster.toml of a node
PASSWORD = "password"


class Places(msgspec.Struct, frozen=True):
    """Volumes: the CA and all that was ever made; a directory for each node; credentials of clients, and with a token
    that may change the cluster; a directory for each PostgreSQL server, if there are any. ``owner``: the user that
    nodes run as; files stay with us without one."""

    ca: Path
    nodes: Path
    client: Path
    admin: Path
    passwords: Path | None = None
    owner: int | None = None


def prepare(config: Path, places: Places, days: int, renew: bool) -> list[str]:
    """All of it; what was done, for people."""
    text = content(config).decode(errors="replace")
    tables = inside(text, str(config))
    parse(to_toml(tables))  # nodes would refuse it: better here, before anything is written
    hosts = {name: split_address(address, name)[0] for name, address in tables["nodes"].items()}
    told = [_certify(hosts, places.ca, days, renew)]
    token = _admin_token(places.ca)
    for name in hosts:
        _hand_out(name, tables, places)
    mine = places.ca / "client"
    for place, its_token in ((places.client, mine / "token"), (places.admin, token)):
        for file in (mine / "ca.pem", mine / "cert.pem", mine / "key.pem"):
            _put(place / file.name, content(file), places.owner)
        _put(place / "token", content(its_token), places.owner)
        _own(place, places.owner)
    return [*told, f"{config}: {', '.join(hosts)} have what they need; clients use {places.client}"]


def inside(text: str, where: str) -> dict[str, Any]:
    """A cluster.toml as it is in containers: a node that is on loopback outside is found by its name, on a port that
    all have in common; and everybody uses TLS and tokens."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadRequest(f"{where}: {error}") from None
    nodes = tables.get("nodes")
    if not isinstance(nodes, dict) or not nodes or not all(isinstance(a, str) for a in nodes.values()):
        raise BadRequest(f"{where}: [nodes] is missing or empty")
    known = {name: (f"{name}:{PORT}" if loopback(address) else address) for name, address in nodes.items()}
    serve = {key: value for key, value in tables.get("serve", {}).items() if key not in ("data", "trace")}
    security = {key: value for key, value in msgspec.structs.asdict(OWN).items() if value is not None}
    return {**tables, "nodes": known, "serve": {**serve, "bind": "0.0.0.0"}, "security": security}


def to_toml(tables: Mapping[str, Any]) -> str:
    """What ``inside`` gives, as TOML again. Texts, numbers and booleans of JSON are TOML, too."""
    lines: list[str] = []
    for name, table in tables.items():
        nested = name == "objects"
        for inner, entries in table.items() if nested else (("", table),):
            lines.append(f"[{name}.{_key(inner)}]" if nested else f"[{name}]")
            lines += [f"{_key(key)} = {_inline(value)}" for key, value in entries.items()]
    return "\n".join(lines) + "\n"


def _key(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return msgspec.json.encode(value).decode()


# certificates


def _certify(hosts: Mapping[str, str], ca: Path, days: int, renew: bool) -> str:
    from framework.net.issue import issue, reissue

    if not (ca / "ca.key").exists():
        issue(hosts, ca, days)
        return f"a new CA, certificates for {', '.join(hosts)}, and a token for clients"
    why = "you asked for it" if renew else _why_new(hosts, ca)
    if not why:
        return "all certificates are good"
    reissue(hosts, ca, days)
    return f"new certificates for {', '.join(hosts)} and for clients ({why})"


def _admin_token(ca: Path) -> Path:
    """Where it stands. Made once."""
    from framework.net.tokens import add

    file = ca / "admin.token"
    if not file.exists():
        write(file, f"{add(ca / 'tokens.toml', 'admin', 'admin')}\n".encode(), secret=True)
    return file


def _why_new(hosts: Mapping[str, str], ca: Path) -> str:
    from framework.net.certs import facts

    for name, host in {**hosts, "client": ""}.items():
        path = ca / "client" / "cert.pem" if name == "client" else ca / f"{name}.pem"
        if not path.exists():
            return f"{name} has none"
        found = facts(path)
        if found.days_left < SOON:
            return f"that of {name} is good for {found.days_left:.0f} days"
        if host and host not in found.names:
            return f"{name} is at {host} now"
    return ""


# files


def _hand_out(name: str, tables: Mapping[str, Any], places: Places) -> None:
    mine = places.nodes / name
    if not mine.is_dir():
        raise BadRequest(
            f"{mine}: no such directory: the compose file gives init a volume for each node, {name} has none"
        )
    for file in ("ca.pem", "tokens.toml", f"{name}.pem", f"{name}.key"):
        _put(mine / file, content(places.ca / file), places.owner)
    if places.passwords is not None:
        password = _password(places.passwords / name)
        _put(mine / "pgpass", f"*:*:*:*:{password}\n".encode(), places.owner)
    _put(mine / "cluster.toml", to_toml(tables).encode(), places.owner)
    _own(mine, places.owner)


def _password(directory: Path) -> str:
    """Made once: the server has taken it when it made its data directory."""
    file = directory / PASSWORD
    if not file.exists():
        write(file, secrets.token_urlsafe(24).encode(), secret=True)
    return content(file).decode()


def _put(path: Path, data: bytes, owner: int | None) -> None:
    """As a whole, or not at all: a node may be reading."""
    if path.exists() and path.read_bytes() == data:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f"{path.name}.new")
    write(half, data, secret=True, replace=True)
    _own(half, owner)
    half.replace(path)


def _own(path: Path, owner: int | None) -> None:
    if owner is not None:
        os.chown(path, owner, owner)
