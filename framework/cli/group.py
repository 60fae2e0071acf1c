"""What ``obo leave`` and ``obo evict`` have in common: find the node, ask the user, ask a node, wait for the view."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from framework import BadRequest, OboError
from framework.cli.where import access, nodes
from framework.declare.suggest import did_you_mean
from framework.errors import Unavailable
from framework.orb.client import ask_node
from framework.orb.messages import Change, Look

PATIENCE = 3.0  # seconds for an answer
DONE = 15.0  # seconds until the group has done it; a node drains before it leaves

NodeName = Annotated[str, typer.Argument(metavar="NODE", help="Its name in the cluster.toml.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask whether it is meant.")]


class Group:
    """The nodes of a cluster.toml, to be asked one by one."""

    def __init__(self, config: Path, credentials: Path | None) -> None:
        self.nodes = nodes(config)
        self._access: Any = access(config, credentials)

    def check(self, node: str) -> None:
        if node not in self.nodes:
            raise BadRequest(f"no node {node!r}; {did_you_mean(node, self.nodes)}")

    def look(self, node: str) -> dict[str, Any]:
        told: dict[str, Any] = ask_node(self.nodes[node], Look(1, "status"), PATIENCE, **self._access)
        return told

    def change(self, at: str, change: Change) -> None:
        ask_node(self.nodes[at], change, PATIENCE, **self._access)

    def member(self, but: str) -> tuple[str, dict[str, Any]]:
        """A node that is in the group and can decide something, and what it says; not this one."""
        why: list[str] = []
        for name in self.nodes:
            if name == but:
                continue
            try:
                told = self.look(name)
            except Unavailable as error:
                why.append(str(error))
                continue
            if told["group"]["state"] in ("steady", "changing"):
                return name, told
            why.append(str(told["group"]["why"]))
        raise Unavailable(f"no other member can be asked: {'; '.join(why) or 'there is no other node'}")

    def until_gone(self, node: str, life: int | None, at: str) -> str:
        """Wait until a member says that this life is out; what it says then."""
        until = time.monotonic() + DONE
        while time.monotonic() < until:
            try:
                told = self.look(at)["group"]["members"]
                if told and told.get(node) != life:
                    return ", ".join(told)
            except OboError:
                pass  # it may be busy with just that
            time.sleep(0.1)
        raise Unavailable(f"{node} is still a member after {DONE:g} s; obo status shows what goes on")


def confirmed(question: str, yes: bool, ask: Callable[..., bool] = typer.confirm) -> None:
    if not yes and not ask(question):
        raise typer.Exit(1)
