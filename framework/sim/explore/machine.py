"""All states that a scenario can come to, and what leads from one to the next, without doing anything twice.

A node is a function of its own events (framework.sim.explore.stepper). So what it does after a *local history* is done
once, by the real com layer, and looked up ever after. A state of the whole is one local history of each node and what
is on its way between them; two orders of events that no node can tell apart lead to the same state. So whoever visits
each state once has tried every order.

What is on its way: frames, in the order of each link; and items of state transfer, in an order of their own. A crash
loses what is on its way to the node, and of each link from it everything after some frame: each number is a choice.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from framework.com.messages import Frame
from framework.com.view import View
from framework.com.words import decode
from framework.ids import Node
from framework.sim.explore.scenario import Scenario
from framework.sim.explore.stepper import Event, Stepper, traces
from framework.trace.files import Trace
from framework.trace.record import Header, Record, line

_POOL: Final = 2048  # nodes that are kept as they are, to go on from there


class Choice(NamedTuple):
    """One step of a schedule: what happens at which node. ``way``: the channel it comes from; -1 if from none."""

    node: int
    event: Event
    way: int = -1


class State(NamedTuple):
    """Hashed as a whole: one local history of each node, what each channel holds, and what has been lost so far."""

    histories: tuple[int, ...]
    ways: tuple[tuple[int, ...], ...]
    crashed: int = 0
    lost: int = 0


Told = tuple[Header | Record, ...]


class End(NamedTuple):
    """How a node is when a run ends with it."""

    over: bool  # everything here has come to its end
    trace: int  # the number of all that it has told
    told: Told  # its last records
    view: View | None  # None: it is no member
    life: int


class History:
    """What one node has lived through: its events, and what came of the last one."""

    __slots__ = ("down", "enabled", "end", "event", "following", "parent", "told", "trace")

    def __init__(
        self, i: int, parent: "History | None", event: Event, stepper: Stepper, told: Told, trace: int
    ) -> None:
        self.parent = parent
        self.trace = trace  # the number of all that was told so far: histories may tell the same
        self.event = event
        self.enabled = [Choice(i, event) for event in stepper.enabled()]
        self.down = stepper.down
        self.told = told
        self.end: End | None = None  # if the run ended here; not looked at yet
        self.following: dict[Event, tuple[int, tuple[tuple[int, int], ...]]] = {}


class Machine:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.nodes = scenario.nodes
        self.choices_of = scenario.choices
        count = len(self.nodes)
        pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
        self.ways = [*pairs, *pairs]  # links, then ways of state transfer
        self.links = len(pairs)
        self._way = {pair: k for k, pair in enumerate(pairs)}
        self._index = {name: i for i, name in enumerate(self.nodes)}
        self.items: list[tuple[object, ...]] = []
        self._empty: list[bool] = []  # frames that carry no message: in the fair end alone they are not lost
        self._numbers: dict[tuple[object, ...], int] = {}
        self.histories: list[list[History]] = []
        self._pool: dict[tuple[int, int], Stepper] = {}
        self._arrivals: dict[tuple[int, int], Choice] = {}
        self._traces: dict[tuple[int, int, bytes], int] = {}
        self.steps = 0  # that were really done
        for i, name in enumerate(self.nodes):
            stepper = Stepper(scenario, name)
            self.histories.append([])
            self._add(i, None, (), stepper)

    @property
    def initial(self) -> State:
        return State((0,) * len(self.nodes), ((),) * len(self.ways))

    # what may happen

    def choices(self, state: State) -> list[Choice]:
        """Arrivals first, then what happens at the nodes, then what goes wrong."""
        out = [self._arrival(way, items[0]) for way, items in enumerate(state.ways) if items]
        here = [self.histories[i][k] for i, k in enumerate(state.histories)]
        for history in here:
            out += history.enabled
        if state.lost < self.choices_of.losses:
            for way in range(self.links):
                if state.ways[way]:
                    source, target = self.ways[way]
                    out.append(Choice(target, ("loses", self.nodes[source]), way))
        if state.crashed < self.choices_of.most:
            for name in self.choices_of.crashes:
                i = self._index[name]
                if not here[i].down:
                    out += [Choice(i, ("crashes", *kept)) for kept in self._kept(state, i)]
        return out

    def _arrival(self, way: int, item: int) -> Choice:
        found = self._arrivals.get((way, item))
        if found is None:
            source, target = self.ways[way]
            word = "takes" if way < self.links else "gets"
            found = self._arrivals[way, item] = Choice(target, (word, self.nodes[source], item), way)
        return found

    def _kept(self, state: State, node: int) -> Iterator[tuple[int, ...]]:
        """How many frames of each link from a node may still arrive when it crashes."""
        lengths = [len(state.ways[way]) for way in range(self.links) if self.ways[way][0] == node]
        yield from _prefixes(tuple(lengths))

    def next(self, state: State, choice: Choice, fair: bool = False) -> State:
        """The state after a choice. ``fair``: frames without messages are delivered, too."""
        i, event, way = choice
        histories, ways, crashed, lost = state
        word = event[0]
        left = list(ways)
        if word == "loses":
            left[way] = left[way][1:]
            return State(histories, tuple(left), crashed, lost + 1)
        if word == "crashes":
            left = self._cut(left, i, event[1:])
            event, crashed = ("crashes",), crashed + 1
        new, sent = self._follow(i, histories[i], event)
        if way >= 0:
            left[way] = left[way][1:]
        for to, item in sent:
            target = self.ways[to][1]
            down = self.histories[target][histories[target]].down
            if not down and (fair or not self._empty[item]):
                left[to] = (*left[to], item)
        if self.histories[i][new].down:
            left = [() if target == i else items for (_, target), items in zip(self.ways, left, strict=True)]
        return State((*histories[:i], new, *histories[i + 1 :]), tuple(left), crashed, lost)

    def _cut(self, ways: list[tuple[int, ...]], node: int, kept: Sequence[int]) -> list[tuple[int, ...]]:
        out, numbers = list(ways), iter(kept)
        for way, (source, _) in enumerate(self.ways):
            if source == node:
                out[way] = ways[way][: next(numbers)] if way < self.links else ()
        return out

    # nodes

    def _follow(self, i: int, k: int, event: Event) -> tuple[int, tuple[tuple[int, int], ...]]:
        """The history after this event, and what left the node: ways and items."""
        history = self.histories[i][k]
        known = history.following.get(event)
        if known is not None:
            return known
        stepper = self._at(i, k)
        self.steps += 1
        sent = []
        for to, item in stepper.apply(self.real(event)):
            way = self._way[i, self._index[to]] + (0 if item[0] == "frame" else self.links)
            sent.append((way, self._number(item, i)))
        found = history.following[event] = self._add(i, history, event, stepper), tuple(sent)
        return found

    def _add(self, i: int, parent: History | None, event: Event, stepper: Stepper) -> int:
        told, k = tuple(stepper.told), len(self.histories[i])
        stepper.told.clear()
        trace = self._trace(i, parent.trace if parent is not None else -1, told)
        self.histories[i].append(History(i, parent, event, stepper, told, trace))
        self._keep(i, k, stepper)
        return k

    def _trace(self, i: int, before: int, told: Told) -> int:
        """The number of a trace that goes on with this."""
        key = i, before, b"".join(map(line, told))
        return self._traces.setdefault(key, len(self._traces)) if told else before

    def real(self, event: Event) -> Event:
        """The event with the item itself instead of its number, as a node takes it."""
        return (*event[:2], self.items[event[2]]) if event[0] in ("takes", "gets") else event

    def _number(self, item: tuple[object, ...], source: int) -> int:
        number = self._numbers.get(item)
        if number is None:
            number = self._numbers[item] = len(self.items)
            self.items.append(item)
            self._empty.append(item[0] == "frame" and is_empty(item, self.nodes[source]))
        return number

    def _keep(self, i: int, k: int, stepper: Stepper) -> None:
        self._pool[i, k] = stepper
        if len(self._pool) > _POOL:
            del self._pool[next(iter(self._pool))]

    def _at(self, i: int, k: int) -> Stepper:
        """Take a node with this history, to go on with it or to give it back with ``_keep``."""
        stepper = self._pool.pop((i, k), None)
        if stepper is not None:
            return stepper
        events, history = [], self.histories[i][k]
        while history.parent is not None:
            events.append(history.event)
            history = history.parent
        stepper = Stepper(self.scenario, self.nodes[i])
        for event in reversed(events):
            stepper.apply(self.real(event))
            self.steps += 1
        stepper.told.clear()
        return stepper

    # the end

    def finish(self, state: State, note: Callable[[Choice], None] = lambda choice: None) -> tuple[State, bool]:
        """A fair end: everything arrives, time passes everywhere. Does all come to its end by that? ``note`` is told
        what happens."""
        for turn in range(self.scenario.rounds + 1):
            if turn:
                for i, k in enumerate(state.histories):
                    if not self.histories[i][k].down:
                        note(passes := Choice(i, ("passes",)))
                        state = self.next(state, passes, True)
            state = self._drain(state, note)
            if self._is_over(state):
                return state, True
        return state, False

    def _drain(self, state: State, note: Callable[[Choice], None]) -> State:
        usual = ("takes", "gets", "client", "ends", "sends")
        while True:
            choice = next((c for c in self.choices(state) if c.event[0] in usual), None)
            if choice is None:
                return state
            note(choice)
            state = self.next(state, choice, True)

    def _is_over(self, state: State) -> bool:
        return all(self._end(i, k).over for i, k in enumerate(state.histories))

    def _end(self, i: int, k: int) -> End:
        """What would be if the run ended here."""
        history = self.histories[i][k]
        if history.end is None:
            stepper = self._at(i, k)
            lives = stepper.com.lives if stepper.com is not None else None
            over, count = stepper.is_over(), stepper.recorder.count
            stepper.stop()
            stepper.recorder.count = count
            told = tuple(stepper.told)
            stepper.told.clear()
            view, life = (lives.view, lives.mine) if lives is not None else (None, 0)
            history.end = End(over, self._trace(i, history.trace, told), told, view, life)
            self._keep(i, k, stepper)
        return history.end

    def told(self, state: State) -> tuple[int, ...]:
        """The numbers of all traces, if the run ends here: equal ones need be judged once."""
        return tuple([self._end(i, k).trace for i, k in enumerate(state.histories)])

    def keeps_majority(self, state: State) -> bool:
        """Is a majority of the newest view still there? Else nobody can decide anything."""
        ends = [(name, self._end(i, k)) for i, (name, k) in enumerate(zip(self.nodes, state.histories, strict=True))]
        newest = max((end.view for _, end in ends if end.view is not None), key=lambda v: v.version, default=None)
        if newest is None:
            return False
        living = [name for name, end in ends if end.view is not None and newest.life(Node(name)) == end.life]
        return len(living) >= newest.majority

    def traces(self, state: State, stopped: bool = True) -> list[Trace]:
        """What the nodes have written down. ``stopped``: the run is over."""
        out: list[Trace] = []
        for i, k in enumerate(state.histories):
            parts, history = [], self.histories[i][k]
            at: History | None = history
            while at is not None:
                parts.append(at.told)
                at = at.parent
            told = [record for part in reversed(parts) for record in part]
            if stopped:
                told += self._end(i, k).told
            out += traces(told)
        return out


@lru_cache(4096)
def _prefixes(lengths: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    if not lengths:
        return ((),)
    return tuple((n, *rest) for n in range(lengths[0] + 1) for rest in _prefixes(lengths[1:]))


def is_empty(item: Sequence[object], source: str) -> bool:
    """Is this a frame that carries no message?"""
    assert isinstance(item[1], bytes)
    frame = decode(item[1], Node(source))
    return isinstance(frame, Frame) and not frame.messages
