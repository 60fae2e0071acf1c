"""Nodes in network namespaces of their own, with a switch between them: a cable is pulled, and plugged in again."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cluster.processes import surroundings

WAIT = 60.0
NAMES = ("n1", "n2", "n3")
OBO = [sys.executable, "-m", "framework.cli.main"]


def _ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _possible():
    """As root, and where the kernel lets us."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"obo{os.getpid()}-try"
    try:
        _ip("netns", "add", name)
        _ip("netns", "del", name)
    except subprocess.CalledProcessError:
        return False
    return True


class Network:
    """A namespace for each node, and one for the switch: nothing of the machine itself is touched."""

    def __init__(self, directory):
        self._tag = f"obo{os.getpid()}"
        self._spaces = []
        self._processes = {}
        self.directory = directory
        self.config = directory / "cluster.toml"
        nodes = "\n".join(f'{n} = "10.77.0.{i}:7401"' for i, n in enumerate(NAMES, 1))
        self.config.write_text(f'[nodes]\n{nodes}\n[objects.bank]\nclass = "objects.bank:Bank"\n')

    def __enter__(self):
        try:
            switch = self._space("sw")
            _ip("-n", switch, "link", "add", "br0", "type", "bridge")
            _ip("-n", switch, "link", "set", "br0", "up")
            for number, name in enumerate(NAMES, 1):
                space = self._space(name)
                _ip("-n", space, "link", "add", "eth0", "type", "veth", "peer", "name", name, "netns", switch)
                _ip("-n", space, "addr", "add", f"10.77.0.{number}/24", "dev", "eth0")
                for link in ("lo", "eth0"):
                    _ip("-n", space, "link", "set", link, "up")
                _ip("-n", switch, "link", "set", name, "master", "br0")
                self.plug(name, True)
            for name in NAMES:
                self._serve(name)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error):
        self._end()

    def _end(self):
        for process in self._processes.values():
            process.kill()
            process.wait()
        for space in self._spaces:
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True)

    def _space(self, name):
        space = f"{self._tag}-{name}"
        _ip("netns", "add", space)
        self._spaces.append(space)
        return space

    def _inside(self, name, *words):
        return ["ip", "netns", "exec", f"{self._tag}-{name}", *OBO, *words]

    def _serve(self, name):
        where = ("--config", str(self.config), "--trace", str(self.directory / "trace"))
        words = self._inside(name, "serve", "--insecure", "--node", name, *where)
        with (self.directory / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(words, env=surroundings(), stdout=log, stderr=subprocess.STDOUT)

    def plug(self, name, yes):
        _ip("-n", f"{self._tag}-sw", "link", "set", name, "up" if yes else "down")

    def obo(self, name, *words):
        """What a person sees who sits at this node, and asks it alone."""
        words = self._inside(name, *words, "--at", f"10.77.0.{name[1:]}:7401")
        done = subprocess.run(words, env=surroundings(), capture_output=True, encoding="utf-8", timeout=WAIT)
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    def until(self, name, words, happened, what):
        end = time.monotonic() + WAIT
        while not happened(told := self.obo(name, *words)):
            assert time.monotonic() < end, (what, told, (self.directory / f"{name}.log").read_text()[-2000:])
            time.sleep(0.1)

    def stop(self):
        for process in self._processes.values():
            process.send_signal(signal.SIGINT)
        for name, process in self._processes.items():
            assert process.wait(WAIT) == 0, (self.directory / f"{name}.log").read_text()[-2000:]


def members(told):
    code, out, _ = told
    try:
        return json.loads(out)["members"] if code == 0 else None
    except (ValueError, KeyError, TypeError):
        return None


@pytest.mark.skipif(not _possible(), reason="needs root and network namespaces")
def test_a_cable_is_pulled_and_plugged_in_again(tmp_path):
    with Network(tmp_path) as net:
        status = ("status", "--json")
        net.until("n1", ("call", "bank", "deposit", "ann", "5"), lambda told: told[0] == 0, "no group comes up")
        net.plug("n3", False)
        net.until("n1", status, lambda told: members(told) == ["n1", "n2"], "n3 is still a member")
        assert net.obo("n1", "call", "bank", "deposit", "ann", "2")[0] == 0
        code, _, said = net.obo("n3", "call", "bank", "deposit", "ann", "100", "--timeout", "3")
        assert code != 0 and "n3" in said, said
        net.plug("n3", True)
        net.until("n3", status, lambda told: members(told) == list(NAMES), "n3 is not back")
        net.until("n3", ("call", "bank", "balance", "ann"), lambda told: told[:2] == (0, "7"), "n3 has another balance")
        net.stop()
    traces = sorted(map(str, Path(tmp_path / "trace").glob("*.jsonl")))
    done = subprocess.run([*OBO, "verify", *traces], env=surroundings(), capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
