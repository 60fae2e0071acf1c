"""cluster.toml: what is read, and what each mistake says."""

import pytest

from framework.errors import BadRequest
from framework.net.security import loopback
from framework.orb.config import parse, read
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
        (NODES + "[serve]\nmax_message = 1", "max_message = 1: from 1048576"),
        (NODES + "[serve]\nin_flight = 0", "in_flight"),
        (NODES + "[serve]\nin_flight_node = 0", "in_flight_node"),
        (NODES + '[serve]\nbind = "0.0.0.0:1"', "without a port"),
        (NODES + '[security]\nca = "ca.pem"', r"\[security\] has ca but not cert, key"),
        (NODES + '[security]\ntoken = "secret"', "token"),
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
    assert loopback(address)


@pytest.mark.parametrize("address", ["0.0.0.0:1", "10.1.2.3:1", "example.org:1"])
def test_other_addresses_need_tls_and_tokens(address):
    config = parse(f'[nodes]\nn1 = "{address}"\n')
    with pytest.raises(BadRequest, match=r"not on loopback.*missing: TLS and tokens"):
        config.exposed("n1", insecure=False)
    assert "no TLS and no tokens" in config.exposed("n1", insecure=True)
    half = parse(f'[nodes]\nn1 = "{address}"\n[security]\nca = "a"\ncert = "c"\nkey = "k"\n')
    with pytest.raises(BadRequest, match="missing: tokens"):
        half.exposed("n1", insecure=False)
    whole = parse(f'[nodes]\nn1 = "{address}"\n[security]\nca = "a"\ncert = "c"\nkey = "k"\ntokens = "t"\n')
    assert whole.exposed("n1", insecure=False) == ""


def test_where_a_node_listens():
    assert parse(NODES).listens("n1") == "127.0.0.1:7401"
    config = parse(NODES + '[serve]\nbind = "0.0.0.0"')
    assert config.listens("n1") == "0.0.0.0:7401"
    with pytest.raises(BadRequest, match=r"0\.0\.0\.0:7401 is not on loopback"):
        config.exposed("n1", insecure=False)


def test_a_peer_that_is_not_on_loopback_needs_tls_too():
    with pytest.raises(BadRequest, match=r"10\.0\.0\.1:1 is not on loopback"):
        parse('[nodes]\nn1 = "127.0.0.1:1"\nn2 = "10.0.0.1:1"').exposed("n1", insecure=False)


def test_paths_of_security_begin_at_the_file(tmp_path):
    config = parse(NODES + '[security]\nca = "c/ca.pem"\ncert = "c/{node}.pem"\nkey = "/k/{node}.key"\n', tmp_path)
    ca, cert, key = config.security.files("n1")
    assert (ca, cert, str(key)) == (tmp_path / "c/ca.pem", tmp_path / "c/n1.pem", "/k/n1.key")


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
