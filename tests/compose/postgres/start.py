"""The first start makes the data directory, the user and the database that the environment names; then the server."""

import os
import shutil
import subprocess
from pathlib import Path

data, user = Path(os.environ["PGDATA"]), os.environ["POSTGRES_USER"]
if not (data / "PG_VERSION").exists():
    password = Path(os.environ["POSTGRES_PASSWORD_FILE"]).read_text()
    secret = Path("/tmp/password")
    secret.write_text(password)
    for path in (secret, data):
        shutil.chown(path, "postgres")
    os.chmod(data, 0o700)
    words = ["initdb", "-D", str(data), "-U", user, "--pwfile", str(secret), "--auth-host=scram-sha-256"]
    words += ["--auth-local=trust", *os.environ.get("POSTGRES_INITDB_ARGS", "").split()]
    subprocess.run(words, user="postgres", group="postgres", extra_groups=[], check=True)
    secret.unlink()
    with (data / "pg_hba.conf").open("a") as file:
        file.write("host all all all scram-sha-256\n")
    single = ["postgres", "--single", "-D", str(data), "postgres"]
    make = f'CREATE DATABASE "{os.environ["POSTGRES_DB"]}" OWNER "{user}"\n'.encode()
    subprocess.run(single, input=make, user="postgres", group="postgres", extra_groups=[], check=True)
os.initgroups("postgres", 999)
os.setgid(999)
os.setuid(999)
os.execvp("postgres", ["postgres", "-D", str(data), "-h", "*", "-k", "/tmp"])
