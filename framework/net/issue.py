"""The files of a secured cluster: a CA, a certificate for each node, and a directory for clients."""

from collections.abc import Mapping
from pathlib import Path

from framework.errors import BadRequest
from framework.net import tokens
from framework.net.certs import Authority, Pair
from framework.net.files import write
from framework.net.security import Security


def issue(hosts: Mapping[str, str], out: Path, days: int) -> None:
    """Everything new; ``hosts``: by node, the host at which it is dialled."""
    authority = Authority.new(days)
    _directory(out, 0o755)
    _write_pair(out / "ca.pem", out / "ca.key", authority.pair)
    _write(authority, hosts, out, days)
    (out / "tokens.toml").unlink(missing_ok=True)
    token = tokens.add(out / "tokens.toml", "client", "call")
    write(out / "client" / "token", f"{token}\n".encode(), secret=True, replace=True)


def reissue(hosts: Mapping[str, str], out: Path, days: int) -> None:
    """New certificates by the CA that is there."""
    _write(Authority.read(out / "ca.pem", out / "ca.key"), hosts, out, days)


def issued(out: Path | str) -> Security:
    """What a cluster.toml says about them."""
    return Security(
        f"{out}/ca.pem", f"{out}/{{node}}.pem", f"{out}/{{node}}.key", f"{out}/tokens.toml", f"{out}/client"
    )


def _write(authority: Authority, hosts: Mapping[str, str], out: Path, days: int) -> None:
    for name, host in hosts.items():
        _write_pair(out / f"{name}.pem", out / f"{name}.key", authority.node(name, [host], days))
    client = out / "client"
    _directory(client, 0o700)
    write(client / "ca.pem", authority.pair.cert, secret=False, replace=True)
    _write_pair(client / "cert.pem", client / "key.pem", authority.client("client", days))


def _write_pair(cert: Path, key: Path, pair: Pair) -> None:
    write(key, pair.key, secret=True, replace=True)
    write(cert, pair.cert, secret=False, replace=True)


def _directory(path: Path, mode: int) -> None:
    try:
        path.mkdir(mode, parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None
