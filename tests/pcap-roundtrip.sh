#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Captures through a bridge and a program into captures: what is good comes out unchanged, what is not is said and
# counted, and everything before it comes out.
set -eu
. "$(dirname "$0")/common.sh"
tool=$top/tests/pcap-tool

# through CODE [KEYS]: in.pcap through leat to out.pcap, which has those keys more; it ends with that exit code.
through() {
	cat >run.yaml <<-YAML
	ports:
	  in: { type: pcap-in, file: in.pcap }
	  out: { type: pcap-out, file: out.pcap ${2:-} }
	programs:
	  block: { builtin: drop-udp-port, port: 5002 }
	attach:
	  in: [block]
	bridges:
	  br0: [in, out]
	YAML
	rm -f out.pcap
	code=0
	timeout 60 "$LEAT_BIN" run run.yaml >out 2>err || code=$?
	[ "$code" = "$1" ] || fail "exit code is $code, should be $1"
	[ "$code" = 1 ] || grep -qx 'buffers outstanding: 0' out || fail 'no buffer is outstanding'
}

# unchanged: every packet and time of in.pcap is in out.pcap, and nothing else.
unchanged() {
	"$tool" show in.pcap >in.txt
	"$tool" show out.pcap >out.txt
	cmp in.txt out.txt
}

# came N: out.pcap has the first N packets of good.pcap.
came() {
	"$tool" show good.pcap | head -n "$1" >in.txt
	"$tool" show out.pcap >out.txt
	cmp in.txt out.txt
}

# says PATTERN: one line on standard error about the port.
says() {
	grep -qE -- "$1" err
}

formats() {
	for unit in micro nano; do
		for order in native swapped; do
			"$tool" make in.pcap $order $unit 60 14 61 1514 9018 64 1518 15
			through 0 ", precision: $unit"
			claim "$unit, $order: same packets and times" unchanged
			[ $order = swapped ] || claim "$unit, $order: byte for byte" cmp in.pcap out.pcap
		done
	done
	"$tool" make in.pcap native micro
	through 0
	claim 'a capture without packets: byte for byte' cmp in.pcap out.pcap
	"$tool" make in.pcap native micro $(seq 60 1514)
	through 0
	claim 'more than a thousand packets: byte for byte' cmp in.pcap out.pcap
}

pipes() {
	cp good.pcap in.pcap
	through 0
	mkfifo fifo
	sed 's/in\.pcap/fifo/' run.yaml >fifo.yaml
	cat good.pcap >fifo &
	rm -f out.pcap
	code=0
	timeout 20 "$LEAT_BIN" run fifo.yaml >out 2>err || code=$?
	wait $!
	equal 'from a pipe: exit code' "$code" 0
	claim 'from a pipe: byte for byte' cmp good.pcap out.pcap
	sed 's/in\.pcap/"-"/' run.yaml >stdin.yaml
	code=0
	timeout 20 "$LEAT_BIN" run stdin.yaml <good.pcap >out 2>err || code=$?
	equal 'from standard input: exit code' "$code" 0
	claim 'from standard input: byte for byte' cmp good.pcap out.pcap
	sed 's/out\.pcap/"-"/' run.yaml >stdout.yaml
	timeout 20 "$LEAT_BIN" run stdout.yaml 2>err | cat >out.pcap
	claim 'to standard output: byte for byte' cmp good.pcap out.pcap
	claim 'to standard output: the totals are not there' says '^buffers outstanding: 0$'
}

# The records of good.pcap are 16 + 60 bytes long and begin at 24.
faults() {
	head -c $((24 + 3 * 76 + 40)) good.pcap >in.pcap
	through 4
	claim 'cut within a packet: what was before comes out' came 3
	claim 'cut within a packet: the file and the record are said' says 'port in: in\.pcap: record 4: .*trunc'
	head -c $((24 + 3 * 76 + 7)) good.pcap >in.pcap
	through 4
	claim 'cut within a record header: what was before comes out' came 3
	claim 'cut within a record header: it is said' says 'port in: in\.pcap: record 4: .*trunc'

	for bad in 0xffffffff 0x80000000 300000; do
		cp good.pcap in.pcap
		"$tool" patch in.pcap $((24 + 2 * 76 + 8)) I $bad
		through 4
		claim "record length $bad: what was before comes out" came 2
		claim "record length $bad: it is said" says 'port in: in\.pcap: record 3: '
	done
}

refused() {
	claim "$1: the line and the file are said" says "^run\.yaml:2:[0-9]+: .*in\.pcap.*$2"
}

not_captures() {
	: >in.pcap
	through 1
	refused 'an empty file' ''
	head -c 20 good.pcap >in.pcap
	through 1
	refused 'half a file header' 'trunc'
	cp good.pcap in.pcap
	"$tool" patch in.pcap 0 I 0x12345678
	through 1
	refused 'a wrong magic number' 'not a capture'
	cp good.pcap in.pcap
	"$tool" patch in.pcap 20 I 113
	through 1
	refused 'another link type' '113'
	cp good.pcap in.pcap
	"$tool" patch in.pcap 4 H 9
	through 1
	refused 'an unknown version' ''
	rm in.pcap
	through 1
	refused 'no file' 'No such file'
	cp good.pcap in.pcap
	sed 's/out\.pcap/nowhere\/out.pcap/' run.yaml >bad.yaml
	code=0
	"$LEAT_BIN" run bad.yaml >out 2>err || code=$?
	equal 'a folder that is not there: exit code' "$code" 1
	claim 'a folder that is not there: it is said' says '^bad\.yaml:3:[0-9]+: .*nowhere/out\.pcap.*No such file'
}

