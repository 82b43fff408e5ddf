#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# leat prog check: what it says of programs that are proven, tested and refused; --strict; the objects that Debian ships
# need no test at run time.
set -eu
. "$(dirname "$0")/common.sh"

objects=$LEAT_BUILD/tests/bpf
if [ ! -e "$objects/replay.bpf.o" ] || [ ! -e "$LEAT_BUILD/leat-load" ]; then
	echo 'without clang or libbpf there are no eBPF objects'
	exit 77
fi

check() {
	"$LEAT_BIN" prog check "$@" >out 2>err
}

claim 'a program whose accesses are proven' check "$objects/btf_kinds.bpf.o"
claim 'its name and verdict' grep -q '^run (section xdp): good$' out
claim 'what was proven' grep -q ' accesses proven, 0 tested at run time; verified in ' out
claim 'the longest path' grep -q 'longest path [1-9]' out

claim 'a program with a length that is not compared' check "$objects/replay.bpf.o" -p reckless
claim 'its tests are named with their lines' \
	grep -q '^  tested: instruction [0-9]* (replay.bpf.c:[0-9]*: return data\[99\] .*): packet$' out
code=0
check "$objects/replay.bpf.o" -p reckless --strict || code=$?
claim '--strict refuses it' test "$code" = 1
claim 'in words' grep -q 'replay.bpf.c:[0-9]*: return data\[99\] .*): it is not proven to stay within its region (packet)$' out

code=0
check "$objects/load_kfunc.bpf.o" || code=$?
claim 'what cannot run is refused' test "$code" = 1
claim 'and said' grep -q '^calls_kernel (section xdp): refused$' out
code=0
check -j "$objects/load_kfunc.bpf.o" || code=$?
claim 'as JSON, too' test "$code" = 1
claim 'with the mistake' python3 -c '
import json
p = json.load(open("out"))["programs"][1]
assert p["name"] == "calls_kernel" and p["verdict"] == "refused" and len(p["mistakes"]) == 1 and p["mistakes"][0]'

claim 'as JSON' check -j "$objects/replay.bpf.o" -p reckless
claim 'which says the same' python3 -c '
import json
p = json.load(open("out"))["programs"][0]
assert p["name"] == "reckless" and p["verdict"] == "good" and p["tested"] == len(p["tests"]) > 0
assert p["tests"][0]["region"] == "packet" and "data[99]" in p["tests"][0]["source"]
assert p["proven"] == 0 and p["steps"] >= p["reached"] > 0'

for args in '--kernel=maybe check a.o' '' 'verify x.o' 'check' 'check a b' 'check --set x a.o' 'check --nonsense a.o'; do
	code=0
	"$LEAT_BIN" prog $args >out 2>err || code=$?
	claim "leat prog $args: the command line is wrong" test "$code" = 2
done
code=0
check "$dir/none.o" || code=$?
claim 'an object that is not there' test "$code" = 1
claim 'is named' grep -q none.o err

n=0
for object in /usr/lib/*/bpf/xdpfilt_*.o /usr/lib/*/bpf/xdp-dispatcher.o /usr/lib/*/bpf/xsk_def_xdp_prog*.o \
	/usr/lib/*/bpf/xdpdump_xdp.o /usr/libexec/xdp-tools/xdp_pass.o /usr/libexec/xdp-tools/xdp_drop.o; do
	if [ -e "$object" ]; then
		n=$((n + 1))
		claim "$(basename "$object") needs no test at run time" check --strict "$object"
	fi
done
claim 'objects of Debian were there' test "$n" -ge 15
# Objects within programs; their maps have sizes when they are loaded.
mkdir carved
"$LEAT_SRC/tests/bpf/carve" carved /usr/sbin/xdp-bench /usr/sbin/xdp-trafficgen >list
n=0
for object in $(cat list); do
	code=0
	check --strict "$object" || code=$?
	grep -q 'has no XDP program' err && continue
	n=$((n + 1))
	claim "$(basename "$object") needs no test at run time" test "$code" = 0
done
claim 'there were some' test "$n" -ge 6
done_testing
