#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# leat replay --time: what it says, never how much: and that the run itself is what it is without.
set -eu
. "$(dirname "$0")/common.sh"
. "$top/tests/replay-common.sh"

ln -s "$objects/replay.bpf.o" many.bpf.o
many=many.bpf.o
number='[0-9]+\.[0-9]'

# timed ARGUMENT...: a run that ends well, with JSON whose figures fit each other; prints names of engines and ratios.
timed() {
	replay 0 "$@" --time=0.02 --json
	claim "$*: figures that fit" python3 - <<'PYTHON'
import json
t = json.load(open("out"))["time"]
assert t["unit"] == "ns/packet" and t["clock"] == "CLOCK_THREAD_CPUTIME_ID"
measured = [e for e in t["engines"] if "median" in e]
for e in measured:
    assert 0 < e["min"] <= e["median"] <= e["max"] and e["empty"] > 0
    assert len(e["samples"]) == (3 if e["name"] == "kernel" else t["rounds"]) >= 3
    assert e["min"] == min(e["samples"]) and e["max"] == max(e["samples"])
assert all(0 < r["min"] <= r["median"] <= r["max"] for r in t["ratios"])
print(*[e["name"] for e in measured])
print(*[r["name"] for r in t["ratios"]])
PYTHON
	cp said names
}

compiled=
if "$LEAT_BIN" replay "$examples/reflect.bpf.o" none.pcap --engine jit >/dev/null 2>&1; then compiled=yes; fi

replay 0 "$examples/drop_udp_port.bpf.o" in.pcap
cp out plain
replay 0 "$examples/drop_udp_port.bpf.o" in.pcap --time=20ms
sed '/^time:/,$d' out >is
claim 'the report of the run is the same' diff plain is
claim 'a headline with the clock' grep -qE '^time: ns per packet, 5 packets, [0-9]+ rounds, CLOCK_[A-Z_]+$' out
claim 'median, least, most and rate' grep -qE "^  interp +$number +$number +$number +$number +[0-9.]+ [kM]/s\$" out
if [ "$compiled" ]; then
	claim 'both engines' grep -qE "^  jit +$number +$number +$number +$number +[0-9.]+ [kMG]/s\$" out
	claim 'and their ratio' grep -qE '^  interp/jit [0-9.]+ \([0-9.]+ \.\. [0-9.]+\)$' out
fi
timed "$examples/drop_udp_port.bpf.o" in.pcap
claim 'engines in JSON' grep -qE '^interp( jit| kernel|$)' names
if grep -q kernel names; then
	replay 0 "$examples/reflect.bpf.o" in.pcap --time=0.02
	claim 'beside them the kernel' grep -qE "^  kernel +$number +$number +$number +$number +[0-9.]+ [kMG]/s\$" out
	claim 'of how many packets' grep -qE '^ +3 test runs of 5 of the packets$' out
	replay 6 $many in.pcap -p reckless --time=0.02
	claim 'a program that the kernel refuses, and why' grep -q '^  kernel *not measured: the kernel refuses reckless: ' out
	replay 0 $many in.pcap -p grow --time=0.02
	claim 'one that does other things the second time' grep -q '^  kernel *not measured: its test run' out
else
	ok 'beside them the kernel # SKIP it does not let this user'
fi
timed "$examples/drop_udp_port.bpf.o" in.pcap --engine interp
claim 'only the one that was asked for' grep -qx 'interp' names

# What must be laid out again, consumed, kept silent.
timed "$examples/reflect.bpf.o" in.pcap --engine interp
timed "$examples/count_proto.bpf.o" in.pcap --engine interp
timed "$examples/reflect.bpf.o" big.pcap --engine interp
timed $many in.pcap -p jump --queue 2 --map jumps=2=grow,1=odd --engine interp
timed $many in.pcap -p count --cpu 2 --map counts=0=5 --set cfg.limit=50 --engine interp
replay 0 $many in.pcap -p sample --time=0.02
equal 'traces and records of the run alone' "$(grep -c 'trace: ' out) $(grep -c ': samples ' out)" '5 5'
replay 6 $many in.pcap -p reckless --time=0.02
claim 'traps are those of the run' grep -q '^trap: .*, 4 times$' out
replay 0 "$examples/drop_udp_port.bpf.o" none.pcap --time
claim 'no packet, no time' grep -qx 'time: no packet was run' out
replay 0 "$examples/drop_udp_port.bpf.o" none.pcap --time --json
claim 'the same in JSON' python3 -c 'import json; assert json.load(open("out"))["time"]["packets"] == 0'
replay 0 "$examples/drop_udp_port.bpf.o" in.pcap --time=0.02 --coverage
claim 'what is counted is the run' grep -qE '^ +5 .* int drop_udp_port' out
replay 4 "$examples/reflect.bpf.o" cut.pcap --time=0.02
claim 'of a capture that is cut off what was run' grep -q '^time: ns per packet, 4 packets' out

usage '--time' a.o b --time=0
usage '--time' a.o b --time=soon
usage '--time' a.o b --time=2h
done_testing
