"""Options that users write as text: read here, so that a mistake is one line that says what to write instead."""

from pathlib import Path

from framework.errors import BadRequest


def whole(option: str, text: str | None, least: int, most: int) -> int | None:
    """A whole number within bounds; None if the option was not given."""
    if text is None:
        return None
    value = _int(text)
    if value is None or not least <= value <= most:
        raise BadRequest(f"{option} {text}: write a whole number from {least} to {most}")
    return value


def share(option: str, text: str | None) -> float | None:
    """``0.3`` and ``30%`` are the same; None if the option was not given."""
    if text is None:
        return None
    percent = text.endswith("%")
    try:
        value = float(text.removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        hint = f"; did you mean {text}%?" if not percent and 1.0 < value <= 100.0 else ""
        raise BadRequest(f"{option} {text}: write a share from 0 to 1, for example 0.3 or 30%{hint}")
    return value


def moment(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise BadRequest(f"{option} {text}: write a time, for example 12.5")
    return value


def seeds(one: str | None, many: str | None) -> range:
    """``--seed 7``, or ``--seeds 0:500``: from 0 on, 500 not included. 0:100 without any."""
    if one is not None and many is not None:
        raise BadRequest("--seed and --seeds: give one of them")
    if one is not None:
        value = _int(one)
        if value is None or value < 0:
            raise BadRequest(f"--seed {one}: write one whole number, for example --seed 7 (--seeds 0:500 for many)")
        return range(value, value + 1)
    first, colon, last = ("0:100" if many is None else many).partition(":")
    start, end = _int(first), _int(last)
    if not colon or start is None or end is None or start < 0:
        raise BadRequest(f"--seeds {many}: write FIRST:LAST, for example --seeds 0:500 (500 not included)")
    if end <= start:
        raise BadRequest(f"--seeds {many} holds no seed: the second number must be higher than the first")
    return range(start, end)


def new_file(option: str, text: str | None) -> Path | None:
    """A file to write: fails before the work is done, not after it."""
    if text is None:
        return None
    path = Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise BadRequest(f"{option} {text}: not a file that can be written; name one in a directory that exists")
    return path


def new_directory(option: str, text: str | None) -> Path | None:
    if text is None:
        return None
    path = Path(text)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequest(f"{option} {text}: cannot make this directory: {error.strerror}") from None
    return path


def _int(text: str) -> int | None:
    if not text.removeprefix("-").isdecimal() or len(text) > 18:
        return None
    return int(text)
