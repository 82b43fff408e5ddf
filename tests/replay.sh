#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# leat replay: what it prints, to the last character; the same twice; what goes into maps and variables; what it
# refuses, and its exit codes.
set -eu
. "$(dirname "$0")/common.sh"
. "$top/tests/replay-common.sh"

ln -s "$objects/replay.bpf.o" many.bpf.o
many=many.bpf.o

# ---- the examples ----

replay 0 "$examples/drop_udp_port.bpf.o" in.pcap --verdicts
prints 'drop_udp_port' <<'TEXT'
program drop_udp_port (xdp) of drop_udp_port.bpf.o
maps before:
  .rodata: {"port": 5002}
  .bss: {"dropped": 0}
packet 1: 1700000000.000000000, 42 bytes: pass
packet 2: 1700000001.001000000, 52 bytes: drop
packet 3: 1700000002.002000000, 42 bytes: pass
packet 4: 1700000003.003000000, 42 bytes: drop
packet 5: 1700000004.004000000, 142 bytes: pass
packets: 5, 320 bytes
  aborted            0
  drop               2
  pass               3
  tx                 0
  redirect           0
maps after:
  .bss: {"dropped": 2}
TEXT
replay 0 "$examples/drop_udp_port.bpf.o" in.pcap --set port=80 -o out.pcap
claim 'a constant is set from outside' grep -q 'drop  *1$' out
claim 'what passed is written' grep -qx 'written: 4' out
"$top/tests/pcap-tool" show in.pcap | head -n 4 >first
"$top/tests/pcap-tool" show out.pcap >written
claim 'it has its bytes and its time' diff first written
replay 0 "$examples/drop_udp_port.bpf.o" in.pcap --keep=drop -o out.pcap
"$top/tests/pcap-tool" show in.pcap | sed -n '2p;4p' >first
"$top/tests/pcap-tool" show out.pcap >written
claim '--keep=drop: what was dropped' diff first written

replay 0 "$examples/reflect.bpf.o" in.pcap -o out.pcap
"$top/tests/pcap-tool" show out.pcap >written
claim 'reflect: addresses are swapped' grep -q ' 020000000001020000000002' written
equal 'reflect: all go back' "$(wc -l <written)" 5

replay 0 "$examples/count_proto.bpf.o" in.pcap
prints 'count_proto' <<'TEXT'
program count_proto (xdp) of count_proto.bpf.o
packet 1: events (16 bytes): {"time": 1700000000000000000, "proto": {"ethertype": 2048, "ip": 17}, "length": 42}
packet 3: events (16 bytes): {"time": 1700000002002000000, "proto": {"ethertype": 2054, "ip": 0}, "length": 42}
packets: 5, 320 bytes
  aborted            0
  drop               0
  pass               5
  tx                 0
  redirect           0
maps after:
  protos (percpu_hash, 2 elements)
    {"ethertype": 2054, "ip": 0}: {"packets": 1, "bytes": 42}
    {"ethertype": 2048, "ip": 17}: {"packets": 4, "bytes": 278}
