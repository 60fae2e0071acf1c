"""``obo compose``: writes a compose file for a cluster.toml; ``roll`` and ``add`` change a running deployment."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from framework.cli.where import CLUSTER, ConfigFile, nodes
from framework.errors import BadRequest
from framework.files import put
from framework.ids import check_name

if TYPE_CHECKING:
    from framework.cli.compose_file import Wanted

app = typer.Typer(
    help="Containers for a cluster.toml: write a compose file; restart nodes one by one; add a node.",
    invoke_without_command=True,
)

File = Annotated[Path, typer.Option("--file", "-f", metavar="FILE", help="The compose file.")]
COMPOSE = Path("docker-compose.yml")


@app.callback()
def run(
    ctx: typer.Context,
    config: ConfigFile = CLUSTER,
    file: File = COMPOSE,
    image: Annotated[str, typer.Option(metavar="NAME", help="The image of nodes, from our Dockerfile.")] = "obo-node",
    app_dir: Annotated[
        Path | None,
        typer.Option("--app", metavar="DIR", help="Your classes: copied into an image that is made from the other."),
    ] = None,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="The most that a node may have, such as 512m.")] = "1g",
    cpus: Annotated[str, typer.Option(metavar="N", help="The most processors of a node, such as 0.5.")] = "1",
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it is there.")] = False,
) -> None:
    """Write a compose file: each node of the cluster.toml is a container with volumes, TLS, health checks and limits.

    Nodes that are on loopback in the cluster.toml are reached there from this machine, and by name from each other.

    Example: obo compose --config cluster.toml --app . && docker compose up --wait
    """
    if ctx.invoked_subcommand is not None:
        return
    from framework.cli.compose_file import Wanted

    if file.exists() and not force:
        raise BadRequest(f"{file} is there already: give --force to replace it, or --file for another one")
    if app_dir is not None and not app_dir.is_dir():
        raise BadRequest(f"--app {app_dir}: no such directory")
    beside = [_beside(path, file) if path is not None else None for path in (config, app_dir)]
    _write(file, config, Wanted(beside[0] or "", image, beside[1], memory, cpus))
    print(f"{file}: {', '.join(nodes(config))}. Next: docker compose --file {file} up --wait")


@app.command()
def init(
    config: ConfigFile = CLUSTER,
    ca: Annotated[Path, typer.Option(metavar="DIR", help="The CA, and all that was made.")] = Path("/ca"),
    to: Annotated[Path, typer.Option("--nodes", metavar="DIR", help="With a directory per node.")] = Path("/nodes"),
    client: Annotated[Path, typer.Option(metavar="DIR", help="What clients need.")] = Path("/credentials"),
    admin: Annotated[Path, typer.Option(metavar="DIR", help="The same with the role admin.")] = Path("/admin"),
    passwords: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With a directory for each PostgreSQL server, named by node.")
    ] = None,
    owner: Annotated[int | None, typer.Option(metavar="UID", help="The user whom nodes run as.")] = None,
    days: Annotated[int, typer.Option(min=1, max=36500, help="How long certificates are good for.")] = 365,
    renew: Annotated[bool, typer.Option("--renew", help="New certificates, also if the old ones are good.")] = False,
) -> None:
    """In the first container: certificates, a token, and for each node the files that it needs. May be repeated."""
    from framework.cli.compose_init import Places, prepare

    for line in prepare(config, Places(ca, to, client, admin, passwords, owner), days, renew):
        print(line)


@app.command()
def roll(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NODE]...", help="All, if none is named.")] = None,
    config: ConfigFile = CLUSTER,
    file: File = COMPOSE,
    build: Annotated[bool, typer.Option("--build", help="Build the image first.")] = False,
    renew: Annotated[bool, typer.Option("--renew", help="New certificates, also if the old ones are good.")] = False,
) -> None:
    """Make the containers of nodes anew, one after the other: for a new image, new certificates, new settings.

    A node has its turn when all are well, so calls go on.

    Example: obo compose roll --config examples/compose/cluster.toml --build
    """
    from framework.cli.compose_roll import Compose
    from framework.cli.compose_roll import roll as roll_all

    known = nodes(config)
    for name in names or ():
        if name not in known:
            raise BadRequest(f"{config}: no node {name!r}: there are {', '.join(known)}")
    roll_all(Compose(file), names or list(known), print, build, renew)


@app.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NODE", help="The new node, for example n4.")],
    config: ConfigFile = CLUSTER,
    file: File = COMPOSE,
) -> None:
    """One replica more: write it into the cluster.toml, tell the others one by one, and start it. May be repeated.

    It gets a replica of every object that is on all nodes, that is without 'on' in the cluster.toml.

    Example: obo compose add n4 --config examples/compose/cluster.toml
    """
    from framework.cli import compose_roll
    from framework.cli.compose_file import settings

    check_name(name, "node name")
    compose = compose_roll.Compose(file)
    wanted = settings(file)
    if wanted is None and name not in compose.services():
        raise BadRequest(f"{file} was not written by obo compose, and has no service {name!r}: add one there first")
    if name not in nodes(config):
        old = config.read_text(encoding="utf-8")
        put(config, compose_roll.with_node(old, name, str(config)))
        print(f"{config}: has {name} now")
    if wanted is not None:
        _write(file, config, wanted)
        print(f"{file}: has {name} now")
    for profile in compose.services()[name].get("profiles", ()):
        env = file.parent / ".env"
        old = env.read_text(encoding="utf-8") if env.exists() else ""
        if (new := compose_roll.with_profile(old, profile)) != old:
            put(env, new)
            print(f"{env}: starts the profile {profile}, too")
    compose_roll.add(compose, config, name, print)


def _write(file: Path, config: Path, wanted: "Wanted") -> None:
    from framework.cli.compose_file import write
    from framework.orb.config import read

    put(file, write(read(config), wanted))


def _beside(path: Path, file: Path) -> str:
    """As the compose file has to name it."""
    try:
        return str(path.resolve().relative_to(file.resolve().parent))
    except ValueError:
        return str(path.resolve())
