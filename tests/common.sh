# SPDX-License-Identifier: BSD-3-Clause
# common.sh: what the shell tests share. A test begins with
#
#	set -eu
#	. "$(dirname "$0")/common.sh"
#
# and is then in an empty folder, $dir, which goes when it ends, as does a leat that still runs.
#
# Each claim that holds is printed as a line of TAP by ok; the first that does not ends the test by fail.

top=${top:-$(cd "$(dirname "$0")/.." && pwd)}
LEAT_BIN=${LEAT_BIN:-$top/build/leat}
dir=${dir:-$(mktemp -d)}
leat=
n_ok=0

clean_up() {
	trap - EXIT INT TERM
	if [ -n "$leat" ]; then kill -KILL "$leat" 2>/dev/null || :; fi
	cd /
	rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$dir"

# ---- claims ----

ok() {
	n_ok=$((n_ok + 1))
	echo "ok $n_ok - $*"
}

# What leat said comes with it.
fail() {
	echo "not ok $((n_ok + 1)) - $*"
	for file in out err; do
		if [ -s "$dir/$file" ]; then sed "s/^/# $file: /" "$dir/$file"; fi
	done
	echo "1..$((n_ok + 1))"
	exit 1
}

# claim TEXT COMMAND...: the command succeeds. What it prints is shown when it does not.
claim() {
	text=$1
	shift
	if ! "$@" >"$dir/said" 2>&1; then
		sed 's/^/# /' "$dir/said"
		fail "$text"
	fi
	ok "$text"
}

# deny TEXT COMMAND...: the command fails.
deny() {
	text=$1
	shift
	if "$@" >"$dir/said" 2>&1; then
		sed 's/^/# /' "$dir/said"
		fail "$text"
	fi
	ok "$text"
}

# equal TEXT IS SHOULD
equal() {
	[ "$2" = "$3" ] || fail "$1: is '$2', should be '$3'"
	ok "$1"
}

done_testing() {
	echo "1..$n_ok"
}

# until_true COMMAND...: waits up to twenty seconds for it to succeed: what takes so long is a machine under load.
until_true() {
	tries=400
	until "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.05
	done
}

# ---- leat ----

runs() {
	cat "/proc/$1"/task/*/comm 2>/dev/null | grep -q leat-worker
}

# start_leat ARGUMENT...: leat run in the background, its output in out and err; returns when its workers run.
start_leat() {
	"$LEAT_BIN" run "$@" >"$dir/out" 2>"$dir/err" &
	leat=$!
	until_true runs "$leat" || fail 'leat starts'
}

# stop_leat CODE: it ends at SIGTERM with that code, and nothing is outstanding.
stop_leat() {
	kill -TERM "$leat" || fail 'leat still runs'
	code=0
	wait "$leat" || code=$?
	leat=
	equal "exit code is $1" "$code" "$1"
	claim 'no buffer is outstanding' grep -qx 'buffers outstanding: 0' "$dir/out"
}

# drops PORT REASON: how many packets the totals say were dropped there for that reason.
drops() {
	awk -v port="$1" -v reason="$2:" '
		/^(program|bridge|pool)/ { here = 0 }
		/^[^ ]/ { here = $1 == port }
		here && $1 == "dropped" && $3 == reason { n = $2 }
		END { print n + 0 }' "$dir/out"
}
