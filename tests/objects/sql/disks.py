"""A disk with little room."""

import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest


@contextmanager
def small_disk(path, megabytes):
    """A file system of its own at ``path``; gives a function that changes its size."""
    path.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "obo-test", str(path)]
    if os.geteuid() != 0 or shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs root, and file systems that can be mounted")
    try:
        yield lambda size: subprocess.run(["mount", "-o", f"remount,size={size}m", str(path)], check=True)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)