TEXT
replay 0 "$examples/count_proto.bpf.o" in.pcap --json --verdicts
prints 'count_proto as JSON' <<'TEXT'
{
  "object": "count_proto.bpf.o",
  "program": "count_proto",
  "section": "xdp",
  "capture": "in.pcap",
  "maps_before": {
    "protos": {
      "type": "percpu_hash",
      "elements": []
    }
  },
  "variables_before": {},
  "packets": 5,
  "bytes": 320,
  "verdicts": {
    "aborted": 0,
    "drop": 0,
    "pass": 5,
    "tx": 0,
    "redirect": 0,
    "unknown": 0
  },
  "skipped": {
    "truncated": 0,
    "runt": 0,
    "oversize": 0
  },
  "written": 0,
  "packet_verdicts": [
    {"packet": 1, "time": "1700000000.000000000", "length": 42, "verdict": "pass"},
    {"packet": 2, "time": "1700000001.001000000", "length": 52, "verdict": "pass"},
    {"packet": 3, "time": "1700000002.002000000", "length": 42, "verdict": "pass"},
    {"packet": 4, "time": "1700000003.003000000", "length": 42, "verdict": "pass"},
    {"packet": 5, "time": "1700000004.004000000", "length": 142, "verdict": "pass"}
  ],
  "events": [
    {"packet": 1, "map": "events", "size": 16, "data": {"time": 1700000000000000000, "proto": {"ethertype": 2048, "ip": 17}, "length": 42}},
    {"packet": 3, "map": "events", "size": 16, "data": {"time": 1700000002002000000, "proto": {"ethertype": 2054, "ip": 0}, "length": 42}}
  ],
  "lost": {},
  "traces": [],
  "traps": [],
  "maps_after": {
    "protos": {
      "type": "percpu_hash",
      "elements": [
        {"key": {"ethertype": 2054, "ip": 0}, "values": [{"packets": 1, "bytes": 42}]},
        {"key": {"ethertype": 2048, "ip": 17}, "values": [{"packets": 4, "bytes": 278}]}
      ]
    }
  },
  "variables_after": {}
}
TEXT

# ---- maps and variables ----

replay 0 $many in.pcap -p count --set cfg.limit=50 --set 'table[3]=9' --set cfg.step=3 --map counts='0=5,1=0x10' \
	--map settings='10.0.0.1={"mood":"WILD","mac":"02:00:00:00:00:01","name":"a,b=\"c"},1.2.3.4={}' \
	--map percpu=0=100 --cpu 2
random=$(sed -n 's/.*"random": \([1-9][0-9]*\).*/\1/p' out)
prints 'maps and variables that are filled' <<TEXT
program count (xdp) of many.bpf.o
maps before:
  counts (array, 2 elements)
    0: 5
    1: 16
  percpu (percpu_array, 1 element)
    0: cpu0 100, cpu1 100, cpu2 100, sum 300
  settings (hash, 2 elements)
    16777226: {"mood": "WILD", "mac": [2, 0, 0, 0, 0, 1], "name": "a,b=\"c"}
    67305985: {"mood": "CALM", "mac": [0, 0, 0, 0, 0, 0], "name": ""}
  .rodata: {"cfg": {"limit": 50, "step": 3, "on": 0, "name": ""}, "sample.____fmt": "length %d of \"%s\""}
  .bss: {"table": [0, 0, 0, 9], "random": 0, "sample_type": "0x0000000000000000", "packet_sample_type": "0x0000000000000000"}
packets: 5, 320 bytes
  aborted            0
  drop               5
  pass               0
  tx                 0
  redirect           0
maps after:
  counts (array, 2 elements)
    0: 14
    1: 22
  percpu (percpu_array, 1 element)
    0: cpu0 100, cpu1 100, cpu2 420, sum 620
  settings (hash, 2 elements)
    16777226: {"mood": "WILD", "mac": [2, 0, 0, 0, 0, 1], "name": "a,b=\"c"}
    67305985: {"mood": "CALM", "mac": [0, 0, 0, 0, 0, 0], "name": ""}
  .bss: {"table": [3, 2, 0, 9], "random": $random, "sample_type": "0x0000000000000000", "packet_sample_type": "0x0000000000000000"}
TEXT

for args in '--prog count' '--prog count --seed 2' '--prog sample --verdicts' '--prog route --map ports=7=3'; do
	for format in '' --json; do
		replay 0 $many in.pcap $args $format
		mv out once
		replay 0 $many in.pcap $args $format
		claim "$args $format: twice the same" cmp once out
	done
done
replay 0 $many in.pcap --prog count --engine interp
cp out interpreted
replay 0 $many in.pcap --prog count
claim 'interpreted and compiled say the same' cmp interpreted out
replay 0 $many in.pcap --prog count --seed 2
deny 'another seed, other numbers' grep -q "\"random\": $random," out

