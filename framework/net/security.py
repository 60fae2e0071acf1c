"""TLS and tokens on the wire. With TLS every connection is mutual: nodes and clients both show a certificate of the
cluster's CA. A node's certificate says which node it is; what a client may do is said by its token.

gRPC for Python can ask all who connect for a certificate, or nobody; and there is one port for nodes and clients. So
clients have a certificate, too, one for all of them: a stranger gets no further than the TLS handshake.
"""

import ipaddress
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import grpc
import grpc.aio
import msgspec

from framework.errors import BadRequest, OboError, PermissionDenied, Unauthenticated
from framework.net import forks, options
from framework.net.files import content

log = logging.getLogger(__name__)

TOKEN = "authorization"  # metadata: "Bearer TOKEN", as everywhere
SOON = 14.0  # days before its end from which a certificate is warned about


class Tls(msgspec.Struct, frozen=True):
    """The CA that is trusted, and one's own certificate and key, as PEM."""

    ca: bytes
    cert: bytes
    key: bytes

    @classmethod
    def read(cls, ca: Path, cert: Path, key: Path, node: str | None = None) -> "Tls":
        """BadRequest if they do not fit together, have expired, or are not this node's."""
        from framework.net import certs  # needs cryptography, which takes its time: only who uses TLS waits for it

        left = certs.check(ca, cert, key, node).days_left
        if left < SOON:
            log.warning("%s expires in %.0f days: renew it with obo certs renew", cert, left)
        return cls(content(ca), content(cert), content(key))


class Credentials(msgspec.Struct, frozen=True):
    """How one connects: as a node, or as a client with a token."""

    tls: Tls | None = None
    token: str = ""

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        return ((TOKEN, f"Bearer {self.token}"),) if self.token else ()

    def channel(self, address: str, max_message: int = options.UNLIMITED, peer: str | None = None) -> Any:
        """A channel to whoever is there, or, with ``peer``, to this node and no other."""
        forks.uses_grpc()
        chosen = options.channel(max_message)
        if self.tls is None:
            return grpc.aio.insecure_channel(address, options=chosen)
        if peer is not None:
            chosen.append(("grpc.ssl_target_name_override", _host(peer)))
        mine = grpc.ssl_channel_credentials(self.tls.ca, self.tls.key, self.tls.cert)
        return grpc.aio.secure_channel(address, mine, options=chosen)


OPEN = Credentials()


def listen(server: Any, address: str, tls: Tls | None) -> int:
    """The port, or 0 if it cannot be had."""
    try:
        if tls is None:
            return int(server.add_insecure_port(address))
        mine = grpc.ssl_server_credentials([(tls.key, tls.cert)], tls.ca, require_client_auth=True)
        return int(server.add_secure_port(address, mine))
    except RuntimeError:
        return 0


def peer_fault(context: Any, peer: str, tls: Tls | None) -> str:
    """Why the one who says it is this node is not; empty if it is."""
    if tls is None:
        return ""
    names = context.auth_context().get("x509_subject_alternative_name", ())
    return "" if _host(peer).encode() in names else f"the certificate is not that of {peer}"


def _host(node: str) -> str:
    from framework.net.certs import node_host

    return node_host(node)


_HANDSHAKE = {
    "CERTIFICATE_VERIFY_FAILED: certificate has expired": "its certificate has expired",
    "CERTIFICATE_VERIFY_FAILED": "its certificate is not from the CA that is trusted here",
    "Hostname Verification Check failed": "its certificate is that of somebody else",
    "WRONG_VERSION_NUMBER": "it does not speak TLS; connect without ca, cert and key",
}


def distrust(details: str) -> str:
    """Why we do not take the other side for what it should be, from what gRPC says; empty if that is not the reason."""
    return next((words for sign, words in _HANDSHAKE.items() if sign in details), "")


def hint(details: str, tls: Tls | None) -> str:
    """A node that hangs up during the handshake does not say why."""
    if "Socket closed" not in details:
        return ""
    wanted = "does it ask for TLS? Give ca, cert and key" if tls is None else "does it know the CA of our certificate?"
    return f" ({wanted})"


