"""What a statement gives (stand-in until the engine is merged)."""

from typing import Any

import msgspec


class Result(msgspec.Struct, frozen=True):
    columns: list[str] = []
    rows: list[tuple[Any, ...]] = []
    rowcount: int = -1
    lastrowid: int | None = None