cat >fill.json <<'JSON'
{
  "counts": [{"key": 2, "value": 18446744073709551610}, {"key": "3", "value": "0xff"}],
  "percpu": {"type": "x", "elements": [{"key": 1, "values": [4, 5]}]},
  "settings": [{"key": "10.0.0.1", "value": {"mood": 1, "name": "json"}}]
}
JSON
replay 0 $many in.pcap --prog count --map fill.json --cpu 1 --json
python3 - out again.json >values <<'PYTHON'
import json, sys
said = json.load(open(sys.argv[1]))
for name, it in said["maps_before"].items():
    for element in it["elements"]:
        print(name, element["key"], element.get("value", element.get("values")))
json.dump(said["maps_before"], open(sys.argv[2], "w"))
PYTHON
cat >should <<'TEXT'
counts 2 18446744073709551610
counts 3 255
percpu 1 [4, 5]
settings 16777226 {'mood': 'WILD', 'mac': [0, 0, 0, 0, 0, 0], 'name': 'json'}
TEXT
claim 'maps filled from a file' diff should values
mv out once
replay 0 $many in.pcap --prog count --map again.json --cpu 1 --json
claim 'what was printed fills maps again' cmp once out
replay 0 $many in.pcap --prog count --map once --cpu 1 --json
python3 - once out >is <<'PYTHON'
import json, sys
first, second = (json.load(open(path)) for path in sys.argv[1:])
print(first["maps_after"] == second["maps_before"])
PYTHON
equal 'a whole output does, too, with what maps held in the end' "$(cat is)" True

# ---- maps of maps ----

nested=$objects/progs/nested.v3.bpf.o
replay 0 "$nested" in.pcap -p count --map 'counters=1=new:7,3=small' --map 'counters[1]=2=[5,0,0]'
sed -n '/^maps after/,$p' out >is
cat >should <<'TEXT'
maps after:
  counters (array_of_maps, 4 elements)
    0: "small"
    1: "counters[1]"
    2: "large"
    3: "small"
  counters[1] (array, 1 element)
    2: [17, 0, 0]
TEXT
claim 'inner maps have names and contents' diff should is
replay 0 "$nested" in.pcap -p count --map 'counters=1=new' --json
mv out once.json
replay 0 "$nested" in.pcap -p count --map once.json
claim 'what was printed makes them again' grep -qxF '    2: [24, 0, 0]' out
replay 1 "$nested" in.pcap -p count --map 'counters=1=x'
says 'no such inner map' "counters: map 'counters' holds maps, and there is no map 'x' (nor is it 'new' or 'new:N')"
replay 1 "$nested" in.pcap -p count --map 'counters=1=counters'
says 'a map of maps is no inner map' "map 'counters' does not take map 'counters', which is not like its template"
replay 1 "$nested" in.pcap -p count --map 'counters=4=new'
says 'no such place' "map 'counters' does not take a new map: "

# ---- other verdicts, records, traces ----

replay 0 $many in.pcap -p route --verdicts --map ports=2=9 --map 'nets=10.0.0.0/8=2,10.1.0.0/16=1'
claim 'an entry that is missing: the action of the flags' grep -q 'packet 1: .*: tx$' out
replay 0 $many in.pcap -p route --verdicts --map ports=2=9 --map 'nets=10.0.0.0/8=2'
claim 'a redirect by a map' grep -qx 'packet 5: 1700000004.004000000, 142 bytes: redirect to ports\[2\], port 9' out
replay 0 "$objects/devmap.bpf.o" in.pcap --verdicts --set flags=0 --map 'to=0={"port": 9, "prog": "stamp"},4=7'
claim 'a redirect through the program of an entry' grep -q ': redirect to to\[0\], port 9 through stamp$' out
claim 'an entry with a program' grep -qx '    0: {"port": 9, "prog": "stamp"}' out
claim 'and one without' grep -qx '    4: 7' out
replay 0 "$objects/devmap.bpf.o" in.pcap --verdicts --map to=0=9
claim 'a redirect to all of a map' grep -q ': redirect to all of to$' out
replay 0 $many in.pcap -p send --verdicts
claim 'a redirect to a port' grep -qx 'packet 5: 1700000004.004000000, 142 bytes: redirect to port 5' out
replay 0 $many in.pcap -p send --verdicts --json
claim 'a redirect in JSON' grep -qF '"length": 42, "verdict": "redirect", "port": 5}' out
replay 0 $many in.pcap -p forget --verdicts
claim 'where a helper said' grep -q '^packet 2: .*: redirect to port 5$' out
claim 'no helper said where: not what was said before' grep -q '^packet 3: .*: redirect to nowhere$' out
claim 'a miss takes back what was said' grep -q '^packet 5: .*: redirect to nowhere$' out
replay 0 $many in.pcap -p sample -e samples=packet_sample --queue 2 --ifindex 9
claim 'a perf event by its struct' \
	grep -qx 'packet 5: samples (12 bytes): {"sample": {"length": 142, "port": 9, "queue": 2}, "packet": \[2, 0, 0, 0\]}' out
