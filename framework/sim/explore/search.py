"""Ways through all schedules of a scenario.

``dfs`` visits every state once: every schedule is tried, if it comes to an end. ``delay:K`` tries all schedules that
differ in at most K places from one that always does the first thing that can be done (Emmi, Qadeer, Rakamarić 2011).
``pct:D`` takes random priorities and changes them at D - 1 random points (Burckhardt et al. 2010): it finds a fault
that needs D things in one order with a chance that does not depend on what else there is. The last two complement each
other.
"""

import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final, Literal, NamedTuple

import msgspec

from framework.errors import BadRequest
from framework.sim.explore.judge import Enough, Finding, Judge
from framework.sim.explore.machine import Choice, Machine, State

#: What goes wrong, or need not happen: the last thing to do, and it costs a deviation.
UNUSUAL: Final = ("ticks", "evicts", "vetoes", "cancels", "moves", "loses", "crashes", "returns")
_LOOK: Final = 256  # steps between two looks at the clock


class Strategy(NamedTuple):
    way: Literal["dfs", "delay", "pct"] = "dfs"
    number: int = 0

    def __str__(self) -> str:
        return self.way if self.way == "dfs" else f"{self.way}:{self.number}"


def strategy(text: str) -> Strategy:
    """From what a user writes."""
    way, colon, number = text.partition(":")
    if way == "dfs" and not colon:
        return Strategy()
    if way in ("delay", "pct") and number.isdecimal() and len(number) < 4 and int(number) >= (way == "pct"):
        return Strategy(way, int(number))  # type: ignore[arg-type]
    raise BadRequest(f"--strategy {text}: write dfs, delay:K or pct:D with a whole number, for example delay:2")


class Report(msgspec.Struct):
    """What a search has seen."""

    strategy: str
    exhausted: bool = False  # there is nothing else to try this way
    seconds: float = 0.0
    steps: int = 0  # of schedules; most of them looked up
    done: int = 0  # steps of single nodes that were really done
    states: int = 0
    schedules: int = 0  # that were tried, or that all the states visited stand for
    distinct: int = 0  # ends, each judged once
    findings: list[Finding] = []


DFS: Final = Strategy()
Tell = Callable[[Report], None]


def explore(
    machine: Machine,
    how: Strategy = DFS,
    seconds: float = 60.0,
    most: int = 1,
    tell: Tell = lambda report: None,
    seed: int = 0,
    limit: int | None = None,
) -> Report:
    """Search until there is nothing left, the time is up, or ``most`` schedules have gone wrong. ``limit``: schedules
    that pct tries, for who wants the same ones each time."""
    judge = Judge(machine, most)
    search: _Search
    if how.way == "pct":
        search = _Pct(machine, judge, how, seconds, tell, seed, limit)
    else:
        search = {"dfs": _Dfs, "delay": _Delay}[how.way](machine, judge, how, seconds, tell)
    try:
        search.report.exhausted = search.run()
    except Enough:
        pass
    search.look()
    return search.report


class _Search:
    def __init__(self, machine: Machine, judge: Judge, how: Strategy, seconds: float, tell: Tell) -> None:
        self.machine = machine
        self.judge = judge
        self.number = how.number
        self.report = Report(str(how), findings=judge.findings)
        self._tell = tell
        self._began = time.perf_counter()
        self._until = self._began + seconds

    def run(self) -> bool:
        """Whether nothing is left to try."""
        raise NotImplementedError

    def look(self) -> bool:
        """Is the time up?"""
        now = time.perf_counter()
        report = self.report
        report.seconds, report.done = now - self._began, self.machine.steps
        report.distinct = self.judge.distinct
        self._tell(report)
        return now > self._until

    def next(self, state: State, choice: Choice, schedule: Callable[[], list[Choice]]) -> State | None:
        """None: the com layer has failed, which is judged."""
        self.report.steps += 1
        try:
            return self.machine.next(state, choice)
        except Exception as error:
            self.judge.failed([*schedule(), choice], error)
            return None


class _Frame:
    """A state on the way of a depth-first search."""

    __slots__ = ("choice", "choices", "schedules", "state", "tried")

    def __init__(self, state: State, choices: list[Choice], choice: Choice | None) -> None:
        self.state = state
        self.choices = choices
        self.choice = choice  # that led here
        self.tried = 0
        self.schedules = 0


