"""obo certs, obo token, and a node that uses what they make; as a user runs them."""

import shutil
import stat

import pytest

from framework.cli.config import check
from framework.errors import BadRequest
from framework.net.certs import Authority
from tests.cli.run_obo import obo
from tests.cluster.processes import Process
from tests.orb.secured import SECURITY

NODES = '[nodes]\nn1 = "127.0.0.1:7401"\nn2 = "localhost:7402"\n[objects.bank]\nclass = "objects.bank:Bank"\n'


@pytest.fixture
def made(tmp_path):
    (tmp_path / "cluster.toml").write_text(NODES)
    done = obo("certs", "init", "--config", tmp_path / "cluster.toml", "--out", tmp_path / "certs")
    assert done.returncode == 0, done.stderr
    assert 'cert = "certs/{node}.pem"' in done.stdout
    (tmp_path / "cluster.toml").write_text(NODES + SECURITY)
    return tmp_path


def one_line(done, code=2):
    assert done.returncode == code, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_secrets_are_for_their_owner_alone(made):
    secret = [*(made / "certs").rglob("*.key"), *(made / "certs/client").glob("key.pem"), made / "certs/client/token"]
    assert len(secret) == 5
    for file in [*secret, made / "certs/tokens.toml"]:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert (made / "certs/client/token").read_text().strip() not in (made / "certs/tokens.toml").read_text()


def test_nothing_is_replaced_without_being_asked_for(made):
    command = ["certs", "init", "--config", made / "cluster.toml", "--out", made / "certs"]
    before = {f: f.read_bytes() for f in (made / "certs").rglob("*") if f.is_file()}
    assert "--force replaces everything" in one_line(obo(*command))
    assert before == {f: f.read_bytes() for f in (made / "certs").rglob("*") if f.is_file()}
    assert obo(*command, "--force").returncode == 0
    assert all(f.read_bytes() != data for f, data in before.items())
    assert obo("config", "check", made / "cluster.toml").stdout.endswith(": fine\n")


def test_renewing_keeps_the_ca_and_the_tokens(made):
    kept = ["ca.pem", "ca.key", "tokens.toml", "client/ca.pem", "client/token"]
    before = {f.relative_to(made / "certs"): f.read_bytes() for f in (made / "certs").rglob("*") if f.is_file()}
    done = obo("certs", "renew", "--config", made / "cluster.toml", "--out", made / "certs", "--days", "9")
    assert done.returncode == 0, done.stderr
    for name, data in before.items():
        assert ((made / "certs" / name).read_bytes() == data) == (str(name) in kept), name
    shown = obo("certs", "show", made / "certs", COLUMNS="200")
    assert shown.returncode == 0 and "n1.node.obo.internal" in shown.stdout and " 9 " in shown.stdout


def refused(config, said, insecure=False):
    with pytest.raises(BadRequest, match=said):
        check(config, None, insecure)


def test_certificates_are_checked_with_the_config(made, capsys):
    config, certs = made / "cluster.toml", made / "certs"
    check(config, None, False)
    shutil.copy(certs / "n1.pem", certs / "n2.pem")
    refused(config, r"cluster\.toml: .*n2\.pem does not belong to .*n2\.key")
    check(config, "n1", False)  # a node has its own alone
    shutil.copy(certs / "n1.key", certs / "n2.key")
    refused(config, r"n2\.pem does not name node n2: it names n1\.node\.obo\.internal")
    (certs / "n2.pem").write_text("nothing")
    refused(config, r"n2\.pem: no certificate in PEM")
    (certs / "n2.pem").unlink()
    refused(config, r"n2\.pem: No such file")
    late = Authority.read(certs / "ca.pem", certs / "ca.key").node("n2", [], -1)
    (certs / "n2.pem").write_bytes(late.cert)
    (certs / "n2.key").write_bytes(late.key)
    refused(config, r"n2\.pem expired on")
    shown = obo("certs", "show", certs, COLUMNS="200")
    assert shown.returncode == 1 and "expired" in shown.stdout
    (certs / "tokens.toml").write_text("[ann")
    with pytest.raises(BadRequest, match=r"tokens\.toml"):
        check(config, "n1", False)


def test_leaving_loopback_is_checked_with_the_config(tmp_path, capsys):
    config = tmp_path / "open.toml"
    config.write_text('[nodes]\nn1 = "10.1.2.3:7401"\n')
    refused(config, "missing: TLS and tokens")
    check(config, None, True)
    assert obo("config", "check", config, OBO_INSECURE="1").returncode == 0


def test_a_secured_node_and_its_callers(tmp_path, ports):
    """One node with TLS and tokens as a process, and the commands that call it."""
    config = tmp_path / "cluster.toml"
    head = f'[nodes]\nn1 = "127.0.0.1:{ports(1)[0]}"\n[objects.bank]\nclass = "objects.bank:Bank"\n'
    config.write_text(head)
    assert obo("certs", "init", "--config", config, "--out", tmp_path / "certs").returncode == 0
    config.write_text(head + SECURITY)
    node = Process("n1", config, tmp_path / "trace")
    try:
        node.says("is ready")
        call = ["call", "bank", "balance", "ann", "--config", config]
        assert obo(*call).stdout == "0\n"
        assert "is not known here" in one_line(obo(*call, OBO_TOKEN="wrong"))
        new = obo("token", "new", "--name", "eve", "--role", "read-only", "--config", config)
        eve = {"OBO_TOKEN": new.stdout.strip()}
        assert obo(*call, **eve).stdout == "0\n"
        assert "token eve is read-only" in one_line(
            obo("call", "bank", "deposit", "ann", "5", "--config", config, **eve)
        )
        assert "bank" in obo("ls", "--config", config).stdout
        at = ["--at", head.split('"')[1], "--config", tmp_path / "none.toml"]
        assert obo("status", *at, "--credentials", tmp_path / "certs/client").returncode == 0
        assert "eve" in obo("token", "list", "--config", config).stdout
    finally:
        node.process.terminate()
        node.process.wait(20)


def test_another_interface_needs_tls_and_tokens(tmp_path):
    """That --insecure warns is tested without listening there (tests/orb/test_security.py)."""
    (tmp_path / "cluster.toml").write_text('[nodes]\nn1 = "127.0.0.1:7401"\n')
    done = obo("serve", "--node", "n1", "--config", tmp_path / "cluster.toml", "--bind", "0.0.0.0")
    assert "0.0.0.0:7401 is not on loopback" in one_line(done)
