"""The fixture ``obo_cluster``, as the tests of a user have it."""

import subprocess
import sys

from objects.counter import Counter
from tests.cli.run_obo import surroundings

TESTS = """
import random
import pytest
from framework import Object, method
from objects.counter import Counter

class Chancy(Object):
    def __init__(self) -> None:
        self.value = 0.0

    @method
    def roll(self) -> None:
        self.value = random.random()

def test_good(obo_cluster, tmp_path):
    one, two = obo_cluster({"counter": Counter}), obo_cluster({"counter": Counter}, nodes=2)
    one.connect().object(Counter, "counter").increment(1)
    assert two.connect().object(Counter, "counter").show() == 0
    assert one.directory.parent == tmp_path and one.directory != two.directory

def test_bad(obo_cluster):
    obo_cluster({"chancy": Chancy}).connect().object(Chancy, "chancy").roll()

def test_bad_but_not_judged(obo_cluster):
    obo_cluster({"chancy": Chancy}, verify=False).connect().object(Chancy, "chancy").roll()

def test_bad_and_known(obo_cluster):
    c = obo_cluster({"chancy": Chancy})
    c.connect().object(Chancy, "chancy").roll()
    with pytest.raises(AssertionError, match="A7"):
        c.verify()

def test_class_of_the_test(obo_cluster):
    c = obo_cluster({"chancy": Chancy}, 1, processes=True)
    c.connect().object(Chancy, "chancy").roll()
"""


def run(*words, cwd):
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(
        words, cwd=cwd, env=surroundings(), capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    return done.stdout + done.stderr


def test_it_verifies_at_the_end_of_a_test(tmp_path):
    (tmp_path / "test_mine.py").write_text(TESTS)
    said = run("test_mine.py", cwd=tmp_path)
    assert "5 passed, 1 error" in said, said
    assert "ERROR test_mine.py::test_bad -" in said and "A7" in said


def test_who_does_not_use_it_does_not_pay_for_grpc(tmp_path):
    (tmp_path / "test_light.py").write_text("import sys\ndef test_it():\n    assert 'grpc' not in sys.modules\n")
    assert "1 passed" in run("test_light.py", cwd=tmp_path)


def test_it_is_there_for_our_own_tests(obo_cluster):
    c = obo_cluster({"counter": Counter}, nodes=1)
    c.connect().object(Counter, "counter").increment(1)
    assert c.verify().delivered == 1
