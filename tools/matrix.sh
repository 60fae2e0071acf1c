#!/bin/sh
# Run a selection of the tests with each Python from 3.11 on that is here, each in an environment of its own below
# out/matrix, and end with a table. ONLY="3.12 3.13" names versions; arguments are tests to run in place of the selection.
# It goes on after a failure, and fails at the end if one was seen.
set -u
cd "$(dirname "$0")/.." || exit 2

#: What the version of Python can break: declarations, the wire, the loop, threads, processes, both databases, the demo.
SELECTION='tests/declare tests/com tests/trace tests/store tests/net tests/orb tests/objects
    tests/test_objects.py tests/test_testing.py tests/test_readme.py
    tests/cli/test_calling.py tests/cli/test_certs.py tests/cli/test_demo.py tests/cli/test_sim.py tests/cli/test_sql.py
    tests/cli/test_sql_postgres.py tests/cli/test_tran.py tests/sim/test_seeds.py'

pythons=$(sh tools/setup.sh all)
table='' failed=0
for version in ${ONLY:-$(printf '%s\n' "$pythons" | cut -d ' ' -f 1)}; do
    python=$(printf '%s\n' "$pythons" | sed -n "s|^$version ||p")
    venv=out/matrix/$version
    start=$(date +%s)
    if [ -z "$python" ]; then
        result='there is no such Python here'
    elif ! make --no-print-directory PYTHON="$python" VENV="$venv" "$venv/.ready-smoke"; then
        result='not installed'
    else
        echo "Python $version: running the tests"
        # shellcheck disable=SC2086
        if "$venv/bin/python" -m pytest -n "${JOBS:-auto}" --dist loadscope -m 'not full' -p no:cacheprovider \
            ${*:-$SELECTION} >"out/matrix/$version.log" 2>&1; then
            result=passed
        else
            result="failed: out/matrix/$version.log"
            tail -n 30 "out/matrix/$version.log"
        fi
        result="$result ($(tail -n 1 "out/matrix/$version.log"))"
    fi
    case $result in passed*) ;; *) failed=1 ;; esac
    table="$table$(printf '%-6s %4d s  %s' "$version" "$(($(date +%s) - start))" "$result")
"
done
printf '\nPython   time  result\n%s' "$table"
[ -n "$table" ] || { sh tools/setup.sh find >/dev/null; failed=1; }
exit "$failed"
