"""framework/files.py: a file has its old content or its new one, whatever comes in between."""

import os
from pathlib import Path

import pytest

from framework.files import put


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "cluster.toml"
    file.write_text("old")
    file.chmod(0o640)
    return file


def test_it_replaces_the_content_and_keeps_the_mode(file):
    put(file, "neü")
    assert file.read_text(encoding="utf-8") == "neü"
    assert file.stat().st_mode & 0o777 == 0o640
    assert os.listdir(file.parent) == ["cluster.toml"]


def test_a_new_file_has_the_usual_mode_or_the_given_one(tmp_path):
    usual, secret = tmp_path / "usual", tmp_path / "secret"
    (tmp_path / "other").touch()
    put(usual, b"1")
    put(secret, b"2", 0o600)
    assert usual.stat().st_mode == (tmp_path / "other").stat().st_mode
    assert secret.stat().st_mode & 0o777 == 0o600


def test_a_link_stays_a_link(file):
    link = file.with_name("link")
    link.symlink_to(file)
    put(link, "new")
    assert link.is_symlink() and file.read_text() == "new"


@pytest.mark.parametrize("what", ["replace", "chmod"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_what_is_interrupted_leaves_the_old_file_alone(file, monkeypatch, what, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(Path, what, fail)
    with pytest.raises((KeyboardInterrupt, OSError)):
        put(file, "new")
    assert file.read_text() == "old" and os.listdir(file.parent) == ["cluster.toml"]


def test_a_disk_that_is_full_leaves_the_old_file_alone(file, monkeypatch):
    opened = os.fdopen

    def full(number, mode):
        half = opened(number, mode, buffering=0)
        half.write(b"ne")
        half.close()
        return half  # each write fails from now on

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(ValueError, match="closed file"):
        put(file, "new")
    assert file.read_text() == "old" and os.listdir(file.parent) == ["cluster.toml"]


def test_a_file_in_a_directory_that_takes_no_new_ones_is_written_as_it_is(file, monkeypatch):
    def deny(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", deny)
    put(file, "new")
    assert file.read_text() == "new"
    with pytest.raises(PermissionError):
        put(file.with_name("other"), "new")


def test_a_pipe_is_written_as_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reads = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    put(pipe, "new")
    assert os.read(reads, 10) == b"new"
    os.close(reads)
