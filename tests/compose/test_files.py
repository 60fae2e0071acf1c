"""docker-compose.yml, its settings, and what ``obo compose`` writes: without an engine."""

import re
import subprocess
import tomllib

import pytest
import yaml

from framework.cli.compose_file import Wanted, settings, write
from framework.errors import BadRequest
from framework.orb.config import parse
from tests.cli.run_obo import obo_here
from tests.compose.deployment import ROOT, no_compose

FILE = ROOT / "docker-compose.yml"
OURS = yaml.safe_load(FILE.read_text())
ENV = (ROOT / ".env").read_text()
TOML = """
[nodes]
n1 = "127.0.0.1:7401"
n2 = "127.0.0.1:7402"
n3 = "127.0.0.1:7403"
[objects.db]
class = "objects.sql:Database"
"""


def settings_of(text):
    return dict(line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#"))


# ours


def test_settings_are_in_git_and_explained():
    ignored = subprocess.run(
        ["git", "check-ignore", ".env", "examples/compose/cluster.toml"], cwd=ROOT, capture_output=True
    )
    assert ignored.stdout == b""
    for block in ENV.strip().split("\n\n"):
        assert block.startswith("#"), block


def test_every_setting_is_used_and_every_variable_is_a_setting():
    """With the same default in both places."""
    used = dict(re.findall(r"\$\{(\w+):-([^}]*)\}", FILE.read_text()))
    given = settings_of(ENV)
    assert given.pop("COMPOSE_PROFILES") == ""
    assert used == given
    assert len(re.findall(r"\$\{", FILE.read_text())) == len(re.findall(r"\$\{\w+:-", FILE.read_text()))


def test_the_default_is_three_nodes_and_init():
    started = [name for name, service in OURS["services"].items() if "profiles" not in service]
    assert started == ["init", "n1", "n2", "n3"]
    profiles = {p for service in OURS["services"].values() for p in service.get("profiles", ())}
    assert profiles == {"postgres", "demo", "four", "load", "analytics"}


@pytest.mark.parametrize(("file", "init"), [("cluster.toml", "init"), ("postgres.toml", "p-init")])
def test_the_nodes_of_the_toml_are_services_and_have_the_ports(file, init):
    toml = (ROOT / "examples" / "compose" / file).read_text()
    nodes = tomllib.loads(toml)["nodes"]
    given = settings_of(ENV)
    for name, address in nodes.items():
        assert address == f"127.0.0.1:{given[f'OBO_{name.upper()}_PORT']}"
        service = OURS["services"][name]
        assert service["ports"] == [f"127.0.0.1:${{OBO_{name.upper()}_PORT:-{address.rpartition(':')[2]}}}:7401"]
        assert service["environment"]["OBO_NODE"] == name
        assert f"{name}-config:/etc/obo:ro" in service["volumes"] and f"{name}-data:/var/lib/obo" in service["volumes"]
        assert f"{name}-config:/nodes/{name}" in OURS["services"][init]["volumes"]
    parse(toml)


@pytest.mark.parametrize("name", [n for n in OURS["services"] if not n.endswith("-server")])
def test_containers_of_ours_may_do_little(name):
    service = OURS["services"][name]
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    if not name.endswith("init"):  # the user of the image, which is not root
        assert "user" not in service and service["deploy"]["resources"]["limits"].keys() == {"cpus", "memory"}
    else:
        assert service["network_mode"] == "none"


def test_nothing_listens_on_more_than_loopback():
    for name, service in OURS["services"].items():
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:"), name


def test_all_volumes_and_networks_are_declared_and_used():
    mounted = {v.split(":")[0] for s in OURS["services"].values() for v in s.get("volumes", ())}
    assert {v for v in mounted if not v.startswith(".")} == set(OURS["volumes"])
    assert {n for s in OURS["services"].values() for n in s.get("networks", ())} == set(OURS["networks"])


def test_the_dockerfile_pulls_nothing_but_its_base():
    text = (ROOT / "Dockerfile").read_text()
    assert not re.search(r"^# *syntax", text, re.M)
    stages = re.findall(r"^FROM (\S+)(?: AS ([\w-]+))?", text, re.M)
    assert all(base in {"${BASE}", "scratch"} or base in {name for _, name in stages} for base, _ in stages)
    assert re.search(r"^USER obo$", text, re.M) and re.search(r"^STOPSIGNAL SIGTERM$", text, re.M)
    sources = re.findall(r"^COPY ((?!--from)[^\n]+) \S+$", text, re.M)
    wanted = (ROOT / ".dockerignore").read_text()
    for source in sources:
        assert f"!{source}\n" in wanted, f"{source} is copied, but .dockerignore keeps it out"


def test_compose_takes_it(tmp_path, monkeypatch, capsys):
    """Compose alone is enough: no engine is asked."""
    if why := no_compose():
        pytest.skip(f"docker compose config was not asked: {why}")
    words = ["docker", "compose", "--profile", "*", "config", "--quiet"]
    assert subprocess.run(words, cwd=ROOT, capture_output=True, encoding="utf-8").stderr == ""
    (tmp_path / "cluster.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)
    assert obo_here(monkeypatch, capsys, "compose").returncode == 0
    assert subprocess.run(words, cwd=tmp_path, capture_output=True, encoding="utf-8").stderr == ""


# written


def written(toml=TOML, **given):
    return yaml.safe_load(write(parse(toml), Wanted("cluster.toml", **given)))


def test_a_compose_file_for_a_cluster_toml():
    made = written()
    assert list(made["services"]) == ["init", "n1", "n2", "n3"]
    n2 = made["services"]["n2"]
    assert n2["ports"] == ["127.0.0.1:7402:7401"] and n2["environment"] == {"OBO_NODE": "n2"}
    assert n2["depends_on"] == {"init": {"condition": "service_completed_successfully"}}
    assert n2["deploy"]["resources"]["limits"] == {"cpus": "1", "memory": "1g"}
    assert "./cluster.toml:/deploy/cluster.toml:ro" in made["services"]["init"]["volumes"]
    mounted = {v.split(":")[0] for s in made["services"].values() for v in s["volumes"]}
    assert {v for v in mounted if not v.startswith(".")} == set(made["volumes"])


@pytest.mark.parametrize(
    "key", ["read_only", "cap_drop", "security_opt", "tmpfs", "restart", "init", "stop_grace_period"]
)
def test_what_is_written_is_as_strict_as_ours(key):
    assert written()["services"]["n1"][key] == OURS["services"]["n1"][key]


def test_classes_of_the_user_are_copied_into_an_image():
    build = written(app="src")["services"]["n1"]["build"]
    assert build["context"] == "src"
    assert build["dockerfile_inline"].splitlines() == ["FROM obo-node", "COPY --chown=obo . /app"]


def test_it_can_be_written_again_with_the_same_options(tmp_path):
    file = tmp_path / "docker-compose.yml"
    wanted = Wanted("my cluster.toml", "an/image:1", "a dir", "512m", "0.5")
    file.write_text(write(parse(TOML), wanted))
    assert settings(file) == wanted
    assert settings(FILE) is None


def test_a_node_that_cannot_be_a_service():
    for name in ("N1", "init", "no", "a.b"):
        with pytest.raises(BadRequest, match="cannot be a service"):
            written(TOML.replace("n2 =", f'"{name}" ='))


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cluster.toml").write_text(TOML)
    done = obo_here(monkeypatch, capsys, "compose", "--memory", "512m")
    assert done.returncode == 0 and "Next: docker compose" in done.stdout, done.stderr
    made = yaml.safe_load((tmp_path / "docker-compose.yml").read_text())
    assert made["services"]["n3"]["deploy"]["resources"]["limits"]["memory"] == "512m"
    again = obo_here(monkeypatch, capsys, "compose")
    assert again.returncode == 2 and "is there already: give --force" in again.stderr
    missing = obo_here(monkeypatch, capsys, "compose", "--config", "none.toml", "--force")
    assert missing.returncode == 2 and "none.toml" in missing.stderr
