"""Presses Ctrl-C at a moment that a test names: for ``test_ctrl_c.py``, which puts this directory on the path.

``OBO_PRESS=ROLE:EVENT:COUNTS``: the command, or any child of it (ROLE is command or child), presses when it does the
n-th thing of a kind (EVENT is an audit event of Python, any, or exit), for each n of COUNTS; or n milliseconds after it
has begun (delay). As a terminal does, it sends SIGINT to the whole foreground group. What Python does before the first
line of the framework does not count.
"""

import atexit
import os
import signal
import sys
import threading

role, event, counts = os.environ["OBO_PRESS"].split(":")
wanted = [int(n) for n in counts.split(",")]
group = os.getsid(0)  # the command begins a session
seen = 0
begun = role == "child"


def press():
    with open(os.environ["OBO_PRESSED"], "a") as told:
        told.write(f"{role} {os.getpid()}: {event} {seen}\n")
    os.killpg(group, signal.SIGINT)


def later(seconds):
    timer = threading.Timer(seconds, press)
    timer.daemon = True
    timer.start()


def look(name, args):
    global seen, begun
    if not begun:
        begun = name == "import" and args[0] == "framework.interrupt"
        if begun and event == "delay":
            for n in wanted:
                later(n / 1000)
    if begun and name in (event, event == "any" and name):
        seen += 1
        if wanted and seen >= wanted[0]:
            wanted.pop(0)
            press()


if (role == "command") == (group == os.getpid()):
    if event == "exit":
        atexit.register(press)
    else:
        sys.addaudithook(look)
