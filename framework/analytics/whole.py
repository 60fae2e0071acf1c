"""Transactions: what was decided, who is held, joined or passed over; and the rules T1, one outcome, and T2, atomicity.

The definitions of framework.sim.oracle and oracle_tran. What is part of a transaction is answered when it has been
performed (``prepare``), and *held* until the outcome: to others it is running until then. Outcomes are requests to
``tran``, which has a replica on every node. T3, that some order of all transactions explains the run:
isolated.py.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from framework.analytics.judged import VIOLATION, histories, none, own, violation
from framework.analytics.slots import clash
from framework.analytics.tables import TRAN, Tables

ROUNDS = 10  # so many wait for each other in a row, at most


def _decided(column: str) -> str:
    """c1/3.2.0 decides on c1/3.2."""
    return f"substring_index({column}, '.', size(split({column}, '[.]')) - 1)"


_DECIDED = _decided("invocation")


def told(tables: Tables) -> DataFrame:
    """What each replica of tran has heard first: of a transaction, or of a part of one, by its name. Also what it
    adopted: of votes some may have been in its state, and others have come after."""
    rows = histories(tables).where(f"object = '{TRAN}' and contains(invocation, '.')")
    rows = rows.select("node", "place", F.expr(_DECIDED).alias("name"), "method", "order")
    said = rows.where("method != 'vote'").withColumn("commit", F.col("method") == "commit").drop("method")
    both = said.unionByName(_voted(rows, tables))
    first = F.min_by("commit", "order").alias("commit")
    return both.groupBy("node", "place", "name").agg(first, F.min("order").alias("order"))


def _voted(rows: DataFrame, tables: Tables) -> DataFrame:
    """Where the parts of a transaction decide, the last of their votes at a replica is its outcome there."""
    sent = tables.moves.where("tran != '' and sent_i is not null").withColumnRenamed("sent_invocation", "call")
    direct = sent.where(F.expr(_decided("call")) == F.col("tran"))
    wanted = direct.groupBy(F.col("tran").alias("name")).agg(F.countDistinct("call").alias("wanted"))
    votes = rows.where("method = 'vote'").withColumnRenamed("name", "part")
    votes = votes.withColumn("name", F.expr(_decided("part")))
    count, last = F.countDistinct("part").alias("cast"), F.max("order").alias("order")
    cast = votes.groupBy("node", "place", "name").agg(count, last)
    whole = cast.join(wanted, "name").where("cast = wanted")
    return whole.select("node", "place", "name", "order", F.lit(True).alias("commit"))


def lost(rows: DataFrame, tables: Tables) -> DataFrame:
    """With ``lost``: part of a transaction that was aborted, or of a part that was undone alone. Nobody but its kin has
    seen it, so it has no place."""
    if not tables.whole:
        return rows.withColumn("lost", F.lit(False))
    parts = rows.where("tran != ''").select("invocation", "tran").distinct()
    gone = _fates(parts, tables).where("not fate").select("invocation", "tran", F.lit(True).alias("gone_"))
    found = rows.join(F.broadcast(gone), ["invocation", "tran"], "left")
    return found.withColumn("lost", F.coalesce("gone_", F.lit(False))).drop("gone_")


def passed_over(tables: Tables) -> DataFrame:
    """(place, invocation): not performed, because its node had heard that its transaction is aborted."""
    if not tables.whole:
        return none(tables, "place", "invocation")
    mine = (
        own(tables).where("cancelled and tran != ''").select("place", "node", "life", "invocation", "tran", "start_i")
    )
    where = F.broadcast(tables.places.select("place", F.col("life").alias("life_")))
    heard = histories(tables).where(f"object = '{TRAN}' and method = 'abort'").join(where, "place")
    since = F.when(F.col("adopted"), F.lit(0)).otherwise(F.col("start_i")).alias("heard_i")
    heard = heard.select("node", F.col("life_").alias("life"), F.expr(_DECIDED).alias("tran"), since)
    return (
        mine.join(heard, ["node", "life", "tran"]).where("heard_i < start_i").select("place", "invocation").distinct()
    )


def held(tables: Tables) -> DataFrame:
    """What is held, from when to when; with its transaction."""
    return own(tables).where("held_i is not null").select(
        "place", "tran", F.col("invocation").alias("kin"), "held_i", F.col("end_i").alias("kin_end"),
        F.col("method").alias("k_method"), F.col("keys").alias("k_keys"),
    )  # fmt: skip


def joined(tables: Tables) -> DataFrame:
    """Instances that started where something of their transaction was held."""
    if not tables.whole:
        return none(tables, "sid")
    mine = own(tables).where("tran != ''").select("place", "tran", "sid", "start_i")
    met = mine.join(held(tables).select("place", "tran", "held_i", "kin_end"), ["place", "tran"])
    met = met.where("held_i < start_i and (kin_end is null or kin_end > start_i)")
    return met.select("sid").distinct()


def outside_kin(pairs: DataFrame, tables: Tables) -> DataFrame:
    """One that joins what its transaction holds stands at the place of that: of what precedes it, it passes what is not
    part of the transaction and waits for what is held. Pairs: place, invocation, start_i, first, first_group."""
    if not tables.whole:
        return pairs
    mine = own(tables).where("tran != ''").select("place", "invocation", "tran")
    of_first = tables.sends.select(F.col("group").alias("first_group"), F.col("tran").alias("first_tran"))
    asked = pairs.select("place", "invocation", "start_i", "first", "first_group").distinct()
    asked = asked.join(mine, ["place", "invocation"]).join(of_first, "first_group").where("tran != first_tran")
    met = asked.select("place", "invocation", "start_i", "tran").distinct().join(held(tables), ["place", "tran"])
    met = met.where("held_i < start_i and (kin_end is null or kin_end > start_i)").localCheckpoint()
    if met.isEmpty():
        return pairs
    waiting = _waiting(met, tables).select("place", "invocation", F.col("group").alias("first_group"))
    excused = asked.join(waiting, ["place", "invocation", "first_group"])
    return pairs.join(
        excused.select("place", "invocation", "first").distinct(), ["place", "invocation", "first"], "left_anti"
    )


def _waiting(met: DataFrame, tables: Tables) -> DataFrame:
    """What is not delivered there, and cannot be as long as these are held: it conflicts with one of them, or with such
    a one. One that brought a context may have to come after such a one."""
    done = histories(tables).select(
        "place", F.col("invocation").alias("sent_invocation"), F.col("start_i").alias("d_i"), "adopted"
    )
    sent = tables.moves.where("sent_i is not null").select(
        "place", "group", "object", "sent_invocation", F.col("sent_method").alias("method"),
        F.col("sent_keys").alias("keys"), "entries",
    )  # fmt: skip
    rest = met.select("place", "invocation", "start_i").distinct().join(sent, "place")
    rest = rest.join(done, ["place", "sent_invocation"], "left").where("d_i is null or (not adopted and d_i > start_i)")
    rest = rest.withColumn("c_keys", F.col("keys")).localCheckpoint()
    columns = ["place", "invocation", "group", "method", "keys"]
    edge = met.select("place", "invocation", "k_method", "k_keys")
    found = rest.where("entries > 0").select(*columns)
    for _ in range(ROUNDS):
        rows = _conflicting(rest.join(edge, ["place", "invocation"]), tables)
        fresh = rows.select(*columns).dropDuplicates(["place", "invocation", "group"])
        fresh = fresh.join(found, ["place", "invocation", "group"], "left_anti").localCheckpoint()
        if fresh.isEmpty():
            break
        found = found.unionByName(fresh)
        edge = fresh.select("place", "invocation", F.col("method").alias("k_method"), F.col("keys").alias("k_keys"))
    return found


def _conflicting(pairs: DataFrame, tables: Tables) -> DataFrame:
    relation = tables.conflicts.select("object", "method", F.col("other").alias("k_method"))
    return pairs.join(F.broadcast(relation), ["object", "method", "k_method"], "left_semi").where(clash("c", "k"))


def one_outcome(tables: Tables) -> DataFrame:
    """T1: all replicas of tran that heard of an outcome heard the same one first."""
    if not tables.whole:
        return none(tables, *VIOLATION)
    found = told(tables).join(judged(tables), "place", "left_semi").groupBy("name").agg(
        F.countDistinct("commit").alias("n"),
        F.min(F.when(F.col("commit"), F.col("place"))).alias("yes"),
        F.min(F.when(~F.col("commit"), F.col("place"))).alias("place"),
        F.min(F.when(~F.col("commit"), F.col("node"))).alias("node"),
    )  # fmt: skip
    text = F.concat(F.col("name"), F.lit(" is committed at "), "yes", F.lit(" and aborted at "), "place")
    return found.where("n > 1").withColumn("invocation", F.col("name")).select(*violation("T1", text))


def atomic(tables: Tables) -> DataFrame:
    """T2: of a transaction that is committed, all that ended well is; of one that is aborted, nothing is."""
    if not tables.whole:
        return none(tables, *VIOLATION)
    parts = tables.moves.where("tran != '' and sent_i is not null and start_i is not null")
    parts = parts.select(F.col("tran").alias("root")).distinct()
    mine = own(tables).where(f"object != '{TRAN}' and end_i is not null").join(judged(tables), "place", "left_semi")
    roots = mine.where("tran = ''").join(parts, mine.invocation == parts.root, "left_semi")
    done = mine.where("tran != ''").unionByName(roots.withColumn("tran", F.col("invocation")))
    done = done.select("place", "node", "invocation", "tran", "committed", "held_i", "told_ok")
    fates = _fates(done.select("invocation", "tran").distinct(), tables)
    rows = done.join(fates, ["invocation", "tran"])
    said = F.when(F.col("fate").isNull(), F.lit("was never decided")).otherwise(
        F.lit("was aborted, or a part of it with this")
    )
    of = F.concat(F.col("invocation"), F.lit(" of "), "tran", F.lit(", which "))
    kept = rows.where("committed and not coalesce(fate, false)")
    well = "(invocation = tran or (held_i is not null and told_ok))"
    undone = rows.where(f"not committed and coalesce(fate, false) and {well}")
    first = kept.select(*violation("T2", F.concat(F.col("place"), F.lit(" committed "), of, said)))
    second = F.concat(F.col("place"), F.lit(" undid "), of, F.lit("was committed"))
    return first.unionByName(undone.select(*violation("T2", second)))


def _fates(calls: DataFrame, tables: Tables) -> DataFrame:
    """Of each call: false if it, or what it is a part of, up to the whole, was aborted; null if nothing is decided."""
    outcomes = told(tables).groupBy("name").agg(F.min_by("commit", "order").alias("commit"))
    depth = "size(split(invocation, '[.]'))"
    line = F.expr(f"transform(sequence(size(split(tran, '[.]')), {depth}), n -> substring_index(invocation, '.', n))")
    steps = calls.withColumn("name", F.explode(line)).join(outcomes, "name", "left")
    whole = F.max(F.when(F.col("name") == F.col("tran"), F.col("commit")))
    undone = F.max(F.coalesce(~F.col("commit"), F.lit(False)))
    found = steps.groupBy("invocation", "tran").agg(whole.alias("whole"), undone.alias("undone"))
    return found.select(
        "invocation", "tran", F.when(F.col("undone"), F.lit(False)).otherwise(F.col("whole")).alias("fate")
    )


def judged(tables: Tables) -> DataFrame:
    """Not objects that were lost, nor groups of which all nodes were: what was decided is lost with them."""
    return F.broadcast(tables.places.where("not fallen and not formed").select("place"))
