"""A database at each of three nodes: write anywhere, read anywhere, as much order as needed.

python -m examples.sql [--at host:port,...]
"""

from concurrent.futures import ThreadPoolExecutor

from examples.nodes import running
from framework import Orb, RemoteError, connect
from objects.bank import Bank
from objects.sql.client import Sql

CLIENTS, TRANSFERS = 6, 20


def move(addresses: str, client: int) -> None:
    """Accounts of different clients are different rows: they do not wait for each other."""
    with connect(addresses) as orb:
        db = Sql(orb, "db")
        for _ in range(TRANSFERS):
            db.transaction(
                [
                    ("UPDATE account SET money = money - 1 WHERE owner = ?", [f"from {client}"]),
                    ("UPDATE account SET money = money + 1 WHERE owner = ?", [f"to {client}"]),
                ]
            )


def buy(orb: Orb, price: int) -> None:
    """From an account at the bank, which is another object, to a row: both or none."""
    db = Sql(orb, "db")
    try:
        with orb.transaction():
            db.execute("UPDATE account SET money = money + ? WHERE owner = 'shop'", [price])
            orb.object(Bank, "bank").withdraw("ann", price)
    except RemoteError as error:
        print("undone:", error)


if __name__ == "__main__":
    with running(db="objects.sql:Database", bank="objects.bank:Bank") as addresses, connect(addresses) as orb:
        db = Sql(orb, "db")
        db.execute("DROP TABLE IF EXISTS account")
        db.execute("CREATE TABLE account (owner TEXT PRIMARY KEY, money INTEGER NOT NULL CHECK (money >= 0))")
        owners = [[f"{way} {client}", TRANSFERS] for client in range(CLIENTS) for way in ("from", "to")]
        print("rows:", db.executemany("INSERT INTO account VALUES (?, ?)", owners).rowcount)

        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(move, [addresses] * CLIENTS, range(CLIENTS)))
        print("money:", db.query("SELECT sum(money) FROM account", read="linearizable").rows[0][0])
        print("from 0 has:", db.query("SELECT money FROM account WHERE owner = ?", ["from 0"]).rows[0][0])
        try:
            db.execute("UPDATE account SET money = money - 1 WHERE owner = 'from 0'")
        except RemoteError as error:
            print("refused:", str(error).partition(";")[0])
        bank = orb.object(Bank, "bank")
        bank.deposit("ann", 100)
        db.execute("INSERT INTO account VALUES ('shop', 0)")
        for price in (30, 90):
            buy(orb, price)
        shop = db.query("SELECT money FROM account WHERE owner = 'shop'", read="linearizable").scalar()
        print("the shop has:", shop, "and ann:", bank.balance("ann"))
        print("replicas are equal:", db.digests().equal)
