#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# leat replay --expect: verdicts as they should be, which differences are told, and mistakes in the file.
set -eu
. "$(dirname "$0")/common.sh"
. "$top/tests/replay-common.sh"

ln -s "$objects/replay.bpf.o" many.bpf.o
many=many.bpf.o
drop=$examples/drop_udp_port.bpf.o # pass, drop, pass, drop, pass

# expect CODE ARGUMENT...: with what is on standard input.
expect() {
	should_be=$1
	shift
	cat >expected
	replay "$should_be" "$drop" in.pcap --expect expected "$@"
}

# ---- as expected ----

expect 0 <<'TEXT'
# what a person writes

  2: drop       # with a remark
4:drop
*: pass
total drop 2
total packets 5
total tx 0
TEXT
claim 'what is compared is counted' grep -qx 'expected: 5 verdicts compared, all as expected' out
expect 0 <<'TEXT'
2: drop
TEXT
claim 'only what is said' grep -qx 'expected: 1 verdicts compared, all as expected' out
expect 0 <<'TEXT'
1-5: pass
4: drop
2: drop
2: drop
3-5: pass
TEXT
claim 'a packet goes before a range, and the same may be said twice' grep -q ': 5 verdicts compared, all' out
printf '2: drop\r\n*: pass\r\n4: drop' | expect 0
claim 'lines of another system, no end of the last one' grep -q ': 5 verdicts compared, all' out
expect 0 </dev/null
claim 'nothing is expected' grep -q ': 0 verdicts compared, all' out

# ---- as it was printed ----

replay 0 "$drop" in.pcap --verdicts
cp out printed
replay 0 "$drop" in.pcap --expect printed
claim 'what --verdicts printed, as a whole' grep -q ': 5 verdicts compared, all' out
replay 7 "$drop" big.pcap --expect printed
claim 'then the number of packets matters, too' grep -qx 'total packets: expected 5, got 4000' out
claim 'and the verdicts' grep -qx 'packet 2: expected drop, got pass' out
grep '^packet ' printed | sed 1d | expect 0 --verdicts
claim 'lines of it' grep -q ': 4 verdicts compared, all' out
replay 0 "$examples/count_proto.bpf.o" in.pcap --verdicts
cp out printed
replay 0 "$examples/count_proto.bpf.o" in.pcap --expect printed
claim 'among them records are no verdicts' grep -q ': 5 verdicts compared, all' out

route="--map ports=2=9 --map nets=10.0.0.0/8=2"
replay 0 $many in.pcap -p route $route --verdicts
cp out printed
replay 0 $many in.pcap -p route $route --expect printed
claim 'redirects with their target' grep -q ': 5 verdicts compared, all' out
for text in redirect 'redirect to ports[2]' 'redirect to ports[2], port 9'; do
	echo "5: $text" >expected
	replay 0 $many in.pcap -p route $route --expect expected
	claim "may be said as $text" grep -q ': 1 verdicts compared, all' out
done
for text in 'redirect to ports[3]' 'redirect to ports' 'redirect to ports[2], port 8' pass; do
	echo "5: $text" >expected
	replay 7 $many in.pcap -p route $route --expect expected
	claim "is not $text" grep -qxF "packet 5: expected $text, got redirect to ports[2], port 9" out
done
echo '1-5: unknown' >expected
replay 0 $many in.pcap -p jump --queue 1 --map jumps=2=grow,1=odd --expect expected
claim 'numbers that are no verdicts' grep -q ': 5 verdicts compared, all' out

# ---- differences ----