def refusal(error: BaseException) -> OboError | None:
    """The error of a caller whom the node does not let in. Trying again would not help."""
    code = error.code() if isinstance(error, grpc.aio.AioRpcError) else None
    if code is grpc.StatusCode.UNAUTHENTICATED:
        return Unauthenticated(str(error.details()))  # type: ignore[attr-defined]  # AioRpcError, see above
    if code is grpc.StatusCode.PERMISSION_DENIED:
        return PermissionDenied(str(error.details()))  # type: ignore[attr-defined]
    return None


# files


class Security(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[security]`` of a cluster.toml: paths, relative to the file; ``{node}`` is the node's name."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    tokens: str | None = None
    client: str | None = None  # a directory of ca.pem, cert.pem, key.pem, token: what `obo call` and the like use

    def at(self, base: Path) -> "Security":
        """With paths that can be opened from here; BadRequest if half of it is missing."""
        given = [name for name in ("ca", "cert", "key") if getattr(self, name) is not None]
        if given and len(given) < 3:
            missing = ", ".join(name for name in ("ca", "cert", "key") if name not in given)
            raise BadRequest(f"[security] has {', '.join(given)} but not {missing}: TLS needs all three")
        found = {name: str(base / path) for name in self.__struct_fields__ if (path := getattr(self, name)) is not None}
        return Security(**found)

    def tls(self, node: str) -> Tls | None:
        files = self.files(node)
        return Tls.read(*files, node) if files else None

    def files(self, node: str) -> tuple[Path, Path, Path] | None:
        if self.ca is None or self.cert is None or self.key is None:
            return None
        ca, cert, key = (Path(path.replace("{node}", node)) for path in (self.ca, self.cert, self.key))
        return ca, cert, key


class Access(TypedDict, total=False):
    """What ``connect`` and ``AsyncOrb`` take for a cluster that is secured."""

    token: str  # the token itself
    ca: str | Path  # files, in PEM: the CA, the client's certificate and its key
    cert: str | Path
    key: str | Path
    credentials: str | Path  # a directory with ca.pem, cert.pem, key.pem and token, as obo certs init makes it
    insecure: bool  # a token may cross a network without TLS


def client(access: Access, addresses: Sequence[str]) -> Credentials:
    """The credentials of a client, or BadRequest that says what does not fit."""
    found = directory(Path(access["credentials"])) if "credentials" in access else OPEN
    given = [name for name in ("ca", "cert", "key") if name in access]
    if given:
        if len(given) < 3:
            raise BadRequest(f"with {', '.join(given)} alone there is no TLS: give ca, cert and key, or credentials")
        tls = Tls.read(Path(access["ca"]), Path(access["cert"]), Path(access["key"]))
        found = msgspec.structs.replace(found, tls=tls)
    if "token" in access:
        found = msgspec.structs.replace(found, token=_token(access["token"], "token"))
    away = [a for a in addresses if not loopback(a)]
    if found.token and found.tls is None and away and not access.get("insecure"):
        raise BadRequest(f"the token would cross the network to {away[0]} in the clear: give ca, cert and key")
    return found


def directory(path: Path) -> Credentials:
    """What stands in a directory of credentials."""
    if not path.is_dir():
        raise BadRequest(f"{path}: no such directory; obo certs init makes one for clients")
    ca, cert, key, token = (path / name for name in ("ca.pem", "cert.pem", "key.pem", "token"))
    secured = any(file.exists() for file in (ca, cert, key))
    if not secured and not token.exists():
        raise BadRequest(f"{path}: neither ca.pem, cert.pem and key.pem nor token are in it")
    tls = Tls.read(ca, cert, key) if secured else None
    return Credentials(tls, _token(content(token).decode(errors="replace"), str(token)) if token.exists() else "")


def _token(text: str, where: str) -> str:
    found = text.strip()
    if not found or not found.isascii() or not found.isprintable() or " " in found:
        raise BadRequest(f"{where}: not a token: it is one word, as obo token new prints it")
    return found


def loopback(address: str) -> bool:
    """Is this an address of one's own machine?"""
    host = address.rpartition(":")[0]
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
