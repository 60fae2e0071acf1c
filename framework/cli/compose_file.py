"""The compose file that ``obo compose`` writes: an init service, and a node for each one of a cluster.toml."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from framework.cli.compose_init import PORT
from framework.errors import BadRequest
from framework.net.security import loopback
from framework.orb.config import Config, split_address

MARK = "# written by: obo compose "  # with its options: so that it can be written again
UID = 10001  # of the user in the image
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./-]*\Z")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_SERVICE = re.compile(r"[a-z][a-z0-9-]*\Z")


class Wanted(msgspec.Struct, frozen=True):
    """What the user may choose. Paths are relative to the compose file."""

    config: str
    image: str = "obo-node"
    app: str | None = None  # a directory with the user's classes, copied into an image of its own
    memory: str = "1g"
    cpus: str = "1"

    def words(self) -> str:
        """As they are typed."""
        given = {"--config": self.config, "--image": self.image, "--app": self.app}
        given |= {"--memory": self.memory, "--cpus": self.cpus}
        return shlex.join([w for name, value in given.items() if value is not None for w in (name, value)])


def write(config: Config, wanted: Wanted) -> str:
    """The text of the file; BadRequest if these nodes cannot be containers."""
    for name in config.addresses:
        if not _SERVICE.match(name) or name in {"init", *_WORDS}:
            raise BadRequest(f"node {name!r} cannot be a service: use small letters, digits and '-'")
    services: dict[str, Any] = {"init": _init(config, wanted)}
    for name, address in config.addresses.items():
        services[name] = _node(name, address, wanted)
    volumes = ["ca", "credentials", "admin", "traces"]
    volumes += [f"{name}-{what}" for name in config.addresses for what in ("config", "data")]
    tables = {"services": services, "volumes": {name: {} for name in volumes}}
    return f"{MARK}{wanted.words()}\n{_HELP}" + "\n".join(_yaml(tables)) + "\n"


_HELP = """\
#   docker compose up --wait                             start; the first time with certificates and a token
#   docker compose cp init:/credentials credentials      what clients need: obo ls --credentials credentials
#   obo compose roll                                     restart one node after the other: new image, new settings
#   obo compose add NAME                                 one node more
"""


def _image(wanted: Wanted) -> dict[str, Any]:
    if wanted.app is None:
        return {"image": wanted.image}
    inline = f"FROM {wanted.image}\nCOPY --chown=obo . /app\n"
    return {"build": {"context": wanted.app, "dockerfile_inline": inline}}


def _init(config: Config, wanted: Wanted) -> dict[str, Any]:
    """As root, because volumes are root's when they are new; but with nothing that root may do beside that."""
    at = [f"{name}-config:/nodes/{name}" for name in config.addresses]
    return {
        **_image(wanted),
        "command": ["compose", "init", "--config", "/deploy/cluster.toml", "--owner", str(UID)],
        "user": "root",
        "network_mode": "none",
        "read_only": True,
        "tmpfs": ["/tmp"],
        "cap_drop": ["ALL"],
        "cap_add": ["CHOWN", "DAC_OVERRIDE", "FOWNER"],
        "security_opt": ["no-new-privileges:true"],
        "healthcheck": {"disable": True},
        "volumes": [
            f"{_relative(wanted.config)}:/deploy/cluster.toml:ro",
            "ca:/ca",
            "credentials:/credentials",
            "admin:/admin",
            *at,
        ],
    }


def _node(name: str, address: str, wanted: Wanted) -> dict[str, Any]:
    host_port = split_address(address, name)[1]
    return {
        **_image(wanted),
        "hostname": name,
        "environment": {"OBO_NODE": name},
        "depends_on": {"init": {"condition": "service_completed_successfully"}},
        "restart": "unless-stopped",
        "init": True,
        "read_only": True,
        "tmpfs": ["/tmp"],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "stop_grace_period": "30s",
        "deploy": {"resources": {"limits": {"cpus": wanted.cpus, "memory": wanted.memory}}},
        "ports": [f"127.0.0.1:{host_port}:{PORT}" if loopback(address) else f"{host_port}:{host_port}"],
        "volumes": [f"{name}-config:/etc/obo:ro", f"{name}-data:/var/lib/obo", "traces:/traces"],
    }


def _relative(path: str) -> str:
    """Compose takes what begins with a letter for the name of a volume."""
    return path if path.startswith(("/", ".")) else f"./{path}"


def settings(file: Path) -> Wanted | None:
    """The options with which a file was written; None if it was not written by us."""
    first = file.read_text(encoding="utf-8").partition("\n")[0]
    if not first.startswith(MARK):
        return None
    words = shlex.split(first.removeprefix(MARK))
    return Wanted(**{k.removeprefix("--"): v for k, v in zip(words[::2], words[1::2], strict=True)})


# YAML: the little of it that is needed here


def _yaml(value: Any, indent: int = 0) -> list[str]:
    room = " " * indent
    if isinstance(value, Mapping):
        return [line for key, inner in value.items() for line in _entry(f"{room}{key}:", inner, indent)]
    assert isinstance(value, Sequence)
    return [f"{room}- {_scalar(inner)}" for inner in value]


def _entry(head: str, value: Any, indent: int) -> list[str]:
    if isinstance(value, Mapping | list):
        return (
            [head, *_yaml(value, indent + 2)] if value else [f"{head} {'{}' if isinstance(value, Mapping) else '[]'}"]
        )
    if isinstance(value, str) and "\n" in value:
        return [f"{head} |", *(f"{' ' * (indent + 2)}{line}" for line in value.splitlines())]
    return [f"{head} {_scalar(value)}"]


def _scalar(value: Any) -> str:
    plain = isinstance(value, str) and _PLAIN.match(value) and value.lower() not in _WORDS
    if plain and not value.replace(".", "").replace("_", "").isdigit():
        return str(value)
    return msgspec.json.encode(value).decode()
