#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The control socket of leat run, and what the command line shows through it: tables, -j, who may ask, what becomes of a
# socket in use and of one left behind, and clients that mean harm while packets move.
set -eu
. "$(dirname "$0")/common.sh"
sock=$dir/leat.sock

# leat CODE ARGUMENT...: runs it; it ends with that exit code. What it says is in said.out and said.err.
leat() {
	should=$1
	shift
	code=0
	timeout 30 "$LEAT_BIN" "$@" >said.out 2>said.err || code=$?
	[ "$code" = "$should" ] || fail "leat $*: exit code is $code, should be $should: $(cat said.err)"
}

# shows PATTERN ARGUMENT...: the command succeeds, and a line of its table is like that.
shows() {
	pattern=$1
	shift
	leat 0 "$@" --socket "$sock"
	claim "leat $*: $pattern" grep -qE "$pattern" said.out
}

# says PATTERN CODE ARGUMENT...: the command fails with that code and says so.
says() {
	pattern=$1
	shift
	leat "$@"
	claim "leat $*: $pattern" grep -q -- "$pattern" said.err
}

# json EXPRESSION ARGUMENT...: with -j, the expression of Python about r holds.
json() {
	expression=$1
	shift
	leat 0 "$@" -j --socket "$sock"
	claim "leat $* -j: $expression" python3 -c "
import json
r = json.load(open('said.out'))
assert $expression, r"
}

# "once" comes to its end; "slow" goes on, so that the run does.
cat >a.yaml <<YAML
workers: 2
ports:
  once: { type: pktgen, count: 1000, size: 100 }
  slow: { type: pktgen, rate: 10 }
  out: { type: sink }
programs:
  no: { builtin: drop }
  count: { builtin: redirect, port: out }
attach: { once: no, slow: count }
control: { path: $sock, mode: 600 }
YAML

once_is_over() {
	"$LEAT_BIN" port show once --socket "$sock" | grep -q '^ *1  once .*finished'
}

tables() {
	start_leat a.yaml
	until_true once_is_over
	shows "^leat [0-9.]+  a.yaml  pid $leat  2 workers\$" stats
	shows '^once +pktgen +finished +1000 +100000 +0 +0 +1000$' stats
	shows '^memory: [0-9]+ pools, .* committed' stats
	shows '^ +3  out +sink +up +[0-9]+ +- +- +0 ' port
	shows '^ +2  slow +pktgen +up +1500 .* count$' port list
	shows '^rx +0 +[01] +1000 +100000 +[0-9]+ +1000$' port show once
	shows '^slow\.0 +16.0 MiB' pool
	shows '^no +1  built-in +once +1000 +0 +0 +0 +1000 +0 +0$' prog list
	shows '^no +1  built-in' prog show no
	shows '^map +program +type +key +value +entries' map
	shows '^once +rx +0 +1000  xdp_drop +a program said DROP$' drops
	leat 0 drops out --socket "$sock"
	equal 'no drops at the sink' "$(wc -l <said.out)" 1
}

objects() {
	json 'r["pid"] > 0 and r["workers"] == 2 and [p["name"] for p in r["ports"]] == ["once", "slow", "out"]' stats
	json 'r["ports"][0]["rx_packets"] == 1000 == r["ports"][0]["drops"]' stats
	json 'len(r["ports"]) == 1 and r["ports"][0]["rx_queues"][0]["packets"] == 1000' port show once
	json 'r["granule"] == 512 and all(p["outstanding"] >= 0 for p in r["pools"])' pool
	json 'r["programs"][0]["verdicts"]["drop"] == 1000 and r["programs"][1]["ports"] == ["slow"]' prog list
	json 'r == {"maps": []}' map list
	json 'r["drops"] == [{"port": "once", "side": "rx", "queue": 0, "reason": "xdp_drop", "count": 1000,
	"text": "a program said DROP"}]' drops once
}

mistakes() {
	says 'no port .nowhere' 1 port show nowhere --socket "$sock"
	says 'no program .nothing' 1 prog show nothing --socket "$sock"
	says 'no map .nothing' 1 map dump nothing --socket "$sock"
	says 'no port .nowhere' 1 drops nowhere --socket "$sock"
	says 'is leat run running' 1 stats --socket "$dir/none.sock"
	says 'Not a directory\|No such file' 1 stats --socket "$dir/a.yaml/x"
	says 'File name too long' 1 stats --socket "$dir/$(printf '%0200d' 0)"
	for words in 'stats now' 'port walk' 'port show' 'port show a b' 'pool x' 'map dump' 'map dump a b' 'drops a b' \
		'prog show' 'prog list x' 'prog' 'prog walk' 'stats --fast' 'port -p a'; do
		says 'try: leat' 2 $words --socket "$sock"
	done
	for word in stats port pool prog map drops; do
		leat 0 $word --help
		claim "leat $word --help" grep -q "^usage: leat $word" said.out
	done
}

# Many connections, of which none does what it should, while the datapath runs.
cat >harm.py <<'PY'
import os, random, socket, sys
random.seed(1)
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    s.settimeout(10)
    return s
def attempt(what):
    try:
        what()
    except OSError:
        pass
for i in range(300):
    s = connect()
    attempt(lambda: s.sendall(os.urandom(random.randrange(1, 3000))))
    if i % 3 == 0:
        attempt(lambda: s.sendall(b"\n"))
    if i % 3 == 1:
        attempt(lambda: s.shutdown(random.choice([socket.SHUT_RD, socket.SHUT_WR])))
    s.close()