replay 0 $many in.pcap -p sample -e samples=sample
claim 'a struct of another size is not forced on it' grep -q '^packet 5: samples (12 bytes): "8e:' out
claim 'a trace' grep -q '^packet 5: trace: length 142 of "a.*b"$' out
replay 0 $many in.pcap -p sample --ifindex 9
claim 'without a struct: bytes, the packet behind them' \
	grep -qx 'packet 2: samples (12 bytes): "34:00:00:00:09:00:00:00:02:00:00:00"' out
replay 0 $many in.pcap -p jump --queue 2 --map jumps=2=grow,1=odd -o out.pcap
claim 'a tail call to a program that --map put there' grep -q 'pass  *5$' out
"$top/tests/pcap-tool" show out.pcap >written
claim 'the packet as the program left it' grep -q '^1700000000000000000 48 48 00000000020000000002.*0000$' written
replay 0 $many in.pcap -p jump --queue 1 --map jumps=2=grow,1=odd
claim 'a number that is no verdict' grep -q 'unknown  *5 ' out
replay 0 $many in.pcap -p jump
claim 'a tail call to nothing' grep -q 'aborted  *5$' out

replay 0 "$examples/reflect.bpf.o" in.pcap -o -
"$top/tests/pcap-tool" show out >written
equal 'a capture to standard output' "$(wc -l <written)" 5
claim 'the report is on standard error then' grep -q 'tx  *5$' err
code=0
"$LEAT_BIN" replay "$examples/reflect.bpf.o" - <in.pcap >out 2>err || code=$?
equal 'a capture from standard input' "$code" 0
claim 'all of it' grep -q 'tx  *5$' out

replay 6 $many in.pcap -p reckless
claim 'a trap: program, instruction, source' grep -qE \
	'^trap: program reckless, instruction [0-9]+ \(.*replay\.bpf\.c:[0-9]+: .*data\[99\].*\): .*, 4 times$' out
claim 'and the rest of the report' grep -q 'pass  *1$' out
replay 6 $many in.pcap -p reckless --json
claim 'a trap in JSON' python3 -c 'import json; t = json.load(open("out"))["traps"]; assert t[0]["count"] == 4 and len(t) == 1'

# ---- large arrays ----

ln -s "$objects/replay_large.bpf.o" large.bpf.o
large=large.bpf.o
replay 0 $large in.pcap -p use_large --cpu 1
claim 'of a large array, the element that was written' grep -q '^    200000: {"first": 5, ' out
equal 'and no other' "$(grep -c '^    [0-9]*: ' out)" 2
claim 'of a large per-CPU array as well' grep -qx '    1000000: cpu0 0, cpu1 5, sum 5' out
replay 0 $large in.pcap -p record
claim 'a record of the size of struct event' grep -qx 'packet 5: records (8 bytes): {"number": 1}' out
claim 'one of another size' grep -qx 'packet 5: records (16 bytes): "01:00:00:.*' out
mv out once
replay 0 $large in.pcap -p record -e records=event
claim 'the same when the struct is named' cmp once out
replay 1 $large in.pcap -p use_huge
says 'an array for which there is no memory' 'this machine has not the memory for'
claim 'no report of it' [ ! -s out ]
replay 1 $large in.pcap -p look_up
says 'a map type that is not there has its name' "map 'socks' of type sockmap (15)"
replay 1 $large in.pcap -p task
says 'so has a helper' 'helper number 35 is unknown: bpf_get_current_task'

