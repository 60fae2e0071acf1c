"""``obo compose init``: who gets what, and what happens when it runs again."""

import stat
import tomllib

import pytest

from framework.cli.compose_init import Places, inside, prepare, to_toml
from framework.errors import BadRequest
from framework.net.certs import facts
from framework.net.security import directory
from framework.net.tokens import add, digest, read
from framework.orb.config import parse
from framework.orb.config import read as read_config
from tests.compose.test_files import ROOT, TOML


@pytest.fixture
def places(tmp_path):
    for name in ("n1", "n2", "n3"):
        (tmp_path / "nodes" / name).mkdir(parents=True)
        (tmp_path / "passwords" / name).mkdir(parents=True)
    (tmp_path / "cluster.toml").write_text(TOML)
    return Places(tmp_path / "ca", tmp_path / "nodes", tmp_path / "credentials", tmp_path / "admin")


def run(places, days=365, renew=False):
    return prepare(places.ca.parent / "cluster.toml", places, days, renew)


def names(path):
    return sorted(p.name for p in path.iterdir())


def test_each_node_gets_its_own_and_nothing_else(places):
    told = run(places)
    assert told[0].startswith("a new CA, certificates for n1, n2, n3")
    assert names(places.nodes / "n2") == ["ca.pem", "cluster.toml", "n2.key", "n2.pem", "tokens.toml"]
    assert names(places.client) == ["ca.pem", "cert.pem", "key.pem", "token"]
    for file in (*(places.nodes / "n2").iterdir(), *places.client.iterdir(), *places.admin.iterdir()):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_node_can_start_with_it(places):
    run(places)
    config = read_config(places.nodes / "n2" / "cluster.toml")
    assert dict(config.addresses) == {"n1": "n1:7401", "n2": "n2:7401", "n3": "n3:7401"}
    assert config.listens("n2") == "0.0.0.0:7401"
    assert config.security.tls("n2") is not None
    assert config.exposed("n2", insecure=False) == ""
    roles = {t.digest: t.role for t in read(places.nodes / "n2" / "tokens.toml")}
    assert roles[digest(directory(places.client).token)] == "call"
    assert roles[digest(directory(places.admin).token)] == "admin"


def test_again_changes_nothing(places):
    run(places)
    before = {p: p.read_bytes() for p in places.ca.parent.rglob("*") if p.is_file()}
    assert run(places)[0] == "all certificates are good"
    assert {p: p.read_bytes() for p in places.ca.parent.rglob("*") if p.is_file()} == before


def test_a_new_node_gets_a_certificate_by_the_same_ca(places):
    run(places)
    ca, client = (places.client / "ca.pem").read_bytes(), (places.client / "token").read_bytes()
    file = places.ca.parent / "cluster.toml"
    file.write_text(TOML.replace("[objects.db]", 'n4 = "127.0.0.1:7404"\n[objects.db]'))
    with pytest.raises(
        BadRequest, match="no such directory: the compose file gives init a volume for each node, n4 has none"
    ):
        run(places)
    (places.nodes / "n4").mkdir()
    run(places)
    assert (places.client / "ca.pem").read_bytes() == ca and (places.client / "token").read_bytes() == client
    for name in ("n1", "n4"):
        assert "n4" in read_config(places.nodes / name / "cluster.toml").addresses
        assert read_config(places.nodes / name / "cluster.toml").security.tls(name)


def test_certificates_that_end_soon_are_made_anew(places):
    run(places, days=10)
    first = facts(places.nodes / "n1" / "n1.pem")
    assert "is good for" in run(places)[0]
    assert facts(places.nodes / "n1" / "n1.pem").expires > first.expires
    assert run(places)[0] == "all certificates are good"
    assert "you asked for it" in run(places, renew=True)[0]


def test_a_new_token_reaches_all_nodes(places):
    run(places)
    add(places.ca / "tokens.toml", "ann", "admin")
    run(places)
    for name in ("n1", "n2", "n3"):
        assert [t.name for t in read(places.nodes / name / "tokens.toml")] == ["client", "admin", "ann"]


def test_passwords_stay_as_the_servers_have_taken_them(places):
    root = places.ca.parent
    with_servers = Places(places.ca, places.nodes, places.client, places.admin, root / "passwords")
    run(with_servers)
    first = {n: (root / "passwords" / n / "password").read_text() for n in ("n1", "n2", "n3")}
    assert len(set(first.values())) == 3
    run(with_servers, renew=True)
    for name, password in first.items():
        assert (root / "passwords" / name / "password").read_text() == password
        assert (places.nodes / name / "pgpass").read_text() == f"*:*:*:*:{password}\n"


def test_what_nodes_would_refuse_is_refused_before_anything_is_written(places):
    (places.ca.parent / "cluster.toml").write_text(TOML.replace("objects.sql:Database", "objects.sql:Databse"))
    with pytest.raises(BadRequest, match="Databse"):
        run(places)
    assert not places.ca.exists() and not names(places.nodes / "n1")


def test_settings_of_the_file_stay_and_addresses_on_a_network_too():
    text = (
        '[nodes]\nn1 = "10.0.0.1:7401"\n"n.2" = "127.0.0.1:9"\n[objects.db]\nclass = "objects.sql:Database"\n'
        'on = ["n1"]\noptions = { url = "postgresql://obo@{node}/x\\"y", pool = 3 }\n'
        '[serve]\nworkers = 7\ndata = "d"\n[group]\nsuspect_after = 3.5\n[security]\nclient = "c"\n'
    )
    made = tomllib.loads(to_toml(inside(text, "x")))
    assert made["nodes"] == {"n1": "10.0.0.1:7401", "n.2": "n.2:7401"}
    assert made["objects"] == tomllib.loads(text)["objects"]
    assert made["serve"] == {"workers": 7, "bind": "0.0.0.0"} and made["group"] == {"suspect_after": 3.5}
    assert made["security"]["cert"] == "{node}.pem" and "client" not in made["security"]
    parse(to_toml(inside((ROOT / "examples" / "compose" / "postgres.toml").read_text(), "x")))


@pytest.mark.parametrize("text", ["", "[nodes]\n", "[nodes]\nn1 = 5\n", "nodes = 3\n", "[nodes\n"])
def test_bad_files_are_named(text):
    with pytest.raises(BadRequest, match=r"^cluster\.toml: "):
        inside(text, "cluster.toml")
