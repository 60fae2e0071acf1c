"""The program for spark-submit: ``spark-submit --py-files obo.whl submit.py RUN… --out DIR``. See docs/analytics.md.

Only the driver runs Python; executors need Java and Spark alone, and must see the files of the run under the same path.
"""

import argparse
import sys
import tempfile
from pathlib import Path


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="submit.py", description="obo analyze, under spark-submit")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    given = parser.parse_args(arguments)
    from framework.analytics.session import start
    from framework.analytics.work import work
    from framework.errors import OboError

    with tempfile.TemporaryDirectory(prefix="obo-spark-", ignore_cleanup_errors=True) as scratch:
        spark = start("", "", Path(scratch))
        try:
            found = work(spark, given.runs, given.out, lambda what: _say(what))
        except OboError as error:
            _say(f"obo: error: {error}")
            return 2
        finally:
            spark.stop()
    _say(f"report: {given.out / 'report.html'}")
    return found.code


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [
        p for p in sys.path if p != here
    ]  # a script's directory comes first, and has modules named like others
    raise SystemExit(main(sys.argv[1:]))
