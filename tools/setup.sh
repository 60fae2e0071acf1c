#!/bin/sh
# Find a Python that runs OBO, and install OBO and what its parts need; make calls this.
#
#   tools/setup.sh find               print the path of one Python, or say what is missing
#   tools/setup.sh all                print "3.12 PATH" for each minor version of Python that is here
#   tools/setup.sh differs DIR        say so if the environment DIR has another Python than PYTHON names
#   tools/setup.sh install DIR PART   make the environment DIR if need be, and install the part: core, or an extra
#                                     of pyproject.toml
#
# PYTHON names the only interpreter to look at. It is plain sh: there may be no Python yet.
set -eu

#: Newest first, among those for which every package has a wheel; then what is newer, and what has no number.
NAMES='python3.13 python3.12 python3.11 python3.14 python3.15 python3.16 python3 python'
PYENV=${PYENV_ROOT:-${HOME:-/nonexistent}/.pyenv}

PROBE='
import sys
missing = []
for name in ("venv", "ensurepip", "ssl", "sqlite3"):
    try:
        __import__(name)
    except ImportError:
        missing.append(name)
print("%d.%d.%d %s %s" % (sys.version_info[:3] + (",".join(missing) or "-", sys.executable)))
'

# Set version, missing and path by running interpreter $1. A shim of pyenv is a file that may run nothing.
probe() {
    version='' missing='' path='' told=''
    told=$("$1" -c "$PROBE" 2>&1) || return 1
    read -r version missing path <<EOF
$(printf '%s\n' "$told" | tail -n 1)
EOF
    [ -n "$path" ]
}

