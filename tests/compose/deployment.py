"""A deployment for a test: what git has of this repository, copied to another place, and ``docker compose`` there."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from framework import OboError, connect
from objects.sql.client import Sql

ROOT = Path(__file__).parents[2]
IMAGES = ("OBO", "OBO_LOAD", "OBO_ANALYTICS", "POSTGRES")
PATIENCE = 180  # seconds; a bound, not a measure
PORTS = ("OBO_N1_PORT", "OBO_N2_PORT", "OBO_N3_PORT", "OBO_N4_PORT", "OBO_P1_PORT", "OBO_P2_PORT", "OBO_P3_PORT")


def no_compose():
    """Why there is no docker compose here; empty if there is one."""
    if shutil.which("docker") is None:
        return "there is no docker command"
    return _fails("there is no docker compose", "compose", "version")


def no_engine():
    """Why no containers can be started here; empty if they can."""
    return no_compose() or _fails("no Docker engine answers", "info")


def _fails(lacks, *words):
    done = subprocess.run(["docker", *words], capture_output=True, encoding="utf-8", check=False)
    return f"{lacks}: {(done.stderr.strip().splitlines() or ['?'])[-1]}" if done.returncode else ""


def free_ports(count):
    holders = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()
    return found


def fresh_clone(to):
    """What a newcomer gets: files that git knows, as they are now."""
    told = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, told.decode().split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    return to


class Deployment:
    """Its own project name and ports: it does not meet another one on this machine."""

    def __init__(self, directory, clone=True):
        self.directory = fresh_clone(directory) if clone else directory
        self.project = f"obo-test-{uuid4().hex[:8]}"
        ports = {name: str(port) for name, port in zip(PORTS, free_ports(len(PORTS)), strict=True)}
        image = {f"{name}_IMAGE": f"{self.project}-{name.lower()}" for name in IMAGES}
        self.environment = {**os.environ, "COMPOSE_PROJECT_NAME": self.project, **ports, **image}
        for file, letter in (("cluster.toml", "N"), ("postgres.toml", "P")) if clone else ():
            path = directory / "examples" / "compose" / file
            text = path.read_text()
            for i, old in enumerate(("7401", "7402", "7403") if letter == "N" else ("7411", "7412", "7413"), 1):
                text = text.replace(f":{old}", f":{ports[f'OBO_{letter}{i}_PORT']}")
            path.write_text(text)
        self.environment["OBO_HEALTH_INTERVAL"] = "2s"

    def run(self, *words, ok=True, timeout=600):
        done = subprocess.run(
            words,
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
            timeout=timeout,
        )
        if ok and done.returncode:
            raise AssertionError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        return done

    def compose(self, *words, ok=True):
        return self.run("docker", "compose", *words, ok=ok).stdout

    def obo(self, *words, ok=True):
        """On this machine, outside of containers."""
        return self.run(sys.executable, "-m", "framework.cli.main", *words, ok=ok)

    def container(self, name):
        return self.compose("ps", "--all", "--quiet", name).strip()

    def wait_well(self, *names):
        """Each node says so itself, and then the engine. The engine alone says *healthy* until three of its own checks
        have failed: of a node that has just been cut off, too."""
        until = time.monotonic() + PATIENCE
        for well in (self._says_well, self._is_healthy):
            while not all(well(name) for name in names):
                if time.monotonic() > until:
                    raise AssertionError({n: (self._health(n), self.compose("logs", "--tail", "20", n)) for n in names})
                time.sleep(0.5)

    def pause(self, name):
        """Engines on busy machines sometimes cannot freeze a container at the first attempt, and say so."""
        for _ in range(10):
            done = self.run("docker", "compose", "pause", name, ok=False)
            if done.returncode == 0:
                return
            assert "unable to freeze" in done.stderr, done.stderr
            time.sleep(0.5)
        raise AssertionError(done.stderr)

    def _says_well(self, name):
        return self.run("docker", "compose", "exec", "-T", name, "obo", "health", ok=False).returncode == 0

    def _is_healthy(self, name):
        return self._health(name) == "running healthy"

    def _health(self, name):
        found = json.loads(self.run("docker", "inspect", self.container(name)).stdout)[0]["State"]
        return f"{found['Status']} {found.get('Health', {}).get('Status')}"

    def addresses(self, *nodes):
        return [f"127.0.0.1:{self.environment[f'OBO_{n.upper()}_PORT']}" for n in nodes]

    def remove(self):
        self.run("docker", "compose", "--profile", "*", "down", "--volumes", "--timeout", "5", ok=False)
        for name in IMAGES:
            self.run("docker", "image", "rm", "--force", self.environment[f"{name}_IMAGE"], ok=False)


@contextmanager
def connected(addresses, credentials, timeout=60.0):
    with connect(addresses, timeout, credentials=credentials) as orb:
        yield Sql(orb, "db", timeout=timeout)


class Load:
    """Clients outside of the containers, through TLS with the token, that insert rows until they are told to stop."""

    def __init__(self, addresses, credentials, clients=4):
        self.acknowledged, self.errors, self.longest = [], [], 0.0
        self._where = [(addresses[i % len(addresses) :] + addresses[: i % len(addresses)]) for i in range(clients)]
        self._credentials = credentials
        self._over = threading.Event()
        self._first = time.time_ns() // 1000
        self._threads = [threading.Thread(target=self._write, args=(i,), daemon=True) for i in range(clients)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join(120)

    def progress(self, rows=20):
        """Until so many more are in."""
        wanted, until = len(self.acknowledged) + rows, time.monotonic() + PATIENCE
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < until, f"no more than {len(self.acknowledged)}; {self.errors[:3]}"
            time.sleep(0.1)

    def _write(self, client):
        with connected(self._where[client], self._credentials) as db:
            number = self._first + client * 10_000_000
            while not self._over.is_set():
                number, began = number + 1, time.monotonic()
                try:
                    db.execute("INSERT INTO rows VALUES (?, ?)", [number, client])
                except OboError as error:
                    self.errors.append(f"{type(error).__name__}: {error}")
                else:
                    self.acknowledged.append(number)
                self.longest = max(self.longest, time.monotonic() - began)
                time.sleep(0.01)
