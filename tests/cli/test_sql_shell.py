"""The SQL shell in a terminal: type, and see what comes. And completion, without a terminal."""

import os

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory

from framework.cli.sql_complete import Names, SqlCompleter
from framework.cli.sql_shell import history, is_complete
from tests.cli.terminal import Terminal


@pytest.fixture
def shell(db, nodes, tmp_path):
    at = ",".join(nodes.addresses.values())
    with Terminal("sql", OBO_AT=at, XDG_STATE_HOME=str(tmp_path)) as terminal:
        terminal.sees("you talk to n")
        terminal.sees("db> ")
        yield terminal


def test_a_conversation(shell, tmp_path):
    shell.types("create table people(id integer primary key,\r")
    shell.sees("...> ")
    shell.types("name text);\r")
    shell.sees("done")
    shell.types("insert into people values (1, 'ann'), (2, null);\r")
    shell.sees("2 rows changed")
    shell.types("select * from people;\r")
    shell.sees("│ id │ name │")
    shell.sees("│  2 │ NULL │")
    shell.sees("2 rows")
    shell.types(".mode csv\r")
    shell.types(".timing on\r")
    shell.sees("timing: on")
    shell.types("select 1 as x; select 2 as y;\r")
    shell.sees("x\n1\n")
    shell.sees(" ms")
    shell.sees("y\n2\n")
    shell.types("selec;\r")
    shell.sees("error: ")
    shell.types(".quit\r")
    assert shell.ends() == 0
    file = tmp_path / "obo" / "sql_history"
    assert "+name text);" in file.read_text() and oct(file.stat().st_mode)[-3:] == "600"


def test_ctrl_c_takes_back_the_line_and_ctrl_d_ends(shell):
    shell.types("drop everything")
    shell.sees("drop everything")
    shell.types("\x03")
    shell.sees("db> ")
    shell.types("select 40 + 2;\r")
    shell.sees("│     42 │")
    shell.types("begin;\r")
    shell.sees("db*> ")
    shell.types("create table t(a);\r")
    shell.sees("kept, 1 statement so far")
    shell.sees("db*> ")
    shell.types("\x04")
    shell.sees("the transaction was not committed")
    assert shell.ends() == 0


def test_ctrl_c_cancels_a_statement(shell):
    numbers = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 4000000)"
    for _ in range(20):  # it may be done before it is cancelled
        shell.types(f"{numbers} select count(*) from c;\r")
        for _ in range(100):  # the line editor may still be there, and get it
            shell.waits(0.1)
            if "cancelled" in shell.text or "1 row" in shell.text[-200:]:
                break
            shell.types("\x03")
        if "cancelled" in shell.text:
            break
    shell.sees("cancelled")
    shell.sees("db> ")
    shell.types(".quit\r")
    assert shell.ends() == 0


def test_what_can_be_sent():
    for text in ("", "  ", ".tables", ".schema t", "select 1;", "select 1; select 2;", "-- only this\n"):
        assert is_complete(text), text
    for text in ("select 1", "select ';", "create trigger t after insert on u begin select 1;"):
        assert not is_complete(text), text


def test_a_history_that_cannot_be_written_is_kept_in_memory(tmp_path, monkeypatch):
    (tmp_path / "obo").write_text("a file where the directory should be")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert isinstance(history(), InMemoryHistory)


def test_a_full_disk_does_not_end_the_shell(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    lasting = history()
    os.remove(tmp_path / "obo" / "sql_history")
    os.rmdir(tmp_path / "obo")
    lasting.append_string("select 1;")


@pytest.fixture
def complete():
    names = Names(None)
    names.columns = {"people": ["id", "name"], "teams": ["id", "title"], "odd name": ["a b"]}

    def run(text, asked=False):
        event = CompleteEvent(completion_requested=asked)
        return [c.text for c in SqlCompleter(names).get_completions(Document(text), event)]

    return run


def test_completion(complete):
    assert complete("sel") == ["select"] and complete("SEL") == ["SELECT"]
    assert complete("select * from pe") == ["people"] and complete("select * from od") == ['"odd name"']
    assert complete("select na") == ["name"]
    assert complete("select people.") == ["id", "name"] and complete("select teams.ti") == ["title"]
    assert complete("select * from ", asked=True) == ["people", "teams", '"odd name"'], "no keywords where a table goes"
    assert complete("select ") == []
    assert complete(".s") == [".schema"] and complete(".schema te") == ["teams"]
    assert complete(".mode ") == ["table", "csv", "json"] and complete(".read l") == ["linearizable"]


def test_names_come_from_the_database(db):
    db.execute("CREATE TABLE t(a, b)")
    names = Names(db)
    names._look()
    assert names.columns == {"t": ["a", "b"]}