long = connect()
attempt(lambda: long.sendall(b'{"request": "' + b"x" * 100000))
held = [connect() for _ in range(12)]       # they say nothing, and stay
for s in held[:4]:                          # they ask, and do not read
    s.setblocking(False)
    attempt(lambda: [s.send(b'{"request": "pool"}\n' * 100) for _ in range(1000)])
print("held", flush=True)
sys.stdin.read()
PY

harm() {
	before=$(ls /proc/"$leat"/fd | wc -l)
	mkfifo hold
	python3 harm.py "$sock" <hold >harm.out 2>harm.err &
	harm=$!
	exec 3>hold
	until_true grep -q held harm.out || fail "harm is done: $(cat harm.err)"
	shows '^once +pktgen +finished +1000' stats
	shows '^once +rx +0 +1000' drops
	exec 3>&-
	wait $harm
	shows '^once +pktgen' stats
	files_as_before() { [ "$(ls /proc/"$leat"/fd | wc -l)" = "$before" ]; }
	claim 'no descriptor is kept' until_true files_as_before
}

permissions() {
	equal 'the mode is what the file says' "$(stat -c %a "$sock")" 600
	if [ "$(id -u)" = 0 ]; then
		chmod 755 "$dir"
		cp "$LEAT_BIN" copy
		chmod 755 copy
		code=0
		setpriv --reuid=65534 --regid=65534 --clear-groups "$dir/copy" stats --socket "$sock" >said.out \
			2>said.err || code=$?
		equal 'others may not ask' "$code" 1
		claim 'and are told' grep -q 'Permission denied' said.err
	fi
}

taking_over() {
	says 'is in use by another process' 1 run a.yaml --duration 1
	claim 'the mistake has its line' grep -q '^a.yaml:10:1: control: ' said.err
	claim 'the first is not hurt' "$LEAT_BIN" stats --socket "$sock"
	kill -KILL "$leat"
	wait "$leat" || :
	leat=
	claim 'a socket was left behind' test -S "$sock"
	says 'is leat run running' 1 stats --socket "$sock"
	start_leat a.yaml
	claim 'and is replaced' "$LEAT_BIN" stats --socket "$sock"
	stop_leat 0
	deny 'it goes with leat' test -e "$sock"
}

default_place() {
	sed '/^control/d' a.yaml >b.yaml
	LEAT_CONTROL=$dir/other.sock
	export LEAT_CONTROL
	start_leat b.yaml
	leat 0 stats
	claim 'LEAT_CONTROL says where it stands' grep -q b.yaml said.out
	leat 0 run b.yaml --duration 200ms
	claim 'a second one runs without' grep -q 'warning: no control socket: .* is in use' said.err
	leat 0 stats
	stop_leat 0
	echo 'control: off' >>b.yaml
	start_leat b.yaml
	deny 'off: there is none' test -e "$LEAT_CONTROL"
	stop_leat 0
	unset LEAT_CONTROL
	XDG_RUNTIME_DIR=$dir
	export XDG_RUNTIME_DIR
	if [ "$(id -u)" != 0 ]; then
		sed '/^control/d' a.yaml >b.yaml
		start_leat b.yaml
		leat 0 stats
		claim 'XDG_RUNTIME_DIR says where it stands' test -S "$dir/leat/control.sock"
		stop_leat 0
	fi
}

# What an object's maps hold, by name, while it runs.
maps() {
	if [ -z "${LEAT_LOAD:-}" ] || [ ! -e "${LEAT_OBJECT_PATH:-}/count_proto.bpf.o" ]; then return; fi
	cat >c.yaml <<-YAML
	workers: 2
	ports:
	  once: { type: pktgen, count: 1000, size: 100 }
	  slow: { type: pktgen, rate: 1 }
	programs:
	  count: { object: count_proto.bpf.o }
	  again: { object: count_proto.bpf.o, instance: two }
	attach: { once: count, slow: again }
	control: { path: $sock }
	YAML
	start_leat c.yaml
	until_true once_is_over
	shows '^protos +count +percpu_hash' map
	shows '^count +1  count_proto.bpf.o +once +1000 +1000' prog list
	shows '^count_proto of count_proto.bpf.o: [0-9]+ instructions' prog show count
	says 'several objects have a map' 1 map dump protos --socket "$sock"
	shows '^protos \(percpu_hash of count, 1 element\)$' map dump protos -p count
	shows '^  \{"ethertype": 2048, "ip": 17\}: cpu0 \{' map dump protos --prog count
	json 'sum(v["packets"] for v in r["elements"][0]["values"]) == 1000 and "next" not in r' map dump protos -p count
	says 'is a ring' 1 map dump events -p count --socket "$sock"
	stop_leat 0
}

# A program that reaches outside its packets: where, and how often.
traps() {
	object=${LEAT_BUILD:-}/tests/bpf/replay.bpf.o
	if [ -z "${LEAT_LOAD:-}" ] || [ ! -e "$object" ]; then return; fi
	cat >d.yaml <<-YAML
	ports:
	  once: { type: pktgen, count: 1000, size: 60 }
	  slow: { type: pktgen, rate: 1 }
	programs: { wild: { object: $object, prog: reckless } }
	attach: { once: wild }
	control: { path: $sock }
	YAML
	start_leat d.yaml
	until_true once_is_over
	shows '^wild +1 .* once +1000 +0 +0 +0 +0 +1000 +1000$' prog show wild
	shows ' +[0-9]+ +1000  access outside.*  replay.bpf.c:[0-9]*: return data' prog show wild
	json 'sum(t["count"] for t in r["programs"][0]["traps"]) == 1000' prog list
	stop_leat 0
}

tables
objects
mistakes
harm
permissions
taking_over
default_place
maps
traps
done_testing
