"""What ``obo load`` and its client processes say to each other: one line of JSON each."""

from typing import Any

import msgspec

from framework.load.found import Found
from framework.load.plan import Plan


class Order(msgspec.Struct):
    """To a process, first: all it needs to know. Then ``go TIME`` (unix seconds), perhaps ``stop``."""

    plan: Plan
    process: int
    addresses: list[str]
    found: Found
    out: str  # the run directory
    run: str  # a word that makes names of this run differ from those of others
    access: dict[str, Any] = {}
    prefix: str = ""  # of client names, as nodes see them


class Ready(msgspec.Struct, tag="ready"):
    clients: list[str]


class Progress(msgspec.Struct, tag="progress"):
    """Since the last one."""

    calls: int = 0  # that are over
    ok: int = 0
    errors: dict[str, int] = {}
    latency: dict[int, int] = {}  # Latencies.counts, of those that are ok, from when they were due
    run_latency: dict[int, int] = {}  # the same, of what counts: without ramp and warm-up
    run_calls: int = 0
    in_flight: int = 0
    behind: float = 0.0  # seconds that the last call was sent late
    says: str = ""  # what it is doing, if that is to be told


class Done(msgspec.Struct, tag="done"):
    """The last word."""

    records: int
    files: int
    waits: int = 0  # times that records had to wait for the disk
    failed: str = ""
    extra: dict[str, Any] = {}


Said = Ready | Progress | Done
encode = msgspec.json.Encoder().encode
said: msgspec.json.Decoder[Said] = msgspec.json.Decoder(Said)