# Records that are read but cannot be used: the run is good, and the totals count them.
unusable() {
	cp good.pcap in.pcap
	"$tool" record in.pcap 50 70
	"$tool" record in.pcap 0 70
	through 0
	claim 'captured in part: the others come out' came 5
	equal 'captured in part: counted' "$(drops in truncated)" 2

	cp good.pcap in.pcap
	for len in 0 1 13; do "$tool" record in.pcap $len $len; done
	through 0
	claim 'runts: the others come out' came 5
	equal 'runts: counted' "$(drops in runt)" 3

	# 9216 bytes, 14 of Ethernet header and 4 of a VLAN tag are the most that a port takes.
	"$tool" make in.pcap native micro 9000 9014 9234
	through 0
	claim 'frames of 9000 bytes and more: byte for byte' cmp in.pcap out.pcap
	cp good.pcap in.pcap
	for len in 9235 65535 262144; do "$tool" record in.pcap $len $len; done
	through 0
	claim 'too long: the others come out' came 5
	equal 'too long: counted' "$(drops in oversize)" 3

	cp good.pcap in.pcap
	"$tool" record in.pcap 70 50
	through 0
	claim 'more bytes than the packet had: the others come out' came 5
	equal 'more bytes than the packet had: counted' "$(drops in rx_error)" 1
}

outputs() {
	"$tool" make in.pcap native micro 60 1514
	through 0 ', snaplen: 100'
	equal 'snaplen: the packet is cut, its length is kept' \
		"$("$tool" show out.pcap | cut -d ' ' -f 2,3 | tr '\n' ' ')" '60 60 100 1514 '
	if [ -c /dev/full ]; then
		"$tool" make in.pcap native micro $(seq 60 1514)
		sed 's/out\.pcap/\/dev\/full/' run.yaml >full.yaml
		code=0
		timeout 20 "$LEAT_BIN" run full.yaml >out 2>err || code=$?
		claim 'no space: not a success' [ "$code" -ne 0 ]
		claim 'no space: it is said' says '/dev/full.*No space left'
	fi

	# what still fits into the buffer is written only when the port closes
	"$tool" make in.pcap native micro $(seq 60 79)
	(
		trap '' XFSZ
		ulimit -f 1
		code=0
		timeout 20 "$LEAT_BIN" run run.yaml 2>&1 || code=$?
		echo "exit $code"
	) | cat >err
	claim 'no space at the end: it is said' says "capture 'out.pcap' is not complete: File too large"
	claim 'no space at the end: the port has failed' says '^exit 4$'
}

# quiet CODE TEXT: what runs in the background has ended with that code and its totals, and long before the pipe's other
# end, which holds out for a minute from $began on.
quiet() {
	code=0
	wait $leat || code=$?
	leat=
	equal "$2: exit code" "$code" "$1"
	claim "$2: at once" [ $(($(date +%s%N) / 1000000 - began)) -lt 20000 ]
	claim "$2: totals" grep -qx 'buffers outstanding: 0' out
}

now_ms() {
	echo $(($(date +%s%N) / 1000000))
}

# Pipes that say nothing hold up neither the end of the run nor a signal.
silent() {
	cp good.pcap in.pcap
	through 0
	sed 's/in\.pcap/fifo/' run.yaml >fifo.yaml
	sed 's/in\.pcap/"-"/' run.yaml >stdin.yaml
	for len in 0 10 100 150; do
		mkfifo held
		sleep 60 >held &
		holder=$!
		{ head -c $len good.pcap; exec cat held; } >fifo &
		began=$(now_ms)
		"$LEAT_BIN" run --duration 1s fifo.yaml >out 2>err &
		leat=$!
		quiet 0 "silent after $len bytes: the duration"
		{ head -c $len good.pcap; exec cat held; } >fifo &
		"$LEAT_BIN" run stdin.yaml <fifo >out 2>err &
		leat=$!
		until_true runs $leat || fail 'leat starts'
		began=$(now_ms)
		kill $leat
		quiet 0 "silent after $len bytes, standard input: a signal"
		kill $holder
		rm held
	done
	"$LEAT_BIN" run fifo.yaml >out 2>err &
	leat=$!
	until_true runs $leat || fail 'leat starts'
	began=$(now_ms)
	kill $leat
	quiet 0 'no writer: a signal'
}

# mistake NAME PATTERN: two.yaml is refused for that, and old.pcap is what it was.
mistake() {
	code=0
	timeout 20 "$LEAT_BIN" run two.yaml >out 2>err || code=$?
	equal "$1: exit code" "$code" 1
	claim "$1: it is said" says "$2"
	claim "$1: the capture is still there" cmp good.pcap old.pcap
}

destroyed() {
	cp good.pcap old.pcap
	ln -s old.pcap alias.pcap
	for order in in,out out,in out,out; do
		{
			echo 'ports:'
			echo "  a: { type: pcap-${order%,*}, file: old.pcap }"
			echo "  b: { type: pcap-${order#*,}, file: alias.pcap }"
		} >two.yaml
		mistake "$order the same file" "^two\.yaml:3:[0-9]+: .*alias\.pcap.*port 'a'"
	done
	for order in a z; do
		{
			echo 'ports:'
			echo "  $order: { type: pcap-in, file: nothing.pcap }"
			echo "  m: { type: pcap-out, file: old.pcap }"
		} >two.yaml
		mistake "port $order does not start" 'nothing\.pcap.*No such file'
	done
}

"$tool" make good.pcap native micro 60 60 60 60 60
formats
pipes
faults
not_captures
unusable
outputs
silent
destroyed
done_testing