# ---- captures that are not good ----

replay 4 "$examples/reflect.bpf.o" cut.pcap
claim 'what stands before the fault was run' grep -q 'tx  *4$' out
says 'a capture that is cut off' 'cut.pcap: packet 5: '
replay 4 "$examples/reflect.bpf.o" bad.pcap
claim 'a length that cannot be: what stands before it was run' grep -q 'tx  *1$' out
for file in text empty; do
	replay 4 "$examples/reflect.bpf.o" $file.pcap
	says "$file.pcap is no capture" "$file.pcap: not a capture"
done
replay 4 "$examples/reflect.bpf.o" loop.pcap
says 'not Ethernet' 'link type'
replay 1 "$examples/reflect.bpf.o" nowhere.pcap
says 'no such capture' 'nowhere.pcap: No such file'
for file in nowhere text empty loop; do
	code=0
	"$LEAT_BIN" replay "$examples/reflect.bpf.o" $file.pcap --json >out 2>err || code=$?
	deny "$file.pcap: fails" [ "$code" = 0 ]
	claim "$file.pcap: no report" [ ! -s out ]
done
replay 0 "$examples/reflect.bpf.o" none.pcap
claim 'a capture without packets' grep -qx 'packets: 0, 0 bytes' out
replay 0 "$examples/reflect.bpf.o" odd.pcap
claim 'a packet of 14 bytes is run' grep -qx 'packets: 1, 14 bytes' out
claim 'a runt is passed over' grep -q '^passed over: 1 runt' out
claim 'what is longer than a buffer is passed over' grep -q '^passed over: 1 oversize' out
replay 0 "$examples/reflect.bpf.o" snapped.pcap
claim 'half packets are passed over' grep -q '^passed over: 1 truncated' out
replay 1 "$examples/reflect.bpf.o" in.pcap -o nowhere/out.pcap
says 'an output that cannot be' 'nowhere/out.pcap: No such file'
cp in.pcap same.pcap
replay 1 "$examples/reflect.bpf.o" in.pcap -o in.pcap
says 'an output that is the input' 'in.pcap: is the capture that is read'
claim 'an output that is the input: it is still there' cmp in.pcap same.pcap
claim 'no report then' [ ! -s out ]
if [ -c /dev/full ]; then
	replay 1 "$examples/reflect.bpf.o" in.pcap -o /dev/full
	says 'a full disk' '/dev/full: cannot be written: No space left'
	for args in 'replay --help' 'run --help' 'help' '--help' '--version' \
		"replay $examples/reflect.bpf.o in.pcap" "replay $examples/reflect.bpf.o in.pcap --json" \
		"run --check $top/examples/quickstart.yaml" "run --duration 10ms $top/examples/quickstart.yaml"; do
		code=0
		LEAT_OBJECT_PATH=$examples "$LEAT_BIN" $args >/dev/full 2>err || code=$?
		equal "leat $args to a full disk: exit code" "$code" 1
		says "leat $args to a full disk: why" 'No space left on device'
	done
fi
code=0
(trap '' XFSZ && ulimit -f 512 && exec "$LEAT_BIN" replay "$examples/reflect.bpf.o" big.pcap -o small.pcap) 2>err |
	cat >out
says 'a file that cannot grow' 'small.pcap: cannot be written: File too large'
equal 'what was written is counted' "$(sed -n 's/^written: //p' out)" $((($(wc -c <small.pcap) - 24) / 258))
deny 'nothing is run then' grep -q '^packets: 4000, ' out
claim 'the report is complete' grep -qx '  redirect           0' out

# ---- mistakes ----

# mistake TEXT ARGUMENT...: exit code 1, TEXT on standard error, no report.
mistake() {
	text=$1
	shift
	replay 1 $many in.pcap "$@"
	says "$*: $text" "$text"
	claim "$*: no report" [ ! -s out ]
}

