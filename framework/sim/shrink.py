"""Shrink a world with a violation until nothing more can be taken away without losing that violation.

Delta debugging on what a seed has drawn (framework.sim.left): clients, faults, habits, calls, nodes and objects are
taken away, first all of a kind, then by halves, at last one by one. A smaller world counts if it breaks the same rule.
A replay file says what is left; ``obo sim --replay FILE`` runs it again.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import msgspec

from framework.errors import BadRequest
from framework.files import put
from framework.sim.batch import CRASH, told
from framework.sim.left import Left
from framework.sim.run import Options, build, judged
from framework.sim.world import World
from framework.trace.record import line

VERSION = 1  # of replay files
_KINDS = ("client", "fault", "habit", "act", "node", "object")  # in this order: what takes most with it comes first
_SHOWN = ("node", "object", "client", "act", "fault", "habit")


class Attempt(msgspec.Struct):
    """What became of a world of which a part is left."""

    broken: dict[str, str]  # what is wrong, by rule: the first violation of each
    left: dict[str, str]  # what the world is made of, with its meaning
    records: int  # of its traces
    digest: str  # of its traces, byte for byte


class Replay(msgspec.Struct, forbid_unknown_fields=True, tag_field="replay", tag="obo sim"):
    """A replay file."""

    version: int
    seed: int
    options: Options
    violation: str
    trace: str  # digest
    left: dict[str, str]


def attempt(seed: int, options: Options) -> Attempt:
    """Run a world, and look what it is made of."""
    left = Left(options.left)
    world: World | None = None
    try:
        world = build(seed, options, left)
        broken: dict[str, str] = {}
        for violation in judged(seed, world).verdict.violations:
            broken.setdefault(violation.rule, str(violation))
    except Exception as error:
        broken = {f"{CRASH} {type(error).__name__}": f"{CRASH}: {told(error)}"}
    records, digest = _traces(world)
    return Attempt(broken, dict(left.seen), records, digest)


def _traces(world: World | None) -> tuple[int, str]:
    digest, count = sha256(), 0
    for traces in [*world.earlier, world.traces()] if world is not None else []:
        for trace in traces:
            digest.update(b"".join([line(trace.header), *map(line, trace.records)]))
            count += 1 + len(trace.records)
    return count, digest.hexdigest()


class Shrinking:
    """``best`` is the smallest world so far, also while ``run`` is at work or has been interrupted."""

    def __init__(self, seed: int, options: Options, tell: Callable[["Shrinking"], None] = lambda s: None) -> None:
        """BadRequest if nothing is wrong in this world."""
        self.seed = seed
        self.options = options
        self.tell = tell
        self.first = self.best = attempt(seed, options)
        self.runs = 1
        self._tried: set[frozenset[str]] = set()
        if not self.best.broken:
            raise BadRequest(f"seed {seed} is clean, there is nothing to shrink: write a seed with a violation")
        self.rule = next(iter(self.best.broken))  # stays broken

    def run(self) -> None:
        """Until nothing can be taken away any more."""
        before: dict[str, str] = {}
        while before != self.best.left:
            before = self.best.left
            for kind in _KINDS:
                self._fewer(kind)

    def _fewer(self, kind: str) -> None:
        many = len(self._of(kind))
        while many:
            at = 0
            while chunk := self._of(kind)[at : at + many]:
                if not self._without(chunk):
                    at += many
            many //= 2

    def _of(self, kind: str) -> list[str]:
        return [name for name in self.best.left if name.partition(" ")[0] == kind]

    def _without(self, names: list[str]) -> bool:
        """Is the same thing still wrong?"""
        left = frozenset(self.best.left) - frozenset(names)
        if left in self._tried:
            return False
        self._tried.add(left)
        found = attempt(self.seed, msgspec.structs.replace(self.options, left=tuple(sorted(left))))
        self.runs += 1
        smaller = self.rule in found.broken
        if smaller:
            self.best = found
        self.tell(self)
        return smaller

    def replay(self) -> Replay:
        best = self.best
        order = sorted(best.left, key=lambda name: _SHOWN.index(name.partition(" ")[0]))
        left = {name: best.left[name] for name in order}
        return Replay(VERSION, self.seed, self.options, best.broken[self.rule], best.digest, left)


def size(found: Attempt) -> str:
    """For people: ``2 nodes, 1 object, 2 clients, 3 acts, 0 faults, 40 records``"""
    kinds = [name.partition(" ")[0] for name in found.left]
    counts = [(kinds.count(kind), kind) for kind in ("node", "object", "client", "act", "fault", "habit")]
    return ", ".join(f"{n} {what}{'' if n == 1 else 's'}" for n, what in [*counts, (found.records, "record")])


def write(path: Path, replay: Replay) -> None:
    put(path, msgspec.json.format(msgspec.json.encode(replay)) + b"\n")


def read(path: Path) -> Replay:
    """BadRequest if it cannot be read, or is of another version."""
    try:
        data = path.read_bytes()
        version = msgspec.json.decode(data, type=_Version).version
        if version != VERSION:
            raise BadRequest(f"--replay {path}: a file of version {version}; this obo reads version {VERSION}")
        return msgspec.json.decode(data, type=Replay)
    except OSError as error:
        raise BadRequest(f"--replay {path}: {error.strerror}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadRequest(f"--replay {path}: no file that obo sim --shrink has written: {error}") from None


class _Version(msgspec.Struct, tag_field="replay", tag="obo sim"):
    version: int


def of_replay(replay: Replay) -> Options:
    """The options that make its world."""
    return msgspec.structs.replace(replay.options, left=tuple(replay.left))
