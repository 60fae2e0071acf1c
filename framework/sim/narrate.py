"""Tells a run of hosted objects as it goes, line by line, from the records its nodes write."""

from collections.abc import Callable
from itertools import combinations
from typing import Literal

from framework.sim.client import Call, Client
from framework.sim.host_objects import Hosts
from framework.sim.picture import Phase, Picture, Visit
from framework.trace.record import Record

Tone = Literal["call", "deliver", "wait", "answer", "abort", "fault", "plain"]
_LONG = 0.05  # a wait worth a word
_WIDE = 84


class Narrator:
    """Listens to all nodes of a world. ``say`` gets each line and its tone."""

    def __init__(self, hosts: Hosts, say: Callable[[str, Tone], None]) -> None:
        self.hosts = hosts
        self.world = hosts.world
        self.say = say
        self.picture = Picture([n.trace.header for n in self.world.nodes.values()])
        self._marks: dict[str, int] = {}
        self._tell: dict[str, Callable[[Record, Visit | None], None]] = {
            "send": self._send,
            "deliver": self._deliver,
            "end": self._end,
            "duplicate": self._duplicate,
        }
        hosts.on_received = self._answered
        for node in self.world.nodes.values():
            node.recorder.sink = self._listen(node.recorder.sink)

    def _listen(self, sink: Callable[[Record], None]) -> Callable[[Record], None]:
        def hear(record: Record) -> None:
            sink(record)
            visit = self.picture.take(record)
            tell = self._tell.get(record.event)
            if tell is not None:
                tell(record, visit)

        return hear

    def line(self, who: str, text: str, tone: Tone) -> None:
        self.say(f"{self.world.now:7.1f}  {who:<12} {text}", tone)

    def called(self, invocation: str) -> str:
        """``ann/3 deposit('ann', 5)``"""
        client, _, number = invocation.partition("/")
        found = self.hosts.clients[client].calls.get(int(number)) if client in self.hosts.clients else None
        return f"{invocation} {found}" if found is not None else invocation

    def _send(self, r: Record, visit: Visit | None) -> None:
        name = r.parts[0][0]
        nodes = ", ".join(replica.partition("@")[2] for replica, _ in r.dests)
        where = f"to {nodes}" if len(r.dests) > 1 else f"reads at {nodes}"
        self.line(r.client, f"calls {name}: {self.called(r.invocation)}, from {r.node} {where}", "call")

    def _deliver(self, r: Record, visit: Visit | None) -> None:
        assert visit is not None
        text, why = f"performs {self.called(r.invocation)}", self._why(visit)
        if len(text) + len(why) < _WIDE:
            self.line(f"  {r.replica}", f"{text}{why and ': '}{why}", "deliver")
        else:
            self.line(f"  {r.replica}", text, "deliver")
            self.say(f"{' ' * 24}{why}", "deliver")

    def _why(self, visit: Visit) -> str:
        """What it waited for, and what it did not wait for."""
        words = [self._wait(visit, phase, end - start) for phase, start, end in visit.phases(self.world.now)]
        waited = ", ".join(w for w in words if w)
        beside = ", ".join(v.invocation for v in self._beside(visit))
        both = [f"waited {waited}" if waited else "", f"beside {beside}, compatible" if beside else ""]
        return "; ".join(b for b in both if b)

    def _wait(self, visit: Visit, phase: Phase, took: float) -> str:
        if took < _LONG:
            return ""
        if phase == "held":
            return f"{took:.1f} for a request that comes before it"
        if phase == "agreement":
            return f"{took:.1f} for agreement ({visit.way})"
        first = [v.invocation for v in self.picture.went_first(visit)]
        if first:
            return f"{took:.1f} for {' and '.join(first)}, which conflicts"
        others = [v.invocation for v in self.picture.undecided(visit)]
        return f"{took:.1f} to see {' and '.join(others) or 'a conflicting call'} placed after it"

    def _beside(self, visit: Visit) -> list[Visit]:
        others = [v for v in self.picture.at[visit.replica] if v is not visit and v.duplicate is None]
        return [v for v in others if v.ended is None and not self.picture.conflict(v, visit)]

    def _end(self, r: Record, visit: Visit | None) -> None:
        if not r.committed:
            why = self.hosts.told.get(f"{r.replica}/{r.invocation}", "it raised")
            self.line(f"  {r.replica}", f"takes back {self.called(r.invocation)}: {why}", "abort")

    def _duplicate(self, r: Record, visit: Visit | None) -> None:
        self.line(f"  {r.replica}", f"has performed {self.called(r.invocation)} before: answered again", "plain")

    def _answered(self, client: Client, call: Call) -> None:
        responses = call.responses or ()
        nodes = ", ".join(r.replica.partition("@")[2] for r in responses)
        if responses and responses[-1].status != "ok":
            text = f"is refused {call}"
        elif call.method.returns_value:
            text = f"gets {call.result()!r} from {call}"
        else:
            text = f"knows that {call} is done"
        self.line(client.name, f"{text}; answers from {nodes}", "answer")

    # what someone asks in between

    def waiting(self) -> None:
        """Who waits for what, right now."""
        for visits in self.picture.at.values():
            for visit in visits:
                if visit.delivered is None and visit.duplicate is None:
                    self.line(
                        f"  {visit.replica}", f"keeps {self.called(visit.invocation)}: {self._for(visit)}", "wait"
                    )

    def _for(self, visit: Visit) -> str:
        if visit.proposed is None and visit.agreed is None:
            return "a request that comes before it is not here yet"
        if visit.agreed is None:
            missing = self._missing(visit)
            return f"no agreement, {', '.join(missing)} not heard of" if missing else "no agreement yet"
        first = [v.invocation for v in self.picture.went_first(visit)]
        return f"{' and '.join(first)} goes first" if first else "what precedes it goes first"

    def _missing(self, visit: Visit) -> list[str]:
        """Destinations whose proposal cannot be here: they have none, or are cut off."""
        dests = [replica for replica, _ in self.picture.sends[visit.group].dests if replica != visit.replica]
        out = []
        for replica in dests:
            there = self.picture.visits.get((replica, visit.group))
            node = replica.partition("@")[2]
            apart = any(
                start <= self.world.now < end and {visit.node, node} <= set(text.split())
                for start, end, text in self.world.story
            )
            if apart or there is None or there.proposed is None:
                out.append(replica)
        return out

    def orders(self, objects: list[str]) -> bool:
        """In which order each replica performed what is new since the last time, and whether that is right."""
        right = True
        for name in objects:
            rows = {r: self._news(r) for r in self.picture.replicas if r.partition("@")[0] == name}
            rows = {r: row for r, row in rows.items() if row}
            if not rows:
                continue
            for replica, row in rows.items():
                self.say(f"           {replica:<12} {'  '.join(v.invocation for v in row)}", "plain")
            right &= self._judge(list(rows.values()))
        return right

    def _news(self, replica: str) -> list[Visit]:
        """Performed in this order; only what went to all replicas, one of which may have been passed."""
        done = [v for v in self.picture.instances.values() if v.replica == replica]
        new = done[self._marks.get(replica, 0) :]
        self._marks[replica] = len(done)
        return [v for v in new if len(self.picture.sends[v.group].dests) > 1]

    def _judge(self, rows: list[list[Visit]]) -> bool:
        names = [[v.invocation for v in row] for row in rows]
        if all(n == names[0] for n in names):
            self.say("           the same order everywhere", "plain")
            return True
        for other in rows[1:]:
            place = {v.invocation: n for n, v in enumerate(other)}
            both = [v for v in rows[0] if v.invocation in place]
            for v, w in combinations(both, 2):
                if place[v.invocation] > place[w.invocation] and self.picture.conflict(v, w):
                    self.say(f"           WRONG: {v.invocation} and {w.invocation} conflict", "fault")
                    return False
        self.say("           the orders differ, but only compatible calls changed places", "plain")
        return True
