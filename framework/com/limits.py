"""How much may wait at a node."""

import msgspec

WAITING, BEHIND, BYTES = 2048, 100_000, 256 << 20


class Limits(msgspec.Struct, frozen=True):
    queued: int = 8192  # messages waiting for one peer before client calls wait
    backlog: int = 8192  # client calls that wait before further ones are refused
    waiting: int = WAITING  # requests that wait at a replica before clients are held back
    behind: int = BEHIND  # and those that another replica has not performed, for it waits for its state
    bytes: int = BYTES  # of all these
