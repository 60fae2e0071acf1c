"""Jobs two at a time: what they say, and what becomes of the others when one fails."""

import threading
import time

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from framework.analytics.at_once import JOBS, at_once


def test_answers_come_in_the_order_of_the_jobs_and_not_in_that_of_their_ends(spark):
    second = threading.Event()

    def first():
        assert second.wait(30)
        return 1

    found = at_once(spark, {"first": first, "second": second.set, "third": lambda: spark.range(3).count()})
    assert list(found.items()) == [("first", 1), ("second", None), ("third", 3)]


def test_no_more_than_so_many_at_once(spark):
    here, most = [], []

    def job():
        here.append(1)
        most.append(len(here))
        time.sleep(0.05)
        here.pop()

    at_once(spark, dict.fromkeys(range(6), job))
    assert max(most) == JOBS


def test_if_one_fails_the_others_are_ended_also_what_they_begin_later(spark):
    ended = []

    def forever():
        for _ in range(2):  # the first is ended, and another one begun
            with pytest.raises((PySparkException, Py4JError)):
                spark.range(0, 10**15, 1, 2).selectExpr("sum(id % 7)").collect()
        ended.append(True)

    def wrong():
        time.sleep(1)
        raise ValueError("no")

    began = time.monotonic()
    with pytest.raises(ValueError, match="no"):
        at_once(spark, {"a": forever, "b": wrong})
    assert ended == [True]
    assert time.monotonic() - began < 60