class _Dfs(_Search):
    def run(self) -> bool:
        """How many schedules a state stands for is the sum over its choices: counted on the way back."""
        machine, root = self.machine, self.machine.initial
        visited: dict[State, int] = {root: 0}
        stack = [_Frame(root, machine.choices(root), None)]

        def schedule() -> list[Choice]:
            return [frame.choice for frame in stack if frame.choice is not None]

        while stack:
            top = stack[-1]
            if not top.choices:
                top.schedules = 1
                self.judge.look(top.state, schedule)
            if top.tried >= len(top.choices):
                visited[top.state] = top.schedules
                stack.pop()
                if stack:
                    stack[-1].schedules += top.schedules
                continue
            choice = top.choices[top.tried]
            top.tried += 1
            new = self.next(top.state, choice, schedule)
            if new is None:
                continue
            count = visited.get(new)
            if count is not None:
                top.schedules += count
                continue
            visited[new] = 0
            stack.append(_Frame(new, machine.choices(new), choice))
            if self.report.steps % _LOOK == 0:
                self.report.states, self.report.schedules = len(visited), sum(f.schedules for f in stack)
                if self.look():
                    return False
        self.report.states, self.report.schedules = len(visited), visited[root]
        return True


_Path = tuple[Choice, "_Path"] | tuple[()]


def _unrolled(path: _Path) -> list[Choice]:
    out: list[Choice] = []
    while path:
        out.append(path[0])
        path = path[1]
    return out[::-1]


def thread(choice: Choice) -> object:
    """What goes on by itself: a link, or one thing that a node may do."""
    if choice.way >= 0 and choice.event[0] != "loses":
        return choice.way
    return choice.node, choice.event[0], choice.event[1] if choice.event[1:] and choice.event[0] != "crashes" else ""


class _Delay(_Search):
    def run(self) -> bool:
        """A deviation keeps the thread whose turn it is back until nothing else can go on; or does something
        unusual, which comes last otherwise, and crashes and losses never."""
        machine = self.machine
        seen: dict[tuple[State, tuple[object, ...]], int] = {}
        todo: list[tuple[State, tuple[object, ...], int, _Path]] = [(machine.initial, (), self.number, ())]
        while todo:
            state, kept, left, path = todo.pop()
            while seen.get((state, kept), -1) < left:
                seen[state, kept] = left
                schedule = partial(_unrolled, path)
                every = machine.choices(state)
                usual = [c for c in every if c.event[0] not in UNUSUAL]
                free = [c for c in usual if thread(c) not in kept]
                while usual and not free:
                    kept = kept[1:]
                    free = [c for c in usual if thread(c) not in kept]
                if not usual:
                    free = [c for c in every if c.event[0] not in ("crashes", "loses")]
                for choice in every if left else ():
                    if choice.event[0] in UNUSUAL and choice not in free[:1]:
                        other = self.next(state, choice, schedule)
                        if other is not None:
                            todo.append((other, kept, left - 1, (choice, path)))
                if not free:
                    self.report.schedules += 1
                    self.judge.look(state, schedule)
                    break
                if left and len(usual) > 1:
                    todo.append((state, (*kept, thread(free[0])), left - 1, path))
                new = self.next(state, free[0], schedule)
                if new is None:
                    break
                state, path = new, (free[0], path)
                if self.report.steps % _LOOK == 0:
                    self.report.states = len(seen)
                    if self.look():
                        return False
        self.report.states = len(seen)
        return True


class _Pct(_Search):
    def __init__(
        self,
        machine: Machine,
        judge: Judge,
        how: Strategy,
        seconds: float,
        tell: Tell,
        seed: int,
        limit: int | None,
    ) -> None:
        super().__init__(machine, judge, how, seconds, tell)
        self.seed = seed
        self.limit = limit

    def run(self) -> bool:
        longest = 20
        while self.limit is None or self.report.schedules < self.limit:
            longest = max(longest, self._walk(Random(f"{self.seed}/{self.report.schedules}"), longest))
            self.report.schedules += 1
            if self.look():
                break
        return False

    def _walk(self, chance: Random, longest: int) -> int:
        """Try one schedule; return its length. In every other one something unusual has a random step in the place of a
        priority: so it falls into the middle of something."""
        machine, state, path = self.machine, self.machine.initial, list[Choice]()
        priority: dict[object, float] = {}
        due: dict[object, int] = {}
        steps = chance.random() < 0.5
        changes = sorted(chance.randrange(longest) for _ in range(self.number - 1))

        def rank(name: object) -> float:
            if name in due:
                return 2.0 if due[name] <= len(path) else -2.0 * longest
            return priority[name]

        while choices := machine.choices(state):
            threads: dict[object, list[Choice]] = {}
            for choice in choices:
                threads.setdefault(thread(choice), []).append(choice)
            for name, some in threads.items():
                if not steps or some[0].event[0] not in UNUSUAL:
                    priority.setdefault(name, chance.random())
                elif name not in due:
                    due[name] = len(path) + chance.randrange(longest)
            top = max(threads, key=rank)
            while changes and len(path) >= changes[0]:
                changes.pop(0)
                if top not in due:
                    priority[top] = -1.0 - len(path)
                    top = max(threads, key=rank)
            due.pop(top, None)
            choice = chance.choice(threads[top])
            new = self.next(state, choice, lambda: path)
            if new is None:
                return len(path)
            state = new
            path.append(choice)
        self.judge.look(state, lambda: path)
        return len(path)
