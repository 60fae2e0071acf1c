"""The disk of a node is full while it gets its state: it says so, the others go on, and with room it comes back."""

import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest

from framework.errors import Unavailable
from framework.testing import cluster
from tests.cluster.accounts import Vault
from tests.cluster.test_membership import ready, until

WAIT = 60.0


@contextmanager
def small_disk(path, megabytes):
    """A file system of its own, with this much room."""
    path.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "obo-test", str(path)]
    if os.geteuid() != 0 or shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs root, and file systems that can be mounted")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def test_there_is_no_room_for_the_state_that_comes(tmp_path):
    with cluster({"vault": Vault}, 3, processes=True, trace=tmp_path) as c:
        vault = c.connect("n1", "n2", timeout=WAIT).object(Vault, "vault")
        for number in range(150):
            vault.deposit(f"{number} {'x' * 40_000}", 1)
        c.crash("n3")
        until(lambda: ready(c, "n1", "n2"), "n3 is still a member")
        shutil.rmtree(tmp_path / "data" / "n3")
        with small_disk(tmp_path / "data" / "n3", 3):
            try:
                c.restart("n3")
            except Unavailable:
                pass  # it may have ended before anybody saw it ready
            until(lambda: "No space left on device" in (tmp_path / "n3.log").read_text(), "it says nothing")
            vault.deposit("ann", 1)
            c._members["n3"].end()
        vault.deposit("ann", 1)
        until(lambda: ready(c, "n1", "n2"), "n3 is still a member")
        c.restart("n3")
        until(lambda: ready(c, *c.nodes), "n3 is not back")
        assert c.connect("n3", timeout=WAIT).object(Vault, "vault").balance("ann") == 2
        c.verify(WAIT)
