"""cluster.toml: what is read, and what each mistake says."""

import pytest

from framework.errors import BadRequest
from framework.orb.config import check_loopback, parse, read
from tests.cli.run_obo import obo

NODES = '[nodes]\nn1 = "127.0.0.1:7401"\nn2 = "127.0.0.1:7402"\n'
BANK = '[objects.bank]\nclass = "objects.bank:Bank"\n'


def test_nodes_and_objects_are_read():
    config = parse(NODES + BANK + 'on = ["n2"]\n[objects.all]\nclass = "objects.counter:Counter"\n')
    assert config.address("n1") == "127.0.0.1:7401"
    assert config.directory.find("bank").replicas == ("bank@n2",)
    assert config.directory.find("all").replicas == ("all@n1", "all@n2")
    assert config.classes["bank"].__name__ == "Bank"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "nodes"),
        ("[nodes]\n", r"\[nodes\] is empty"),
        ("[nodes", "at end of document"),
        ('[nodes]\nn1 = "127.0.0.1"', "'127.0.0.1' is no address"),
        ('[nodes]\nn1 = "127.0.0.1:x"', "is no address"),
        ('[nodes]\nn1 = "127.0.0.1:70000"', "is no address"),
        ('[nodes]\n"a b" = "127.0.0.1:1"', "node name 'a b' is not a name"),
        ('[nodes]\nn1 = "127.0.0.1:1"\nn2 = "127.0.0.1:1"', "n2 and n1 have the same address"),
        ('[nodes]\nn1 = "h:1"\nn1 = "h:2"', "Cannot overwrite"),
        (NODES + BANK + 'on = ["n3"]', r"\[objects.bank\] on: no node 'n3'"),
        (NODES + BANK + 'on = ["n1", "n1"]', "named twice"),
        (NODES + BANK + "on = []", "at least one node"),
        (NODES + BANK + "colour = 1", "colour"),
        (NODES + "[objects.bank]\n", "class"),
        (NODES + '[objects.bank]\nclass = "objects.bnk:Bank"', "no module 'objects.bnk'"),
        (NODES + '[objects.bank]\nclass = "objects.bank:Bnk"', "no class 'Bnk'"),
        (NODES + '[objects.bank]\nclass = "objects.bank:RefusedError"', "is no Object"),
        (NODES + '[objects.tran]\nclass = "objects.bank:Bank"', "belongs to the framework"),
        (NODES + "[serve]\nworkers = 0", "workers"),
    ],
)
def test_mistakes_are_named(text, fault):
    with pytest.raises(BadRequest, match=fault):
        parse(text)


def test_the_error_names_the_file(tmp_path):
    with pytest.raises(BadRequest, match=r"cluster\.toml: No such file"):
        read(tmp_path / "cluster.toml")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "localhost:1", "[::1]:1", "127.3.2.1:9"])
def test_loopback(address):
    check_loopback(address)


@pytest.mark.parametrize("address", ["0.0.0.0:1", "10.1.2.3:1", "example.org:1"])
def test_other_addresses_need_tls_which_is_not_there_yet(address):
    with pytest.raises(BadRequest, match="without TLS for now"):
        check_loopback(address)


def test_config_check(tmp_path):
    file = tmp_path / "cluster.toml"
    file.write_text(NODES + BANK)
    done = obo("config", "check", file)
    assert done.returncode == 0, done.stderr
    assert "bank" in done.stdout and "2 nodes, 1 objects: fine" in done.stdout
    file.write_text(NODES + BANK + 'on = ["n9"]')
    done = obo("config", "check", file)
    assert done.returncode == 2
    assert "no node 'n9'" in done.stderr and len(done.stderr.splitlines()) == 1
