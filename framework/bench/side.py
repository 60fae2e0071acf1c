"""A process of the benchmark: the server of a baseline, or the client of a system.

python -m framework.bench.side serve grpc              # says its address, ends with its standard input
python -m framework.bench.side client grpc ADDRESS     # takes an Order a line, answers with a Measured a line
"""

import sys
import traceback
from importlib import import_module

import msgspec

from framework.bench.load import Measured, Order


def main(words: list[str]) -> None:
    side = import_module(f"framework.bench.{words[1]}_side")
    if words[0] == "serve":
        address, stop = side.serve()
        _say(address)
        sys.stdin.read()
        stop()
        return
    rows = side.rows(words[2])
    _say("ready")
    for line in sys.stdin:
        order = msgspec.json.decode(line, type=Order)
        try:
            answer = rows[order.row](order)
        except Exception as error:
            traceback.print_exc()
            answer = Measured(error=f"{type(error).__name__}: {error}")
        _say(msgspec.json.encode(answer).decode())


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
