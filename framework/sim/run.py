"""One seed, one run, one verdict."""

from random import Random
from typing import Literal

import msgspec

from framework.sim.actors import Actors, placements
from framework.sim.left import Left
from framework.sim.oracle import judge
from framework.sim.program import Program, random_shape
from framework.sim.verdict import Verdict, Violation, together
from framework.sim.world import NO_FAULTS, Faults, World
from framework.trace.files import Trace

#: none; what wires and pauses do; what happens to the group while all else is punctual (A9); everything; and everything
#: in a world whose nodes all lose all that they have, once or twice, while clients go on
Level = Literal["none", "links", "group", "all", "wiped"]

#: A9: who waits for a suspicion takes 120 and more. An agreement takes some 30; why calls of the seeds 505 and 566 took
#: 87 and 74 (--faults group) is not known yet, so a shorter stop than this is not noticed.
NO_STOP = 110.0


class Options(msgspec.Struct, frozen=True):
    """What the seed does not choose."""

    shape: dict[str, object] = {}  # fields of program.Shape
    faults: Level = "links"
    left: tuple[str, ...] | None = None  # of the world that the seed has drawn (framework.sim.left); None: all


class Run(msgspec.Struct):
    seed: int
    verdict: Verdict
    traces: list[Trace]
    world: World


def random_faults(seed: str, level: Level = "links") -> Faults:
    if level == "none":
        return NO_FAULTS
    chance = Random(f"{seed}/faults")
    links = NO_FAULTS
    if chance.random() >= 0.25:
        links = Faults(
            loss=chance.choice([0.0, 0.05, 0.2]),
            duplication=chance.choice([0.0, 0.1]),
            reorder=chance.random() < 0.5,
            cuts=chance.choice([0, 0, 1, 2]),
            pauses=chance.choice([0, 0, 1, 2]),
            slow=chance.choice([0, 0, 1]),
        )
    if level == "links":
        return links
    dark = Random(f"{seed}/blackouts")
    everything = _with_members(NO_FAULTS if level == "group" else links, Random(f"{seed}/members"), dark)
    if level == "wiped":
        return msgspec.structs.replace(everything, wipes=Random(f"{seed}/wipes").choice([1, 1, 2]))
    return _punctual(everything) if level == "group" else everything


def _with_members(links: Faults, chance: Random, dark: Random) -> Faults:
    """In one of ten worlds a majority may be lost."""
    havoc = chance.random() < 0.1
    drawn = msgspec.structs.replace(
        links,
        crashes=chance.choice([0, 1, 1, 2, 3]),
        late=chance.choice([0, 0, 0, 1]),
        leaves=chance.choice([0, 0, 1, 2]),
        evicts=chance.choice([0, 0, 0, 1]),
        partitions=chance.choice([0, 0, 1, 2]),
        freezes=chance.choice([0, 0, 1]),
        lags=chance.choice([0, 0, 1]),
        havoc=havoc,
    )
    return msgspec.structs.replace(drawn, crashes=5, blackouts=dark.choice([0, 1, 3])) if havoc else drawn


def _punctual(faults: Faults) -> Faults:
    return msgspec.structs.replace(
        faults, partitions=0, freezes=0, lags=0, havoc=False, blackouts=0, crashes=min(faults.crashes, 3)
    )


def build(seed: int, options: Options | None = None, left: Left | None = None) -> World:
    """The world of a seed, not yet run. ``left``: instead of what the options say is left of it."""
    options = options or Options()
    left = left or Left(options.left)
    text = str(seed)
    program = Program(text, random_shape(text, options.shape, options.faults in ("group", "all", "wiped")), left)
    faults, shape = random_faults(text, options.faults), program.shape
    if shape.uneven or shape.horizon:
        uneven = bool(shape.uneven) and not faults.punctual
        faults = msgspec.structs.replace(faults, uneven=uneven, horizon=shape.horizon)
    world = World(text, program.nodes, placements(program), faults, left)
    Actors(world, program)
    return world


def run(seed: int, options: Options | None = None) -> Run:
    return judged(seed, build(seed, options))


def judged(seed: int, world: World) -> Run:
    """Run this world to its end."""
    drained = world.run()
    verdict = judge(world.traces(), no_stop=NO_STOP if world.faults.punctual else None, outbox=True)
    for traces in world.earlier:
        verdict = together(judge(traces, outbox=True), verdict)
    if not drained:  # what else is wrong may well come from that
        verdict.violations.insert(0, Violation("A8", f"the run did not come to an end by time {world.now:.0f}"))
    return Run(seed, verdict, world.traces(), world)
