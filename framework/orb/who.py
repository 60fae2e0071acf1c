"""Who a client is, and what its role allows (guard.py)."""

import hashlib
import re

import msgspec

from framework.errors import NoSuchMethod, PermissionDenied
from framework.net.tokens import Role
from framework.orb.messages import Act
from framework.orb.naming import Naming
from framework.orb.own import PREFIX

_CLIENT = re.compile(r"[A-Za-z0-9_-]{1,32}\Z")


class Caller(msgspec.Struct, frozen=True):
    """Who calls: a token's name and role. Without tokens everybody is nobody in particular and may do everything."""

    name: str = ""
    role: Role = "admin"

    def client(self, name: str) -> str:
        """The name of a client of this caller, for the com layer."""
        if not self.name:
            return name
        if not _CLIENT.match(name):  # '.' parts token and client, and the com layer takes 63 letters
            name = hashlib.sha256(name.encode()).hexdigest()[:32]
        return f"{self.name}.{name}"

    def check(self, act: Act, naming: Naming) -> None:
        """PermissionDenied if this is not for this caller, NoSuchMethod if it is for the framework alone."""
        for ask in act.parts:
            if ask.method.startswith(PREFIX) and self is not FRAMEWORK:
                raise NoSuchMethod(f"{ask.object} has no method {ask.method!r}")
        if self.role != "read-only":
            return
        for ask in act.parts:
            method = naming.method(ask.object, ask.method)
            if not method.readonly:
                raise PermissionDenied(f"token {self.name} is read-only, and {method.where} is not declared readonly")

    def must_be_admin(self, what: str) -> None:
        if self.role != "admin":
            raise PermissionDenied(f"{what} needs a token with the role admin; {self.name} has {self.role}")


ANYONE = Caller()
FRAMEWORK = Caller()  # the node itself
