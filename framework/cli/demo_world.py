"""``obo demo --world``: three nodes, a counter and a bank on each, a cut and a pause, told as it goes."""

import sys
import time

from rich.console import Console

from framework.cli.look import encodable
from framework.ids import Node
from framework.sim.client import Client, Script
from framework.sim.host_objects import NODES, Hosts, host
from framework.sim.narrate import Narrator, Tone
from framework.sim.verdict import Verdict
from objects.bank import Bank
from objects.counter import Counter

_STYLES: dict[Tone, str] = {
    "call": "bold cyan",
    "deliver": "green",
    "wait": "yellow",
    "answer": "cyan",
    "abort": "magenta",
    "fault": "bold red",
    "plain": "",
}
_PAUSE = 0.12  # seconds a line, for people


def tell(seed: int, fast: bool) -> int:
    """The exit code."""
    return Demo(seed, 0.0 if fast or not sys.stdout.isatty() else _PAUSE).play()


class Demo:
    def __init__(self, seed: int, pause: float) -> None:
        self.seed = seed
        self.pause = pause
        encodable(sys.stdout)
        self.console = Console(highlight=False, soft_wrap=True)
        self.hosts: Hosts = host(seed, {"counter": Counter, "bank": Bank})
        self.narrator = Narrator(self.hosts, self.say)
        self.right = True

    def say(self, text: str, tone: Tone = "plain") -> None:
        self.console.print(text, style=_STYLES[tone], markup=False)
        time.sleep(self.pause)

    def play(self) -> int:
        """The exit code: 0 if everything came out as promised."""
        self.say(f"Three nodes, {', '.join(NODES)}; on each a replica of a counter and of a bank. Seed {self.seed}.")
        self.say("A call goes to all replicas, a call that only reads to one. Calls that conflict, because their order")
        self.say("shows, are performed in one order everywhere. Compatible calls never wait for each other.")
        self.hosts.client("director", "n1", self.direct)
        return self.end(self.hosts.run())

    def direct(self, me: Client) -> Script:
        """Chapter after chapter: the next one begins when the clients of the last are done."""
        for chapter in (self.compatible, self.conflicting, self.cut, self.standstill):
            chapter()
            while not all(c.over for c in self.hosts.clients.values() if c is not me):
                yield 2.0
            yield 40.0  # what is on its way arrives
            self.say("  Performed, in this order:")
            self.right &= self.narrator.orders(["counter", "bank"])

    def chapter(self, title: str, *lines: str) -> None:
        self.say("")
        self.say(f"── {title} " + "─" * max(0, 96 - len(title)))
        for line in lines:
            self.say(f"  {line}")

    def compatible(self) -> None:
        self.chapter(
            "1. Compatible calls",
            "Two clients change the counter at the same time. Their order does not show in the sum,",
            "so replicas may perform them as they come.",
        )
        self.hosts.client("ann", "n1", lambda me: _calls(me, "counter", ("increment", 5)))
        self.hosts.client("bob", "n3", lambda me: _calls(me, "counter", ("decrement", 2)))

    def conflicting(self) -> None:
        self.chapter(
            "2. Conflicting calls",
            "Two withdrawals from one account: whoever comes second may be refused, so all replicas must agree who",
            "that is. A deposit on another account meets none of the keys and goes its own way.",
        )

        def carl(me: Client) -> Script:
            yield me.call("bank", "deposit", "shop", 100)
            self.hosts.client("dora", "n1", lambda me: _calls(me, "bank", ("withdraw", "shop", 70)))
            self.hosts.client("emil", "n3", lambda me: _calls(me, "bank", ("withdraw", "shop", 60)))
            self.hosts.client("fred", "n2", lambda me: _calls(me, "bank", ("deposit", "fred", 10)))

        self.hosts.client("carl", "n2", carl)

    def cut(self) -> None:
        start, end = self.hosts.world.now, self.hosts.world.now + 70.0
        self.chapter(
            "3. A cut",
            "Between n1 and n3 nothing gets through for a while. Calls whose order matters wait: answering them now",
            "could mean two orders. What needs no agreement goes on.",
        )
        self.hosts.world.cut(Node("n1"), Node("n3"), start, end)
        self.fault(start, "n1 and n3 are cut from each other")
        self.hosts.client("gina", "n1", lambda me: _calls(me, "bank", ("deposit", "shop", 5)))
        self.hosts.client("hugo", "n3", lambda me: _calls(me, "bank", ("transfer", "shop", "hugo", 20)))
        self.hosts.client("ines", "n3", lambda me: _calls(me, "counter", ("show",)))
        self.hosts.world.at(start + 45.0, self.ask)
        self.fault(end, "the cut heals: what was lost is sent again")

    def standstill(self) -> None:
        start, end = self.hosts.world.now, self.hosts.world.now + 50.0
        self.chapter(
            "4. A node stands still",
            "n2 does nothing for a while, as a busy computer does. The others keep what they cannot agree on without",
            "it; nobody is wrong meanwhile.",
        )
        self.hosts.world.pause(Node("n2"), start, end)
        self.fault(start, "n2 stands still")
        self.hosts.client("jane", "n1", lambda me: _calls(me, "bank", ("withdraw", "hugo", 15), ("audit",)))
        self.hosts.client("karl", "n3", lambda me: _calls(me, "counter", ("increment", 1), ("show",)))
        self.hosts.world.at(start + 35.0, self.ask)
        self.fault(end, "n2 goes on")

    def fault(self, at: float, text: str) -> None:
        self.hosts.world.at(at, lambda: self.narrator.line("✂", text, "fault"))

    def ask(self) -> None:
        self.narrator.line("", "who waits for what?", "plain")
        self.narrator.waiting()

    def end(self, verdict: Verdict) -> int:
        self.chapter("The end", "The states and their digests:")
        digests: dict[str, set[str]] = {}
        for replica in self.hosts.replicas:
            digest = self.hosts.digest(replica)
            digests.setdefault(replica.partition("@")[0], set()).add(digest)
            self.say(f"           {replica:<12} {digest}  {vars(self.hosts[replica])}")
        equal = all(len(found) == 1 for found in digests.values())
        self.say("  Equal on all replicas." if equal else "  NOT EQUAL.", "plain" if equal else "fault")
        self.say(
            f"  The oracle, which knows the definitions and not the protocol: {verdict.delivered} requests performed, "
            f"{verdict.fast} agreed"
        )
        self.say(
            f"  fast, {verdict.slow} slow; of {verdict.pairs} pairs at a replica {verdict.ordered} conflict and had to "
            f"be ordered; {len(verdict.violations)} violations."
        )
        for violation in verdict.violations:
            self.say(f"  {violation}", "fault")
        return 0 if equal and self.right and not verdict.violations else 1


def _calls(me: Client, name: str, *calls: tuple[object, ...]) -> Script:
    for method, *args in calls:
        yield me.call(name, str(method), *args)