mistake 'several programs, choose one by --prog: count, route, send, forget, sample, jump, grow, reckless, odd'
mistake "no program 'coun' (did you mean 'count'?)" -p coun
mistake "no global variable 'tabl' (did you mean 'table'?)" -p count --set tabl=1
mistake "cfg.limt: no member 'limt' (did you mean 'limit'?)" -p count --set cfg.limt=1
mistake "table[4]: the array has 4 elements" -p count --set 'table[4]=1'
mistake "is not an array" -p count --set 'cfg[0]=1'
mistake "a number and ']' must follow '['" -p count --set 'table[x]=1'
mistake "a number and ']' must follow '['" -p count --set 'table[1=1'
mistake 'is not the name of a variable' -p count --set '.=1'
mistake 'is not the name of a variable' -p count --set 'cfg.=1'
mistake 'cfg.step: 16 does not fit into unsigned 4 bits' -p count --set cfg.step=16
mistake "cfg.limit: 'much' is not a number" -p count --set cfg.limit=much
mistake "the program uses no map 'cuonts' (did you mean 'counts'?)" -p count --map cuonts=0=1
mistake "the program uses no map 'nets'" -p count --map nets=0=1
mistake "counts: 'x' must be KEY=VALUE" -p count --map counts=x
mistake "counts: 'x' is not a number" -p count --map counts=x=1
mistake 'counts: element 4 does not fit: the map has 4 entries' -p count --map counts=4=1
mistake "settings: mood: 'MILD' is not a number or a name of the enum (did you mean 'WILD'?)" -p count \
	--map 'settings=1={"mood":"MILD"}'
mistake 'global variables are set by --set' -p count --map .bss=0=1
mistake 'a map of records cannot be filled' -p sample --map samples=0=1
mistake "no program 'gro'" -p jump --map jumps=0=gro
mistake 'none.json: cannot be opened: No such file' -p count --map none.json
echo '{"counts": [{"key": 1, "value": 1}, {"key": 1}]}' >bad.json
mistake 'bad.json: counts[1]: must be {"key"' -p count --map bad.json
echo '{"percpu": [{"key": 1, "values": [1, 2]}]}' >bad.json
mistake 'bad.json: percpu[0]: needs 1 values' -p count --map bad.json
echo '{"counts": 1}' >bad.json
mistake 'bad.json: counts: must be a list' -p count --map bad.json
for text in '{' '[1]' '"x"' '' '{"counts": [], "counts": []}'; do
	echo "$text" >bad.json
	mistake 'bad.json: ' -p count --map bad.json
done
mistake 'must be a whole number' -p count --map 'counts={"a":99}=1'
mistake "the program uses no map 'smples' (did you mean 'samples'?)" -p sample -e smples=sample
mistake "samples: the object's BTF has no struct 'smple'" -p sample -e samples=smple
mistake 'counts: a map of type array has no records' -p count -e counts=sample
mistake 'text.pcap: is no BTF of a kernel' -p count --btf text.pcap
mistake 'empty.pcap: is no BTF of a kernel' -p count --btf empty.pcap
mistake '.: is no BTF of a kernel' -p count --btf .
replay 1 nowhere.o in.pcap
says 'no such object' 'nowhere.o'
replay 1 in.pcap in.pcap
says 'no object' 'in.pcap'

usage 'OBJ.o and IN.pcap are missing'
usage 'IN.pcap is missing' a.o
usage 'more than OBJ.o and IN.pcap' a.o b c
usage 'VAR=VALUE' a.o b --set x
usage 'MAP=STRUCT' a.o b --event x
usage '--cpu: must be 0..31' a.o b --cpu 32
usage '--seed' a.o b --seed x
usage '--engine' a.o b --engine fast
usage '--keep' a.o b --keep some
usage '--keep: ' a.o b --keep pass
usage '--keep: names no verdict' a.o b -o c --keep=
usage 'unrecognized' a.o b --fast
"$LEAT_BIN" replay --help >out
claim '--help says the exit codes' grep -q '^  6  ' out
done_testing
