"""The settings of a run: read from options and files, checked before anything starts, written into ``run.toml``."""

import tomllib
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import msgspec

from framework.declare.suggest import did_you_mean
from framework.errors import BadRequest
from framework.orb.as_json import receipt_named

MOST_CLIENTS, MOST_PROCESSES = 4096, 64
WAYS = ("ucast", "mcast", "pcast")


class Plan(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What a file may say, and options, too. Times are in seconds, shares from 0 to 1."""

    workload: str
    seed: int = 1
    rate: float = 0.0  # calls in a second by all clients (open loop); 0: each client makes one after the other
    arrivals: Literal["even", "poisson"] = "even"  # open loop: how the calls are spread
    clients: int = 8  # sessions with the cluster, over all processes
    processes: int = 1
    ramp: float = 0.0  # the rate grows, or clients join one after the other
    warmup: float = 1.0  # after that, before what counts
    duration: float = 10.0  # of what counts
    conflict: tuple[float, ...] = (0.0,)  # share of calls that conflict; several: one after the other, equally long
    reads: float = 0.1  # share of the others that only read
    keys: int = 1000
    skew: float = 0.0  # s of Zipf's law; 0: all keys alike
    ucast: float | None = None  # shares; if one is given, those that are not are what is left
    mcast: float | None = None
    pcast: float | None = None
    oneway: float = 0.0  # share of calls without a result that are sent one-way
    receipt: str = ""  # majority, all, first or a number; empty: what the framework chooses
    payload: int = 0  # bytes
    timeout: float = 10.0  # of each call
    in_flight: int = 4096  # calls under way at most, over all processes
    step: int = 10  # fig9: percent between two conflict ratios
    seeds: int = 2  # fig9: runs for each point

    @property
    def open(self) -> bool:
        return self.rate > 0

    @property
    def scripted(self) -> bool:
        """It ends when all is done, not after a time."""
        return self.workload == "fig9"

    @property
    def before(self) -> float:
        """Seconds before what counts."""
        return 0.0 if self.scripted else self.ramp + self.warmup

    @property
    def total(self) -> float:
        return self.before + self.duration

    def conflict_at(self, seconds: float) -> float:
        """The conflict ratio at that time since the start."""
        if len(self.conflict) == 1:
            return self.conflict[0]
        step = int((seconds - self.before) / self.duration * len(self.conflict))
        return self.conflict[min(max(step, 0), len(self.conflict) - 1)]

    @property
    def ways(self) -> tuple[float, float, float] | None:
        """Shares of ucast, mcast and pcast; None: as the framework chooses."""
        given = (self.ucast, self.mcast, self.pcast)
        if all(share is None for share in given):
            return None
        left = 1.0 - sum(share or 0.0 for share in given)
        open_ = sum(share is None for share in given)
        filled = [left / open_ if share is None else share for share in given]
        return filled[0], filled[1], filled[2]


def read(path: Path) -> dict[str, Any]:
    """The settings in a file; BadRequest names file and entry."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadRequest(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadRequest(f"{path}: {error}") from None
    for name in found:
        if name not in Plan.__struct_fields__:
            raise BadRequest(f"{path}: no setting {name!r}; {did_you_mean(name, Plan.__struct_fields__)}")
    if "workload" not in found:
        raise BadRequest(f'{path}: no workload: write, for example, workload = "bank"')
    if isinstance(found.get("conflict"), int | float):
        found["conflict"] = [found["conflict"]]
    return found


def plan(settings: dict[str, Any], where: str = "obo load") -> Plan:
    try:
        made = msgspec.convert(settings, Plan)
    except msgspec.ValidationError as error:
        raise BadRequest(f"{where}: {error}") from None
    check(made)
    return made


#: Setting: least, most.
_BOUNDS: dict[str, tuple[float, float]] = {
    "rate": (0, 1_000_000),
    "clients": (1, MOST_CLIENTS),
    "processes": (1, MOST_PROCESSES),
    "ramp": (0, 86_400),
    "warmup": (0, 86_400),
    "duration": (0.1, 7 * 86_400),
    "reads": (0, 1),
    "keys": (1, 10_000_000),
    "skew": (0, 10),
    "ucast": (0, 1),
    "mcast": (0, 1),
    "pcast": (0, 1),
    "oneway": (0, 1),
    "payload": (0, 16 << 20),
    "timeout": (0.01, 3600),
    "in_flight": (1, 1_000_000),
    "step": (1, 100),
    "seeds": (1, 100),
}


def check(made: Plan) -> None:
    """BadRequest at what is out of bounds, or contradicts something else."""
    for name, (least, most) in _BOUNDS.items():
        value = getattr(made, name)
        if value is not None and not (isfinite(value) and least <= value <= most):
            raise BadRequest(f"{name} = {value:g}: from {least:g} to {most:g}")
    if not made.conflict or not all(0 <= c <= 1 for c in made.conflict):
        raise BadRequest("conflict: shares from 0 to 1, for example 0.2, or 0,0.5,1 for one after the other")
    if made.processes > made.clients:
        raise BadRequest(f"{made.processes} processes for {made.clients} clients: each needs one at least")
    if made.in_flight < made.processes:
        raise BadRequest(f"in_flight = {made.in_flight}: {made.processes} processes need one each at least")
    if made.arrivals != "even" and not made.open:
        raise BadRequest(f"arrivals = {made.arrivals!r} is for an open loop: give a rate, too")
    given = [share for way in WAYS if (share := getattr(made, way)) is not None]
    if sum(given) > 1 + 1e-9 or (len(given) == 3 and sum(given) < 1 - 1e-9):
        raise BadRequest(f"ucast, mcast and pcast are {sum(given):g} together: they are shares of all calls, 1 in all")
    if made.oneway == 1 and made.receipt:
        raise BadRequest("oneway = 1 and a receipt: a one-way call is never received; give one of them")
    receipt_named(made.receipt)
