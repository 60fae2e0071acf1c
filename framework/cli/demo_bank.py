"""``obo demo``: the stage. Three nodes, clients, the fault, and what is told of it all."""

import sys
import textwrap
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.text import Text

from framework.bench.back import look, wait_back
from framework.cli.demo_money import ACCOUNTS, NAME, PATIENCE, Client, Tally, prepare
from framework.cli.demo_verdict import Finding, judge
from framework.cli.demo_view import WIDTH, View
from framework.cli.look import encodable
from framework.errors import OboError

if TYPE_CHECKING:
    from framework.testing.clusters import Cluster
    from framework.testing.postgres import Server

VICTIM = "n3"
KILL, START = 0.35, 0.6  # of the time
BACK = 60.0  # seconds for the victim to be back
LOOK = 0.3  # seconds between two looks at the nodes


class Plan(msgspec.Struct, frozen=True):
    seconds: float = 20.0
    clients: int = 8
    postgres: bool = False


class Bank:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        encodable(sys.stdout)
        self._console = Console(highlight=False)
        if not self._console.is_terminal:
            self._console.width = WIDTH
        self._tally = Tally()
        self._clients: list[Client] = []
        self._servers: dict[str, Server] = {}
        self._told: dict[str, dict[str, Any]] = {}
        self._seen: dict[str, dict[int, tuple[int, int]]] = {}  # node: process: begun, waited
        self._over = threading.Event()
        self._lasted = 1.0  # seconds
        self._killed = 0.0
        self._back = 0.0  # seconds from its start until the victim was back

    def play(self) -> int:
        """The exit code."""
        self._introduce()
        with ExitStack() as stack:
            try:
                c = self._set_up(stack)
                self._run(c)
                findings = self._judge(c)
            except KeyboardInterrupt:
                self._console.print("Stopped: the nodes are ended, and what they wrote is removed.")
                raise
            finally:
                self._over.set()
                for client in self._clients:
                    client.stop()
        self._sum_up(findings)
        return 0 if all(finding.good for finding in findings) else 1

    # what is told

    def _introduce(self) -> None:
        kind = "on a PostgreSQL server" if self._plan.postgres else "in an SQLite file"
        self._title("A bank on three nodes")
        self._say(
            f"Three nodes, n1, n2 and n3, each keep a copy of one database with {ACCOUNTS} accounts, {kind} of their "
            f"own. {self._plan.clients} clients move money between accounts, each through one of the nodes: take it "
            f"here, add it there, note it in the history; all of that or nothing. Then {VICTIM} is killed without a "
            "warning, as by a power cut, and started again, while the clients go on."
        )
        self._console.print()

    def _title(self, text: str) -> None:
        self._console.print(text, style="bold")

    def _say(self, text: str, style: str = "", first: str = "") -> None:
        """Folded, with ``first`` before the first line and space before the others."""
        room = min(self._console.width, WIDTH) - 1
        for line in textwrap.wrap(text, room, initial_indent=first, subsequent_indent=" " * len(first)):
            self._console.print(Text(line, style=style), soft_wrap=True)

    # the run

    def _set_up(self, stack: ExitStack) -> "Cluster":
        from framework.testing.clusters import cluster
        from objects.sql.client import Sql
        from objects.sql.database import Database

        began = time.monotonic()
        names = ("n1", "n2", "n3")
        options: dict[str, Any] = {}
        with self._console.status("starting ...") if self._console.is_terminal else ExitStack():
            if self._plan.postgres:
                options = {NAME: self._start_servers(stack, names)}
            c = stack.enter_context(
                cluster({NAME: Database}, names, processes=True, links=False, traces=False, options=options)
            )
            prepare(Sql(c.connect(timeout=PATIENCE), NAME))
            for number in range(1, self._plan.clients + 1):
                home = names[number % len(names)]
                self._clients.append(Client(number, c.connect(home, timeout=PATIENCE), self._tally))
        self._say(f"The nodes are up, after {time.monotonic() - began:.1f} s.")
        return c

    def _start_servers(self, stack: ExitStack, names: tuple[str, ...]) -> dict[str, Any]:
        from framework.testing.postgres import find_binaries, servers

        started = stack.enter_context(servers(len(names)))
        self._servers = dict(zip(names, started, strict=True))
        return {"urls": {n: s.create(NAME) for n, s in self._servers.items()}, "tools": str(find_binaries())}

    def _run(self, c: "Cluster") -> None:
        watcher = threading.Thread(target=self._watch, args=(c,), name="obo-demo-watch", daemon=True)
        watcher.start()
        self._tally.began = time.monotonic()
        for client in self._clients:
            client.start()
        with View(self._console, self._plan.seconds) as view:
            view.begin(self._tally)
            view.event(f"{len(self._clients)} clients begin")
            self._until(view, KILL * self._plan.seconds)
            self._kill(c, view)
            self._until(view, START * self._plan.seconds)
            self._restart(c, view)
            self._until(view, self._plan.seconds)
            for client in self._clients:
                client.stop()
            view.event("the clients stop")
            for client in self._clients:
                if not client.join():
                    self._tally.failed("a client got no answer")
            self._lasted = view.elapsed
            time.sleep(2 * LOOK)
            view.update(self._told)
        self._over.set()
        watcher.join()

    def _until(self, view: View, seconds: float) -> None:
        while view.elapsed < seconds:
            view.update(self._told)
            time.sleep(0.1)

    def _kill(self, c: "Cluster", view: View) -> None:
        c.crash(VICTIM)
        if VICTIM in self._servers:
            self._servers[VICTIM].kill()
        self._killed = view.elapsed
        also = " and its PostgreSQL server are" if VICTIM in self._servers else " is"
        view.event(f"{VICTIM}{also} killed (kill -9); the others go on", "bold red")

    def _restart(self, c: "Cluster", view: View) -> None:
        """In another thread: the picture goes on meanwhile."""
        began = view.elapsed
        view.event(f"{VICTIM} is started again", "bold yellow")
        failed: list[BaseException] = []

        def start() -> None:
            try:
                if VICTIM in self._servers:
                    self._servers[VICTIM].start()
                c.restart(VICTIM)
                wait_back(c, VICTIM, (), BACK)
            except (OboError, OSError) as error:
                failed.append(error)

        thread = threading.Thread(target=start, name="obo-demo-restart", daemon=True)
        thread.start()
        while thread.is_alive():  # it ends by itself, at the latest after BACK
            view.update(self._told)
            time.sleep(0.1)
        if failed:
            self._tally.failed(f"{VICTIM} did not come back: {failed[0]}")
            view.event(f"{VICTIM} did not come back: {failed[0]}", "bold red")
            return
        self._back = view.elapsed - began
        view.event(f"{VICTIM} is back, with all that it has missed", "bold green")

    def _watch(self, c: "Cluster") -> None:
        """What the nodes say of themselves, again and again."""
        while not self._over.wait(LOOK):
            self._told = {node: look(c, node) or {"error": "no answer"} for node in c.nodes}
            for node, status in self._told.items():
                stages = status.get("replicas", {}).get(f"{NAME}@{node}")
                if stages is not None:
                    lives = self._seen.setdefault(node, {})
                    lives[status["process"]["pid"]] = stages["begun"], stages["waited"]

    # the end

    def _judge(self, c: "Cluster") -> list[Finding]:
        from objects.sql.client import Sql

        try:
            return judge(Sql(c.connect(timeout=PATIENCE), NAME), self._clients, self._tally)
        except OboError as error:
            return [Finding(False, f"The books could not be read: {type(error).__name__}: {error}")]

    def _sum_up(self, findings: list[Finding]) -> None:
        tally = self._tally
        self._console.print()
        self._title("What happened")
        self._say(
            f"{tally.confirmed:,} transfers were made, about {tally.confirmed / self._lasted:,.0f} a second; "
            f"{tally.refused:,} were refused, because there was too little on the account.",
            first="  ",
        )
        if self._back:
            self._say(
                f"{VICTIM} was killed {self._killed:.0f} s after the beginning. {self._back:.1f} s after its new start "
                "it had all that it had missed, and took part again.",
                first="  ",
            )
        self._console.print()
        self._title("Is everything right?")
        for finding in findings:
            sign, colour = ("✓", "green") if finding.good else ("✗", "bold red")
            self._say(finding.text, colour, f"  {sign} ")
        self._console.print()
        self._order()

    def _order(self) -> None:
        begun = sum(count for lives in self._seen.values() for count, _ in lives.values())
        waited = sum(count for lives in self._seen.values() for _, count in lives.values())
        if not begun:
            return
        self._title("What was put in order, and what was not")
        share = 100 * (begun - waited) / begun
        self._say(
            f"{begun - waited:,} of the {begun:,} requests that the copies got ({share:.0f} %) "
            "met no other one that touched the same: each copy performed them as they came, in an order of its own.",
            first="  ",
        )
        self._say(
            f"{waited:,} met another one that touched the same, an account most often, and waited for it: they were "
            "performed in the same order on every copy. There the order shows, so it is kept there, and only there.",
            first="  ",
        )
