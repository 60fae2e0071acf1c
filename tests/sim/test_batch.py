"""Worker processes: order, crashes, death."""

import os

from framework.sim import batch
from framework.sim.batch import Job, outcomes
from framework.sim.run import Options

SMALL = Options({"nodes": 2, "objects": 1, "clients": 1, "calls": 1})
LARGE = Options({"nodes": 5, "objects": 5, "clients": 8, "calls": 40, "wide": 0.6})
WRONG = Options({"nodes": "many"})


def test_outcomes_come_in_the_order_of_the_jobs():
    jobs = [Job(seed, SMALL) for seed in (9, 3, 5, 1, 7, 2, 8)]
    assert [o.seed for o in outcomes(jobs, 2)] == [9, 3, 5, 1, 7, 2, 8]


def test_an_exception_in_a_worker_is_the_outcome_of_that_job_alone():
    done = list(outcomes([Job(1, SMALL), Job(2, WRONG), Job(3, SMALL)], 2))
    assert [len(o.violations) for o in done] == [0, 1, 0]
    assert done[1].violations[0].rule == "crash"
    assert "many" not in done[1].violations[0].text or "nodes" in done[1].violations[0].text
    assert "program.py" in done[1].violations[0].text


def _fragile(job):
    """A worker that dies at seed 4, as one does that the system kills."""
    if job.seed == 4:
        os._exit(9)
    return batch.perform(job)


def test_a_worker_that_dies_names_its_seed_and_is_replaced(monkeypatch):
    monkeypatch.setattr(batch, "perform", _fragile)
    done = list(outcomes([Job(seed, SMALL) for seed in range(8)], 2))
    assert [o.seed for o in done] == list(range(8))
    assert [o.seed for o in done if o.violations] == [4]
    assert "the worker process died (exit code 9)" in done[4].violations[0].text


def test_few_are_under_way_at_a_time():
    """The first takes long, so the others would run far ahead."""
    asked = []

    def jobs():
        yield Job(0, LARGE)
        for seed in range(1, 1000):
            asked.append(seed)
            yield Job(seed, SMALL)

    done = outcomes(jobs(), 2)
    assert next(done).seed == 0
    done.close()
    assert 8 < len(asked) < 20
