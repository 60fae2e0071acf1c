"""``obo compose roll`` and ``obo compose add``: change a deployment while it works, one node after the other.

A node is stopped (it leaves the group in order), made anew from its image and settings, and the next one has its turn
when it is well: a member of the group that has the states of all its replicas. So there is a majority all the time.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from framework.cli.where import nodes
from framework.errors import BadRequest, Unavailable
from framework.net.security import loopback
from framework.orb.config import split_address

WAIT = 300  # seconds for a node to be well again; it may have a large state to get

Run = Callable[[Sequence[str]], str]


class Compose:
    """``docker compose`` on one file. ``run`` is for tests."""

    def __init__(self, file: Path, run: Run | None = None) -> None:
        if not file.exists():
            raise BadRequest(f"{file}: no such file; obo compose writes one")
        self.file = file
        self._run = run or _run

    def __call__(self, *words: str) -> str:
        return self._run(["docker", "compose", "--file", str(self.file), *words])

    def services(self) -> dict[str, Any]:
        """All that the file has, also those of profiles."""
        told: dict[str, Any] = json.loads(self("--profile", "*", "config", "--format", "json"))
        return dict(told["services"])

    def unwell(self, name: str) -> str:
        """Why this node is not well; empty if it is. The node itself is asked: the engine says *healthy* until several
        of its own checks have failed, and half a minute ago is too long ago to stop the next node."""
        lines = self("ps", "--all", "--format", "json", name).strip()
        found = [json.loads(line) for line in lines.splitlines()] if not lines.startswith("[") else json.loads(lines)
        if not found:
            return f"{name} has no container"
        if found[0]["State"] != "running":
            return f"{name} is {found[0]['State']}"
        try:
            self("exec", "-T", name, "obo", "health")
        except Unavailable as error:
            return f"{name} is not well: {error}"
        return ""


def _run(words: Sequence[str]) -> str:
    if shutil.which(words[0]) is None:
        raise BadRequest("there is no docker on this machine: obo compose roll and add need it")
    done = subprocess.run(words, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        said = " ".join(done.stderr.strip().splitlines()[-3:]) or f"it ended with {done.returncode}"
        raise Unavailable(f"{' '.join(words[:2])} ... {' '.join(words[4:])}: {said}")
    return done.stdout


def roll(
    compose: Compose, names: Sequence[str], say: Callable[[str], None], build: bool = False, renew: bool = False
) -> None:
    """Each of these nodes anew, one at a time. Unavailable, and nothing is touched any more, if one is not well."""
    services = compose.services()
    for name in names:
        if name not in services:
            raise BadRequest(f"{compose.file} has no service {name!r}")
    init = _init_of(services, names[0])
    if build:
        say("building ...")
        compose("build", init)
    words = [*services[init]["command"], "--renew"] if renew else []
    say(f"{init}: {compose('run', '--rm', '--no-deps', init, *words).strip()}")
    for name in names:
        for other in names:
            if why := compose.unwell(other):
                raise Unavailable(f"{why}: {name} stays as it is, because a majority must be there all the time")
        say(f"{name}: stopped and started anew ...")
        compose("up", "--detach", "--no-deps", "--force-recreate", "--wait", "--wait-timeout", str(WAIT), name)
        say(f"{name}: well")


def _init_of(services: Mapping[str, Any], name: str) -> str:
    """The service that must have done its work before this node starts."""
    for other, how in services[name].get("depends_on", {}).items():
        if how["condition"] == "service_completed_successfully":
            return str(other)
    raise BadRequest(f"service {name} depends on no init service; obo compose writes a file in which it does")


def add(compose: Compose, config: Path, name: str, say: Callable[[str], None]) -> None:
    """The others learn of it, one by one; then it joins and gets its states. May be repeated after a failure."""
    before = nodes(config)
    old = [n for n in before if n != name]
    if not old:
        raise BadRequest(f"{config}: there is no other node: start a cluster first")
    for other in old:
        if why := compose.unwell(other):
            raise Unavailable(f"{why}: a node can be added when all others are well")
    if name not in compose.services():
        raise BadRequest(f"{compose.file} has no service {name!r}: add one like that of {old[0]}")
    roll(compose, old, say)
    say(f"{name}: started; it gets its states ...")
    compose("up", "--detach", "--no-deps", "--wait", "--wait-timeout", str(WAIT), name)
    say(f"{name}: well")


def with_node(text: str, name: str, where: str) -> str:
    """A cluster.toml with one node more, at the port after the highest one; the rest as people have written it."""
    lines = text.splitlines()
    head = next((i for i, line in enumerate(lines) if line.split("#")[0].strip() == "[nodes]"), None)
    if head is None:
        raise BadRequest(f"{where}: no [nodes] in a line of its own: add {name} by hand")
    end = next((i for i in range(head + 1, len(lines)) if lines[i].lstrip().startswith("[")), len(lines))
    last = max((i for i in range(head, end) if "=" in lines[i].split("#")[0]), default=head)
    return "\n".join([*lines[: last + 1], f'{name} = "{_address(Path(where), name)}"', *lines[last + 1 :]]) + "\n"


def _address(config: Path, name: str) -> str:
    known = [(a, split_address(a, n)[1]) for n, a in nodes(config).items()]
    if all(loopback(address) for address, _ in known):
        return f"127.0.0.1:{max(port for _, port in known) + 1}"
    return f"{name}:{known[-1][1]}"


def with_profile(text: str, profile: str) -> str:
    """An .env that starts this profile, too."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        key, _, value = line.partition("=")
        if key.strip() == "COMPOSE_PROFILES":
            given = [p.strip() for p in value.split(",") if p.strip()]
            lines[i] = f"COMPOSE_PROFILES={','.join(dict.fromkeys([*given, profile]))}"
            return "\n".join(lines) + "\n"
    return "\n".join([*lines, f"COMPOSE_PROFILES={profile}"]) + "\n"
