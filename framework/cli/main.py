"""What the ``obo`` script calls. It imports next to nothing, so that Ctrl-C is dealt with from the beginning on."""

import os

try:
    from framework import interrupt
except KeyboardInterrupt:
    os._exit(130)


def main() -> None:
    with interrupt.command():
        from framework.cli import commands

        interrupt.interruptible()
        commands.main()


if __name__ == "__main__":
    main()
