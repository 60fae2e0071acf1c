"""``obo sim --seed 7 --shrink``: the world of a seed with a violation, made small. See docs/sim.md."""

import shlex
import time
from contextlib import nullcontext
from pathlib import Path

from rich.console import Console
from rich.status import Status

from framework.errors import BadRequest
from framework.sim.run import Options
from framework.sim.shrink import Replay, Shrinking, attempt, of_replay, size, write

OUT = Path("out/sim")


def run(seed: int, options: Options, file: Path | None) -> int:
    """The exit code: 1, for a violation is found, or 130 when interrupted. The smallest world so far is written."""
    console = Console(stderr=True)
    began = time.monotonic()
    with Status(f"seed {seed}", console=console) if console.is_terminal else nullcontext() as status:
        shrinking = Shrinking(seed, options)
        if status is not None:
            shrinking.tell = lambda s: status.update(f"seed {seed}: {s.runs} runs, left: {size(s.best)}")
        try:
            shrinking.run()
            ended = ""
        except KeyboardInterrupt:
            ended = "interrupted, "
    replay = shrinking.replay()
    path = file or OUT / f"{seed}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, replay)
    except OSError as error:
        raise BadRequest(f"--save {path}: {error.strerror}") from None
    print(f"seed {seed}: {replay.violation}")
    print(f"  drawn: {size(shrinking.first)}")
    print(f"  {ended}left: {size(shrinking.best)}, after {shrinking.runs} runs, {time.monotonic() - began:.1f} s")
    for name, meaning in replay.left.items():
        print(f"    {name}: {meaning}" if meaning else f"    {name}")
    print(f"  replay: {shlex.join(['obo', 'sim', '--replay', str(path)])}", flush=True)
    return 130 if ended else 1


def compared(replay: Replay) -> str:
    """Say whether the world in a replay file still runs as it did; the code may have changed since."""
    if attempt(replay.seed, of_replay(replay)).digest == replay.trace:
        return "the same trace as when the file was written"
    return f"another trace than when the file was written, with {replay.violation}"
