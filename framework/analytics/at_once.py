"""Jobs that do not need each other, two at a time: while one is planned, or its last task runs, the other has the
cores. How many tasks run at once is Spark's to say, so this takes no more memory."""

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

from pyspark.sql import SparkSession

JOBS = 2
_LOOK = 0.5  # seconds
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def at_once(spark: SparkSession, jobs: Mapping[_Key, Callable[[], _Value]]) -> dict[_Key, _Value]:
    """What each of them says, in their order. If one fails, or we are interrupted, the others are ended."""
    with ThreadPoolExecutor(JOBS) as pool:
        under_way = {name: pool.submit(job) for name, job in jobs.items()}
        try:
            wait(under_way.values(), return_when=FIRST_EXCEPTION)
            if failed := next((e for one in under_way.values() if one.done() and (e := one.exception())), None):
                raise failed
            return {name: one.result() for name, one in under_way.items()}
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(under_way.values(), timeout=_LOOK).not_done:  # one may just have begun the next of its jobs
                spark.sparkContext.cancelAllJobs()
            raise
