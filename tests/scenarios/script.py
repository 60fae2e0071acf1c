"""Plays a scenario file: commands, then ``----``, then the conversation that they cause.

    nodes n1 n2 n3 [window=2 batch=1 queued=4 backlog=2]
    object file on n1 n2 n3 [conflicts write/write,write/read] [reads read] [at-once]
    submit c1@n1 sync crec file.write(x)          a client sends; kinds: oneway, async, sync and its receipt
    call file@n1 c1/1 oneway log.add@n2           the instance of c1/1 at file@n1 sends
    collect c1@n1 2 drec                          wait for an asynchronous call
    complete file@n1 c1/1 [output]                the instance is performed
    abort file@n1 c1/1
    hold n1->n3        frames stay on their way   release n1->n3 or release
    lose n1->n3        what was held is lost      repeat n1->n3, the last frame once more
    mute n1->n3        nothing leaves             reconnect n1->n3
    tick 5 [n1]        time passes                move c1 n2
    show n1            what it waits for, and the contexts it keeps

Requests are written as in tests.paper.stage: object.method(keys)@nodes; several of them are a pcast.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from framework.com.events import Received
from framework.com.limits import Limits
from framework.com.link import Timing
from framework.com.messages import Kind
from framework.com.receipt import Receipt, quorum, srec
from framework.errors import OboError
from framework.ids import Node, Replica
from framework.trace.still_open import still_open
from tests.paper.stage import TIMING, Actor, Client, Stage
from tests.scenarios import tell

RULE = "----"


class Block(msgspec.Struct):
    """Lines that are kept as they are, commands among them, and the conversation expected from them."""

    lines: list[str]
    expected: list[str] | None  # None: no rule, nothing is expected


def parse(text: str) -> list[Block]:
    """Blocks are divided by empty lines."""
    blocks = []
    for chunk in re.split(r"\n\s*\n", text.strip("\n")):
        lines = chunk.split("\n")
        if RULE in lines:
            at = lines.index(RULE)
            blocks.append(Block(lines[:at], lines[at + 1 :]))
        else:
            blocks.append(Block(lines, None))
    return blocks


def write(blocks: list[Block]) -> str:
    chunks = []
    for block in blocks:
        rest = [] if block.expected is None else [RULE, *block.expected]
        chunks.append("\n".join([*block.lines, *rest]))
    return "\n\n".join(chunks) + "\n"


class Script:
    def __init__(self) -> None:
        self.stage = Stage("")
        self.said: list[str] = []

    def play(self, blocks: list[Block]) -> list[Block]:
        """The same blocks with what really happened. A block whose commands say something gets a rule."""
        out = []
        for block in blocks:
            self.said = []
            for line in block.lines:
                if line and not line.startswith("#"):
                    self._command(line)
            said = self.said if self.said or block.expected is not None else None
            out.append(Block(block.lines, said))
        return out

    def _command(self, line: str) -> None:
        word, *rest = line.split()
        command: Callable[..., None] | None = getattr(self, f"do_{word}", None)
        assert command is not None, f"no such command: {line}"
        try:
            command(*rest)
        except OboError as e:
            self.said.append(f"{type(e).__name__}: {e}")

    def _watch(self, what: str, node: Node, detail: Any) -> None:
        if what == "effect":
            self.said += tell.effect(node, detail)
            if isinstance(detail, Received) and detail.group is not None:
                session = self.stage.com(node).session(detail.client)
                self.said[-1] += f", session context {tell.context(session.context)}" if session else ""
        else:
            self.said += tell.frame(node, detail, held=what == "held")

    # who is there

    def do_nodes(self, *words: str) -> None:
        options = {k: int(v) for k, _, v in (w.partition("=") for w in words if "=" in w)}
        timing = {k: v for k, v in options.items() if k in Timing.__struct_fields__}
        limits = {k: v for k, v in options.items() if k in Limits.__struct_fields__}
        nodes = " ".join(w for w in words if "=" not in w)
        self.stage = Stage(nodes, msgspec.structs.replace(TIMING, **timing), Limits(**limits))
        self.stage.watch = self._watch

    def do_object(self, name: str, on: str, *words: str) -> None:
        assert on == "on"
        fields: dict[str, list[str]] = {"on": []}
        key = "on"
        for word in words:
            if word in ("conflicts", "reads", "at-once"):
                key = word
                fields[key] = []
            else:
                fields[key] += word.split(",")
        conflicts, reads = (" ".join(fields.get(k, ())) for k in ("conflicts", "reads"))
        self.stage.object(name, " ".join(fields["on"]), conflicts, reads, "at-once" in fields)

    def _client(self, where: str) -> Client:
        name, _, node = where.partition("@")
        client = self.stage.clients.get(name) or self.stage.client(name, node)
        assert client.node == node, f"{name} is at {client.node}"
        return client

    def _instance(self, at: str, invocation: str) -> Any:
        return self.stage.instance(invocation, at)

    # what they do

    def do_submit(self, who: str, *words: str) -> None:
        self._send(self._client(who), words)

    def do_call(self, at: str, invocation: str, *words: str) -> None:
        self._send(self._instance(at, invocation), words)

    def _send(self, actor: Actor, words: tuple[str, ...]) -> None:
        kinds: dict[str, Kind] = {"sync": "sync", "async": "async", "oneway": "oneway"}
        kind, rest = kinds[words[0]], list(words[1:])
        receipt = _receipt(rest.pop(0)) if kind == "sync" else None
        more: dict[str, Any] = {}
        while "=" in rest[-1]:
            key, _, value = rest.pop().partition("=")
            more[key] = int(value)
        self.stage.do(actor.node, actor.event(" ".join(rest), kind, receipt, **more))

    def do_collect(self, *words: str) -> None:
        *who, call, receipt = words
        actor = self._client(who[0]) if len(who) == 1 else self._instance(*who)
        actor.collect(int(call), _receipt(receipt))

    def do_complete(self, at: str, invocation: str, *output: str) -> None:
        self._instance(at, invocation).commit(" ".join(output).encode())

    def do_abort(self, at: str, invocation: str) -> None:
        self._instance(at, invocation).abort()

    def do_move(self, client: str, node: str) -> None:
        self.stage.clients[client].move(node)

    # links and time

    def do_hold(self, *links: str) -> None:
        self.stage.hold(*links)

    def do_mute(self, *links: str) -> None:
        self.stage.mute(*links)

    def do_release(self, *links: str) -> None:
        self.stage.release(*links)

    def do_lose(self, link: str) -> None:
        self.said.append(f"{self.stage.lose(link)} lost")

    def do_repeat(self, link: str) -> None:
        self.stage.repeat(link)

    def do_reconnect(self, link: str) -> None:
        self.stage.reconnect(link)

    def do_tick(self, time: str, *nodes: str) -> None:
        self.stage.tick(float(time), *nodes)

    # what is there

    def do_show(self, node: str) -> None:
        com = self.stage.com(node)
        self.said += still_open(com)
        for name, session in sorted(com.calls.sessions.items()):
            self.said.append(f"session {name}: context {tell.context(session.knows(com.known))}")
        for at in sorted(com.hosts):
            epoch = com.hosts[Replica(at)].epoch
            wires = tell.context(epoch.context.wire()), tell.context(epoch.base.wire())
            self.said.append(f"{at}: epoch {epoch.cid}, committed {wires[0]}, base {wires[1]}")


def _receipt(text: str) -> Receipt:
    found = re.match(r"(srec|crec|drec|quorum)(?:\((.+)\))?\Z", text)
    assert found, f"not a receipt: {text}"
    way, inside = found.groups()
    if way == "quorum":
        return quorum(int(inside))
    return srec(Replica(inside)) if inside else Receipt(way)  # type: ignore[arg-type]
