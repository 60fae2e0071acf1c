"""One seed, one run, one verdict."""

from random import Random

import msgspec

from framework.sim.actors import Actors, placements
from framework.sim.oracle import judge
from framework.sim.program import Program, random_shape
from framework.sim.verdict import Verdict, Violation
from framework.sim.world import NO_FAULTS, Faults, World
from framework.trace.files import Trace


class Options(msgspec.Struct, frozen=True):
    """What the seed does not choose."""

    shape: dict[str, object] = {}  # fields of program.Shape
    faults: bool = True


class Run(msgspec.Struct):
    seed: int
    verdict: Verdict
    traces: list[Trace]
    world: World


def random_faults(seed: str) -> Faults:
    chance = Random(f"{seed}/faults")
    if chance.random() < 0.25:
        return NO_FAULTS
    return Faults(
        loss=chance.choice([0.0, 0.05, 0.2]),
        duplication=chance.choice([0.0, 0.1]),
        reorder=chance.random() < 0.5,
        cuts=chance.choice([0, 0, 1, 2]),
        pauses=chance.choice([0, 0, 1, 2]),
        slow=chance.choice([0, 0, 1]),
    )


def build(seed: int, options: Options | None = None) -> World:
    """The world of a seed, not yet run."""
    options = options or Options()
    text = str(seed)
    program = Program(text, random_shape(text, options.shape))
    faults = random_faults(text) if options.faults else NO_FAULTS
    world = World(text, program.nodes, placements(program), faults)
    Actors(world, program)
    return world


def run(seed: int, options: Options | None = None) -> Run:
    world = build(seed, options)
    drained = world.run()
    verdict = judge(world.traces())
    if not drained and not any(v.rule == "A8" for v in verdict.violations):
        verdict.violations.append(Violation("A8", f"the run did not come to an end by time {world.now:.0f}"))
    return Run(seed, verdict, world.traces(), world)
