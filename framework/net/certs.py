"""Certificates of a cluster: a CA of its own, one certificate for each node, one for clients.

A node's certificate names the node, as a host name that nobody resolves (``n1.node.obo.internal``). Who dials n2 asks
TLS for that name, and who is dialled by n1 looks for n1's: so no node can pass for another, whatever its address.
Beside it stand the addresses by which clients dial the node. A client's certificate names no node.
"""

import hashlib
import ipaddress
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from framework.errors import BadRequest
from framework.net.files import content

CA_DAYS = 3650
_PLAIN = re.compile(r"[a-z][a-z0-9]{0,40}\Z")


def node_host(node: str) -> str:
    """The host name that stands for a node. Host names know no case and few signs: other names go by their digest."""
    label = node if _PLAIN.match(node) else f"x-{hashlib.sha256(node.encode()).hexdigest()[:40]}"
    return f"{label}.node.obo.internal"


class Pair(msgspec.Struct, frozen=True):
    """A certificate and its private key, as PEM."""

    cert: bytes
    key: bytes


class Authority:
    """Signs certificates. Its key stays where the certificates are made; nodes do not need it."""

    def __init__(self, cert: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self._cert = cert
        self._key = key

    @classmethod
    def new(cls, days: int) -> "Authority":
        key = ec.generate_private_key(ec.SECP256R1())
        name = _subject(f"OBO cluster CA {x509.random_serial_number() % 10**8:08}")
        usage = _usage(key_cert_sign=True, crl_sign=True)
        builder = _begin(name, name, key.public_key(), max(days, CA_DAYS))
        builder = builder.add_extension(x509.BasicConstraints(True, 0), True).add_extension(usage, True)
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def read(cls, cert: Path, key: Path) -> "Authority":
        private = _private(key)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise BadRequest(f"{key}: not a key that obo certs has made")
        return cls(_certificate(cert), private)

    @property
    def pair(self) -> Pair:
        return Pair(_pem(self._cert), _pem_key(self._key))

    def node(self, name: str, hosts: Sequence[str], days: int) -> Pair:
        """For a node that is dialled at these hosts."""
        names = dict.fromkeys((node_host(name), "localhost", "127.0.0.1", "::1", *hosts))
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._sign(name, [_san(n) for n in names], both, days)

    def client(self, name: str, days: int) -> Pair:
        return self._sign(name, [], [ExtendedKeyUsageOID.CLIENT_AUTH], days)

    def _sign(
        self, name: str, sans: Sequence[x509.GeneralName], usages: Sequence[x509.ObjectIdentifier], days: int
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _begin(_subject(name), self._cert.subject, key.public_key(), days)
        builder = builder.add_extension(x509.BasicConstraints(False, None), True)
        builder = builder.add_extension(_usage(digital_signature=True), True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), False)
        if sans:
            builder = builder.add_extension(x509.SubjectAlternativeName(sans), False)
        return Pair(_pem(builder.sign(self._key, hashes.SHA256())), _pem_key(key))


def _begin(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    """A negative number of days makes one that has expired; for tests."""
    now = datetime.now(UTC)
    end = now + timedelta(days=days)
    start = min(now, end) - timedelta(hours=1)  # clocks differ
    named = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
    return named.serial_number(x509.random_serial_number()).not_valid_before(start).not_valid_after(end)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(digital_signature, False, False, False, False, key_cert_sign, crl_sign, False, False)


def _san(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise BadRequest(f"{host!r} cannot stand in a certificate: write host names in ASCII (xn--...)") from None


def _pem(cert: x509.Certificate) -> bytes:
    return cert.public_bytes(serialization.Encoding.PEM)


def _pem_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


# looking at what there is


class Facts(msgspec.Struct, frozen=True):
    """What people want to know of a certificate."""

    subject: str
    names: tuple[str, ...]
    expires: datetime

    @property
    def days_left(self) -> float:
        return (self.expires - datetime.now(UTC)) / timedelta(days=1)


def facts(path: Path) -> Facts:
    cert = _certificate(path)
    subject = [str(a.value) for a in cert.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    return Facts(", ".join(subject), _names(cert), cert.not_valid_after_utc)


def check(ca: Path, cert: Path, key: Path, node: str | None) -> Facts:
    """BadRequest that names the file and what is wrong with it; ``node`` is whose it must be, None for a client's."""
    authority, mine, private = _certificate(ca), _certificate(cert), _private(key)
    if mine.public_key() != private.public_key():
        raise BadRequest(f"{cert} does not belong to {key}: take certificate and key from the same obo certs init")
    try:
        mine.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        raise BadRequest(f"{cert} was not signed by {ca}: take all certificates from the same obo certs init") from None
    if node is not None and node_host(node) not in _names(mine):
        raise BadRequest(f"{cert} does not name node {node}: it names {', '.join(_names(mine)) or 'nobody'}")
    now = datetime.now(UTC)
    for path, one in ((ca, authority), (cert, mine)):
        if one.not_valid_after_utc < now:
            raise BadRequest(f"{path} expired on {one.not_valid_after_utc:%Y-%m-%d}: renew it with obo certs renew")
        if one.not_valid_before_utc > now:
            raise BadRequest(f"{path} is not valid before {one.not_valid_before_utc:%Y-%m-%d}: is the clock right?")
    return facts(cert)


def _names(cert: x509.Certificate) -> tuple[str, ...]:
    try:
        found = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return (*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress)))


def _certificate(path: Path) -> x509.Certificate:
    data = content(path)
    try:
        return x509.load_pem_x509_certificate(data)
    except ValueError:
        raise BadRequest(f"{path}: no certificate in PEM") from None


def _private(path: Path) -> PrivateKeyTypes:
    data = content(path)
    try:
        return serialization.load_pem_private_key(data, None)
    except (ValueError, TypeError):
        raise BadRequest(f"{path}: no private key in PEM, or one with a password") from None
