"""After a change of the schema a statement means what it means now, on connections that knew the old one, too."""

import pytest

_BOTH = ["SELECT 1 WHERE 1 IN (SELECT * FROM t)", "SELECT * FROM t UNION SELECT 1"]
READS = {
    "sqlite": ["SELECT 1 IN t", "SELECT (SELECT * FROM t)", *_BOTH, "SELECT count(*) FROM t WHERE x IN t"],
    "postgres": ["SELECT (SELECT t.* FROM t)", *_BOTH, "SELECT * FROM t"],
}
FORMS = {
    "another table": (["CREATE TABLE t (a int, b int, c int)"], ["DROP TABLE t", "CREATE TABLE t (x int)"]),
    "a column less": (["CREATE TABLE t (x int, y int)"], ["ALTER TABLE t DROP COLUMN y"]),
    "another view": (
        ["CREATE TABLE u (x int, y int)", "CREATE VIEW t AS SELECT x, y FROM u"],
        ["DROP VIEW t", "CREATE VIEW t AS SELECT x FROM u"],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_readers_know_the_schema_as_it_is(make, dialect, form):
    one = make(pool=1)
    before, after = FORMS[form]
    for read in READS[dialect]:
        for text in before:
            one.do(text)
        for _ in range(4):  # a server keeps what is asked for often
            one.ask("SELECT * FROM t")
            one.call("query", read)
        for text in after:
            one.do(text)
        for _ in range(2):
            found = one.call("query", read)
            assert not isinstance(found, Exception), (read, found)
        for kind in ("VIEW", "TABLE"):
            for name in "tu":
                one.batch(("execute", f"DROP {kind} IF EXISTS {name}"))


@pytest.mark.parametrize("way", ["ALTER TABLE t ADD COLUMN more int", "ALTER TABLE t RENAME COLUMN v TO w"])
def test_what_a_replica_performed_before_does_not_show(make, way):
    """A server says of a statement that it keeps prepared that its result has changed, and one that was just started
    performs it: the first has performed it often."""
    said = []
    for node, times in (("n1", 9), ("n2", 0)):
        one = make(node)
        one.do("CREATE TABLE t (id int PRIMARY KEY, v int)")
        for sql in ("UPDATE t SET id = 1 WHERE id = 1 RETURNING *", "SELECT * FROM t"):
            for _ in range(times):
                one.do(sql)
        one.do(way)
        said.append(
            [one.do(sql).columns for sql in ("UPDATE t SET id = 1 WHERE id = 1 RETURNING *", "SELECT * FROM t")]
        )
    assert said[0] == said[1]
