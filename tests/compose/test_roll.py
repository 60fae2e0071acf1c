"""``obo compose roll`` and ``add``: in which order, and when they refuse. The engine is a list of what was asked."""

import json
import tomllib

import pytest

from framework.cli.compose_roll import Compose, add, roll, with_node, with_profile
from framework.errors import BadRequest, Unavailable
from tests.compose.test_files import TOML


class Engine:
    def __init__(self, services=("init", "n1", "n2", "n3", "n4")):
        self.services = services
        self.unwell = set()
        self.gone = set()
        self.asked = []
        self.breaks = None  # a node that is unwell after its restart

    def __call__(self, words):
        assert words[:3] == ["docker", "compose", "--file"]
        words = words[4:]
        if "config" in words:
            after = {"init": {"condition": "service_completed_successfully"}}
            found = {name: {"depends_on": after} if name != "init" else {"command": ["x"]} for name in self.services}
            return json.dumps({"services": found})
        if words[0] == "ps":  # the engine is slow to see that a container is not well
            state = "exited" if words[-1] in self.gone else "running"
            return json.dumps({"State": state, "Health": "healthy"}) + "\n"
        if words[0] == "exec":
            assert words[3:] == ["obo", "health"]
            if words[2] in self.unwell:
                raise Unavailable(f"obo: {words[2]} takes no calls")
            return f"{words[2]} is well\n"
        self.asked.append((words[0], words[-1]))
        if words[0] == "up" and words[-1] == self.breaks:
            self.unwell.add(self.breaks)
        return "done\n"


@pytest.fixture
def file(tmp_path):
    (tmp_path / "cluster.toml").write_text(TOML)
    (tmp_path / "docker-compose.yml").write_text("services: {}\n")
    return tmp_path / "docker-compose.yml"


def test_one_after_the_other(file):
    engine, said = Engine(), []
    roll(Compose(file, engine), ["n1", "n2", "n3"], said.append)
    assert engine.asked == [("run", "init"), ("up", "n1"), ("up", "n2"), ("up", "n3")]
    assert said[-1] == "n3: well"


def test_nothing_goes_on_when_one_is_not_well(file):
    engine = Engine()
    engine.breaks = "n2"
    with pytest.raises(Unavailable, match="n2 is not well: obo: n2 takes no calls: n3 stays as it is"):
        roll(Compose(file, engine), ["n1", "n2", "n3"], lambda _: None)
    assert engine.asked[-1] == ("up", "n2")
    engine = Engine()
    engine.unwell.add("n3")
    with pytest.raises(Unavailable, match="n1 stays as it is"):
        roll(Compose(file, engine), ["n1", "n2", "n3"], lambda _: None)
    assert engine.asked == [("run", "init")]
    engine = Engine()
    engine.gone.add("n2")
    with pytest.raises(Unavailable, match="n2 is exited: n1 stays as it is"):
        roll(Compose(file, engine), ["n1", "n2", "n3"], lambda _: None)


def test_the_image_is_built_first(file):
    engine = Engine()
    roll(Compose(file, engine), ["n1"], lambda _: None, build=True)
    assert engine.asked[0] == ("build", "init")


def test_new_certificates_are_asked_for(file):
    engine = Engine()
    roll(Compose(file, engine), ["n1"], lambda _: None, renew=True)
    assert engine.asked[0] == ("run", "--renew")


def test_a_new_node_comes_last(file):
    engine, config = Engine(), file.parent / "cluster.toml"
    config.write_text(with_node(TOML, "n4", str(config)))
    add(Compose(file, engine), config, "n4", lambda _: None)
    assert engine.asked == [("run", "init"), ("up", "n1"), ("up", "n2"), ("up", "n3"), ("up", "n4")]


def test_a_node_is_not_added_to_a_group_that_is_not_well(file):
    engine = Engine()
    engine.unwell.add("n2")
    with pytest.raises(Unavailable, match="when all others are well"):
        add(Compose(file, engine), file.parent / "cluster.toml", "n4", lambda _: None)
    assert engine.asked == []


def test_a_service_that_is_not_there(file):
    with pytest.raises(BadRequest, match="no service 'n4'"):
        add(Compose(file, Engine(("init", "n1", "n2", "n3"))), file.parent / "cluster.toml", "n4", lambda _: None)
    with pytest.raises(BadRequest, match="no service 'n9'"):
        roll(Compose(file, Engine()), ["n9"], lambda _: None)
    with pytest.raises(BadRequest, match="no such file"):
        Compose(file.parent / "other.yml")


def test_a_node_is_written_behind_the_others_and_the_rest_stays(tmp_path):
    path = tmp_path / "cluster.toml"
    path.write_text("# ours\n[nodes]   # all\nn1 = '127.0.0.1:7401'\n\n# a word\n[group]\nsuspect_after = 2.0\n")
    text = with_node(path.read_text(), "n2", str(path))
    old = path.read_text().splitlines(keepends=True)
    assert text == "".join([*old[:3], 'n2 = "127.0.0.1:7402"\n', *old[3:]])
    path.write_text('[nodes]\nn1 = "n1:7401"')
    assert tomllib.loads(with_node(path.read_text(), "n2", str(path)))["nodes"]["n2"] == "n2:7401"
    path.write_text('nodes = {n1 = "127.0.0.1:7401"}\n')
    with pytest.raises(BadRequest, match="add n2 by hand"):
        with_node(path.read_text(), "n2", str(path))


def test_a_profile_is_added_once():
    assert with_profile("A=1\nCOMPOSE_PROFILES=\nB=2\n", "four") == "A=1\nCOMPOSE_PROFILES=four\nB=2\n"
    assert with_profile("COMPOSE_PROFILES=demo\n", "four") == "COMPOSE_PROFILES=demo,four\n"
    assert with_profile("COMPOSE_PROFILES=four\n", "four") == "COMPOSE_PROFILES=four\n"
    assert with_profile("", "four") == "COMPOSE_PROFILES=four\n"