# Is the version $1 3.11 or newer?
recent() {
    minor=${1#*.}
    minor=${minor%%.*}
    [ "${1%%.*}" -gt 3 ] || { [ "${1%%.*}" -eq 3 ] && [ "$minor" -ge 11 ]; }
}

# Print every interpreter to look at, one on each line.
candidates() {
    if [ -n "${PYTHON:-}" ]; then
        printf '%s\n' "$PYTHON"
        return
    fi
    for name in $NAMES; do
        if command -v "$name" >/dev/null 2>&1; then printf '%s\n' "$name"; fi
    done
    for name in "$PYENV"/versions/3.*/bin/python3; do
        if [ -x "$name" ]; then printf '%s\n' "$name"; fi
    done
}

# Print "VERSION PATH" of each interpreter that will do. Say on file 3 why the others do not.
usable() {
    candidates | while IFS= read -r name; do
        if ! probe "$name"; then
            printf '  %s does not run: %s\n' "$name" "$(printf '%s\n' "$told" | sed -n "s|^$0: [0-9line ]*: ||;1p")" >&3
        elif ! recent "$version"; then
            printf '  %s is Python %s: too old\n' "$name" "$version" >&3
        elif [ "$missing" != - ]; then
            printf '  %s is Python %s without %s\n' "$name" "$version" "$missing" >&3
        else
            printf '%s %s\n' "$version" "$path"
        fi
    done
}

# Make the file $why, for what went wrong.
note() {
    why=$(mktemp)
    trap 'rm -f "$why"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

find_one() {
    note
    found=$(usable 3>"$why" | head -n 1)
    if [ -n "$found" ]; then
        printf '%s\n' "${found#* }"
        return
    fi
    {
        if [ -n "${PYTHON:-}" ]; then
            echo "OBO needs Python 3.11 or newer with venv, ensurepip, ssl and sqlite3. PYTHON=$PYTHON will not do:"
        else
            echo 'OBO needs Python 3.11 or newer with venv, ensurepip, ssl and sqlite3. None was found.'
        fi
        cat "$why"
        other=$(PYTHON='' usable 3>/dev/null | head -n 1)
        if [ -n "${PYTHON:-}" ] && [ -n "$other" ]; then
            echo "There is another:  make PYTHON=${other#* } ..."
        else
            explain
        fi
    } >&2
    exit 1
}

# Say what to install, by what was found.
explain() {
    lacking=$(sed -nE 's/.* is Python (3\.[0-9]+)\.[0-9]+ without .*(venv|ensurepip).*/\1/p' "$why" | head -n 1)
    if [ -n "$lacking" ]; then
        echo "On Debian and Ubuntu:  sudo apt install python$lacking-venv"
    elif grep -q ' without ' "$why"; then
        echo 'That Python was built without libraries that it needs: install those of OpenSSL and SQLite for developers'
        echo '(libssl-dev, libsqlite3-dev) and build it again, or install another Python.'
    else
        echo 'On Debian and Ubuntu:  sudo apt install python3 python3-venv'
        echo 'On Fedora:             sudo dnf install python3'
        echo 'On macOS:              brew install python@3.13'
        echo 'With pyenv:            pyenv install 3.13'
    fi
    echo 'Or name one that is elsewhere:  make PYTHON=/path/to/python3.12 ...'
}

every() {
    usable 3>/dev/null | sort -t . -k 1,1n -k 2,2n -s | awk '
        { split($1, v, "."); minor = v[1] "." v[2]; sub(/^[^ ]* /, "") }
        !seen[minor]++ { print minor, $0 }'
}

differs() {
    if [ -n "${PYTHON:-}" ] && [ -x "$1/bin/python" ]; then
        if ! probe "$PYTHON"; then
            echo "PYTHON=$PYTHON does not run: leave it out to take that of $1, or name one that is here"
            return
        fi
        asked=$version
        if probe "$1/bin/python" && [ "${asked%.*}" != "${version%.*}" ]; then
            echo "$1 has Python $version, and PYTHON=$PYTHON is $asked: run 'make clean' first, or name another place with VENV="
        fi
    fi
}

# Does environment $1 work? Without pip it was interrupted while it was made.
works() {
    [ -x "$1/bin/python" ] || return 1
    "$1/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11) or sys.prefix == sys.base_prefix)' \
        >/dev/null 2>&1 || return 1
    "$1/bin/python" -m pip --version >/dev/null 2>&1 || "$1/bin/python" -m ensurepip >/dev/null 2>&1
}

# Print the path of the wheel of pip that interpreter $1 brings: its own, or that of the distribution.
BUNDLED='
import ensurepip, glob, os, sysconfig
places = [os.path.join(os.path.dirname(ensurepip.__file__), "_bundled"), sysconfig.get_config_var("WHEEL_PKG_DIR")]
print(*(w for p in places if p for w in glob.glob(os.path.join(p, "pip-*.whl"))), sep="\n")
'

# Make environment $1 with interpreter $2. To unpack the wheel of pip takes a tenth of the time in which venv lets pip
# install itself; venv does it where there is no such wheel.
make_environment() {
    wheel=$("$2" -c "$BUNDLED" 2>/dev/null | head -n 1) || wheel=''
    if [ -z "$wheel" ]; then
        "$2" -m venv --clear "$1"
        return
    fi
    "$2" -m venv --clear --without-pip "$1"
    where=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    # pip last: an environment that has it is whole, see works
    printf '#!/bin/sh\nexec "$(dirname "$0")/python" -m pip "$@"\n' >"$1/bin/pip"
    chmod +x "$1/bin/pip"
    "$1/bin/python" -m zipfile -e "$wheel" "$where.part"
    mv "$where.part"/* "$where"
    rmdir "$where.part"
}

# Install the requirement $2 into environment $1, by uv where there is one, else by pip. Neither compiles what it
# installs: the first import does that, for the third of it that is ever imported.
bring() {
    if command -v uv >/dev/null 2>&1; then
        uv pip install --quiet --python "$1/bin/python" --editable "$2" 2>"$why" && return
        cat "$why" >&2
        echo 'uv could not install that; trying pip' >&2  # pip may know another index, or other certificates
    fi
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --no-compile --prefer-binary \
        --editable "$2" 2>"$why" || failed=$?
    cat "$why" >&2
    return "${failed:-0}"
}

# Say why part $1 could not be installed with Python $2, and what to do, by what pip has said.
advise() {
    echo "The part '$1' could not be installed with Python $2; the message of pip is above."
    lacking=$(sed -nE 's/.*No matching distribution found for ([A-Za-z0-9._-]+).*/\1/p' "$why" | head -n 1)
    if grep -qE 'NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError' "$why" ||
        [ "$lacking" = setuptools ]; then  # every index has it for every Python
        echo 'No package index answers: this machine needs a network, or a proxy (HTTPS_PROXY=http://...), or an index of'
        echo 'your own (PIP_INDEX_URL=https://...). Then run make again: it goes on from here.'
    elif grep -q 'No space left on device' "$why"; then
        echo 'The disk is full: make room, then run make again.'
    else
        if [ -n "$lacking" ]; then echo "There is no $lacking for this Python and this machine."; fi
        echo 'Where a package has no wheel for this Python, take another:  make clean, then make PYTHON=python3.13 ...'
        if [ "$1" != core ]; then
            echo "The targets that do not need the part '$1' work without it: obo doctor says what is there."
        fi
    fi
}

install() {
    if ! works "$1"; then
        if [ -e "$1" ] && [ ! -e "$1/pyvenv.cfg" ] && [ -n "$(ls -A "$1")" ]; then
            echo "$1 is there and is no Python environment: name another place with VENV=" >&2
            exit 1
        fi
        python=$(find_one)
        echo "$1: an environment with $python"
        make_environment "$1" "$python"
    fi
    case $2 in
        core) what=.; echo "$1: installing the core: 110 MB on disk" ;;
        test) what='.[test]'; echo "$1: installing all that the tests need, with Spark: 1.4 GB on disk, some minutes" ;;
        *) what=".[$2]"; echo "$1: installing what $2 needs" ;;
    esac
    note
    bring "$1" "$what" || {
        probe "$1/bin/python" || version=unknown
        advise "$2" "$version" >&2
        exit 1
    }
    shorten "$1/bin/obo"
}

# Take out of script $1 what many versions of pip put before the first import, for Windows alone: "import re" takes longer
# than all that is before it, and until the script imports the framework nothing deals with Ctrl-C.
shorten() {
    if grep -q '^import re$' "$1" 2>/dev/null; then
        sed -e '/^import re$/d' -e '/^ *sys\.argv\[0\] = re\.sub(/d' "$1" >"$1.part"
        chmod +x "$1.part"
        mv "$1.part" "$1"
    fi
}

case ${1:-} in
    find) find_one ;;
    all) every ;;
    differs) differs "$2" ;;
    install) install "$2" "$3" ;;
    *) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
