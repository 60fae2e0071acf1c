"""Members that talk about the next view and nothing else: every word waits in a bag until the test takes it out.

Frames are left out, so nobody hears that the others are alive; with the default timing nobody is suspected either."""

from collections.abc import Callable
from typing import Any

from framework.com.core import Com
from framework.com.events import AnyEffect, AnyEvent, Arrived, Evict, Installed, Out, Tick, Transmit, Writable
from framework.com.link import Timing
from framework.com.messages import Frame, encode
from framework.com.view import Directory, Placement, View
from framework.com.words import AnyWord, decode
from framework.footprint import Relation
from framework.ids import Node

FIVE = tuple(Node(f"n{i}") for i in range(1, 6))
N1, N2, N3, N4, N5 = FIVE
LATE = 1.5  # longer than an attempt may take


class Word:
    def __init__(self, source: Node, target: Node, data: bytes) -> None:
        self.source, self.target, self.data = source, target, data
        self.word: Any = decode(data, source)

    def __repr__(self) -> str:
        return f"{self.source}->{self.target}: {self.word}"


class Council:
    def __init__(self, members: tuple[Node, ...] = FIVE, timing: Timing | None = None) -> None:
        placements = [Placement("f", Relation([("w", "w")]), members)]
        directory = Directory(View(1, members), placements, FIVE)
        self.com = {n: Com(n, directory, timing) for n in members}
        self.bag: list[Word] = []
        self.heard: dict[Node, list[AnyEffect]] = {n: [] for n in members}
        self.now = 0.0

    def step(self, node: Node, event: AnyEvent) -> None:
        effects = self.com[node].step(event, self.now)
        self.heard[node] += effects
        for effect in effects:
            if isinstance(effect, Transmit) and not isinstance(decode(effect.data, node), Frame):
                self.bag.append(Word(node, effect.peer, effect.data))

    def hear(self, node: Node, *peers: Node) -> None:
        """Of each of these it gets an empty frame that acknowledges all that it has to say now."""
        for peer in peers:
            link = self.com[node].links.get(peer)
            if link is not None:
                self.step(node, Writable(peer))
            last = link.last if link is not None else 0
            self.step(node, Arrived(peer, encode(Frame(peer, 1, 0, last, 0, 1))))

    def tick(self, *nodes: Node, later: float = 0.0) -> None:
        self.now += later
        for node in nodes or tuple(self.com):
            self.step(node, Tick())

    def attempt(self, node: Node, without: Node) -> None:
        """The node wants this member out, and it is its turn to try."""
        self.step(node, Evict(without))
        self.tick(node)
        self.tick(node, later=LATE * len(FIVE))
        assert self.com[node].member.attempt is not None

    def pass_on(self, which: Callable[[Word], bool] = lambda word: True) -> int:
        """Words that are in the bag now arrive, if they are of this sort; the others stay. How many?"""
        now = [w for w in self.bag if which(w)]
        self.bag = [w for w in self.bag if not which(w)]
        for word in now:
            self.arrive(word)
        return len(now)

    def run(self, which: Callable[[Word], bool] = lambda word: True) -> None:
        """They arrive, and what is said about them, too."""
        for _ in range(1000):
            if not self.pass_on(which):
                return
        raise AssertionError("they never stop talking")

    def arrive(self, word: Word) -> None:
        if word.target in self.com:
            self.step(word.target, Arrived(word.source, word.data))

    def said(self, kind: type[Any]) -> list[Word]:
        return [w for w in self.bag if isinstance(w.word, kind)]

    def views(self, node: Node) -> list[View]:
        return [e.view for e in self.heard[node] if isinstance(e, Installed)]

    def out(self, node: Node) -> bool:
        return any(isinstance(e, Out) for e in self.heard[node])


def of(kind: type[Any], *targets: Node) -> Callable[[Word], bool]:
    return lambda word: isinstance(word.word, kind) and (not targets or word.target in targets)


def but(*kinds: type[AnyWord]) -> Callable[[Word], bool]:
    return lambda word: not isinstance(word.word, kinds)
