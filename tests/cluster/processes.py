"""Nodes as processes: started by ``obo serve``, always ended. Waits are for something to happen, and bounded."""

import os
import queue
import signal
import subprocess
import threading
import time
from contextlib import contextmanager

from framework.orb.config import parse
from tests.cli.run_obo import COMMAND, surroundings
from tests.orb.cluster import OBJECTS, toml

WAIT = 60.0  # far longer than anything takes, also where the machine is busy


class Process:
    def __init__(self, name, config, trace):
        words = [*COMMAND, "serve", "--node", name, "--config", str(config), "--trace", str(trace)]
        pipe = subprocess.PIPE
        self.name = name
        self.process = subprocess.Popen(words, env=surroundings(), stdout=pipe, stderr=pipe, encoding="utf-8")
        self.said = queue.Queue()
        self.log = []
        self._threads = [
            threading.Thread(target=self._listen, args=(self.process.stdout, self.said.put), daemon=True),
            threading.Thread(target=self._listen, args=(self.process.stderr, self.log.append), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _listen(self, stream, take):
        for line in stream:
            take(line.rstrip())

    def says(self, words):
        try:
            line = self.said.get(timeout=WAIT)
        except queue.Empty:
            raise AssertionError(f"{self.name} does not say {words!r}: {self.log}") from None
        assert words in line, (line, self.log)

    def hears(self, words):
        """Wait for a line of the log."""
        end = time.monotonic() + WAIT
        while not any(words in line for line in self.log):
            assert time.monotonic() < end, self.log
            time.sleep(0.01)

    def send(self, number):
        os.kill(self.process.pid, number)

    def wait(self):
        return self.process.wait(WAIT)


class Processes:
    def __init__(self, ports, directory, objects):
        text = toml(ports, objects)
        self.config = directory / "cluster.toml"
        self.config.write_text(text)
        self.addresses = dict(parse(text).addresses)
        self.trace = directory / "trace"
        self.nodes = {name: Process(name, self.config, self.trace) for name in self.addresses}

    def ready(self):
        for process in self.nodes.values():
            process.says("is ready")

    def at(self, *names):
        return ",".join(self.addresses[n] for n in names)

    def stop(self):
        """As people do: SIGTERM to all, then everything drains."""
        alive = [p for p in self.nodes.values() if p.process.poll() is None]
        for process in alive:
            process.send(signal.SIGTERM)
        for process in alive:
            assert process.wait() == 0, process.log
            process.says("has stopped")

    def kill(self, name):
        self.nodes[name].send(signal.SIGKILL)
        self.nodes[name].wait()

    def end(self):
        for process in self.nodes.values():
            if process.process.poll() is None:
                process.process.kill()
            process.process.wait(WAIT)


@contextmanager
def processes(ports, directory, objects=OBJECTS):
    made = Processes(ports, directory, objects)
    try:
        made.ready()
        yield made
    finally:
        made.end()