expect 7 <<'TEXT'
1: drop
2-3: drop
5-7: pass
3: tx
9: drop
10-20: drop
12: pass
*: pass
total drop 3
total pass 3
TEXT
sed -n '/: expected/p; /^expected/p' out >is
cat >should <<'TEXT'
packet 1: expected drop, got pass
packet 3: expected tx, got pass
packet 4: expected pass, got drop
packets 6-7: expected pass, but not run
packet 9: expected drop, but not run
packets 10-11: expected drop, but not run
packet 12: expected pass, but not run
packets 13-20: expected drop, but not run
total drop: expected 3, got 2
expected: 5 verdicts compared, not all as expected
TEXT
claim 'each difference once, in order' diff -u should is
replay 7 "$drop" in.pcap --expect expected --json
claim 'the same as JSON' python3 - <<'PYTHON'
import json
said = json.load(open("out"))
assert said["compared"] == 5
d = said["differences"]
assert d[0] == {"packet": 1, "expected": "drop", "got": "pass"}
assert d[3] == {"packet": 6, "last": 7, "expected": "pass", "got": None}
assert d[-1] == {"total": "drop", "expected": 3, "got": 2}
assert len(d) == 9
PYTHON
echo '*: drop' | expect 7 --json
claim 'with --json --expect and no --verdicts' python3 -c 'import json; assert len(json.load(open("out"))["differences"]) == 3'
echo 'total drop 2' | expect 0 --json
claim 'none, as JSON' python3 -c 'import json; assert json.load(open("out"))["differences"] == []'
printf '1: pass\n2-3: pass\n' >expected
replay 7 "$drop" odd.pcap --expect expected
claim 'a packet that was passed over was not run' grep -qx 'packet 1: expected pass, but not run' out
printf '1: pass\n5: pass\n' >expected
replay 7 "$drop" cut.pcap --expect expected
says 'a capture that is cut off is told, too' 'cut.pcap: packet 5: '
printf '*: aborted\n' >expected
replay 7 $many in.pcap -p reckless --expect expected
claim 'a trap and a difference: the higher code' grep -q '^trap: ' out
printf 'total aborted 4\n' >expected
replay 6 $many in.pcap -p reckless --expect expected
claim 'traps are traps, also when the verdict was expected' grep -q 'all as expected$' out
printf '9223372036854775807: pass\n1-9223372036854775806: pass\n2: drop\n4: drop\n' | expect 7
claim 'the largest number' grep -qx 'packet 9223372036854775807: expected pass, but not run' out

# ---- mistakes ----

# wrong LINE TEXT: what is on standard input has a mistake in that line.
wrong() {
	expect 1
	says "$2" "expected:$1: $2"
	claim "$2: nothing was run" [ ! -s out ]
}

printf '1: pass\n2 drop\n' | wrong 2 'after the number comes a colon'
printf '\n1: passed\n' | wrong 2 'a verdict is aborted, drop, pass'
printf '1: redirect to \n' | wrong 1 'a verdict is'
printf '1-: pass\n' | wrong 1 'after the - comes a number'
printf '5-4: pass\n' | wrong 1 'packets are numbered from 1 on'
printf '0: pass\n' | wrong 1 'packets are numbered from 1 on'
printf '99999999999999999999: pass\n' | wrong 1 'must be NUMBER'
printf '*: pass\n* pass\n' | wrong 2 'after * comes a colon'
printf '*: pass\n*: drop\n' | wrong 2 'another verdict for * than said before'
printf '2: pass\n1: pass\n2: drop\n' | wrong 3 'packet 2: another verdict than in line 1'
printf '4-9: pass\n1-3: pass\n3-4: drop\n' | wrong 3 'packet 3: another verdict than in line 2'
printf 'total drops 3\n' | wrong 1 'a total is'
printf 'total drop\n' | wrong 1 'a total is'
printf 'total drop 3 4\n' | wrong 1 'a total is'
printf 'total drop 3\ntotal drop 4\n' | wrong 2 'another number than said before'
printf 'packet 2: drop\n' | wrong 1 'no such line is printed'
printf 'what\n' | wrong 1 'must be NUMBER'
printf 'a\nb\n' | expect 1
equal 'every mistake is told' "$(grep -c '^expected:' err)" 2
yes what | head -n 1000 | expect 1
equal 'but not without end' "$(grep -c '^expected:' err)" 20
printf '1: pass\n\0' | expect 1
says 'a file that is no text' 'expected: is no text'
replay 1 "$drop" in.pcap --expect nowhere
says 'a file that is not there' 'nowhere: No such file'
replay 1 "$drop" in.pcap --expect .
says 'a folder' '.: Is a directory'
done_testing
