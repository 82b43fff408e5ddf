#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The command line: what leat says, where it says it, and its exit codes.
set -eu
. "$(dirname "$0")/common.sh"

# leat CODE ARGUMENT...: runs it; it ends with that exit code.
leat() {
	should=$1
	shift
	code=0
	timeout 30 "$LEAT_BIN" "$@" >out 2>err || code=$?
	[ "$code" = "$should" ] || fail "leat $*: exit code is $code, should be $should"
}

# says FILE PATTERN
says() {
	grep -qE -- "$2" "$1"
}

empty() {
	[ ! -s "$1" ]
}

help_and_version() {
	for words in --help -h help 'help run' 'run --help' 'run -h' 'help help'; do
		leat 0 $words
		claim "leat $words: help on standard output" says out usage:
		claim "leat $words: nothing on standard error" empty err
	done
	for words in --version -V; do
		leat 0 $words
		claim "leat $words" says out '^leat [0-9]+\.[0-9]+\.[0-9]+$'
		equal "leat $words: one line" "$(wc -l <out)" 1
	done
}

# wrong PATTERN ARGUMENT...: a mistake on the command line.
wrong() {
	pattern=$1
	shift
	leat 2 "$@"
	claim "leat $*: it is said" says err "$pattern"
	claim "leat $*: nothing on standard output" empty out
}

mistakes() {
	quick=$top/examples/quickstart.yaml
	wrong 'usage:'
	wrong "unknown command 'walk'" walk
	wrong "unknown option '--fast'" --fast
	wrong "unknown command 'walk'" help walk
	wrong 'FILE is missing' run
	wrong 'more than one FILE' run a.yaml b.yaml
	wrong 'fast' run --fast "$quick"
	wrong 'duration' run "$quick" --duration
	for time in soon -1s 0 1x '' 99999999999h; do
		wrong '--duration' run "$quick" --duration "$time"
	done
	wrong '--watch' run "$quick" --watch=often
}

# Whether this leat reads eBPF objects.
has_objects() {
	[ -n "${LEAT_LOAD:-}" ]
}

# The quickstart, with programs that are compiled in where there are no objects.
quickstart=$top/examples/quickstart.yaml
if ! has_objects; then
	quickstart=$dir/quickstart.yaml
	sed -e 's/{ object: redirect.bpf.o,.*{ 0: \([a-z]*\) } } }/{ builtin: redirect, port: \1 }/' \
		-e 's/{ object: redirect.bpf.o, instance.*{ 0: \([a-z]*\) } } }/{ builtin: redirect, port: \1 }/' \
		-e 's/{ object: reflect.bpf.o }/{ builtin: reflect }/' "$top/examples/quickstart.yaml" >"$quickstart"
fi

has_pcap() {
	printf 'ports:\n  a: { type: pcap-in, file: a }\n' >pcap.yaml
	"$LEAT_BIN" run --check pcap.yaml >/dev/null 2>&1
}

checks() {
	for name in quickstart two-namespaces pcap-bridge; do
		file=$top/examples/$name.yaml
		if [ $name = pcap-bridge ] && ! has_pcap; then
			leat 1 run --check "$file"
			claim "$name without libpcap: the type is said" says err 'pcap-in'
			continue
		fi
		if [ $name != pcap-bridge ] && ! has_objects; then
			leat 1 run --check "$file"
			claim "$name without leat-load: it is said" says err 'built without leat-load'
			continue
		fi
		leat 0 run --check "$file"
		equal "$name is valid" "$(cat out)" "$file: valid"
		claim "$name: no message" empty err
	done
	deny 'no capture was made' [ -e out.pcap ]
}

interfaces() {
	ls /sys/class/net
}

# With --check not even an interface of this namespace is made, and no privilege is needed.
check_touches_nothing() {
	cat >touch.yaml <<-'YAML'
	ports:
	  a: { type: tap, ifname: leatcheck0 }
	  b: { type: tap, ifname: leatcheck1, netns: nowhere }
	YAML
	before=$(interfaces)
	leat 0 run --check touch.yaml
	equal 'no interface was made' "$(interfaces)" "$before"
	if [ "$(id -u)" = 0 ]; then
		chmod 755 .
		cp "$LEAT_BIN" copy
		chmod 755 copy
		claim 'valid for a user without privilege' setpriv --reuid=65534 --regid=65534 --clear-groups \
			--bounding-set=-all --inh-caps=-all "$dir/copy" run --check touch.yaml
	fi
}

bad_files() {
	leat 1 run nowhere.yaml
	claim 'a file that is not there is said' says err 'nowhere\.yaml.*No such file'
	leat 1 run .
	claim 'a folder is no file' says err 'Is a directory'
	: >empty.yaml
	leat 1 run --check empty.yaml
	claim 'an empty file is no configuration' says err '^empty\.yaml'
	printf 'ports:\n  a: { type: sink\nworkers: 1\n' >bad.yaml
	leat 1 run --check bad.yaml
	claim 'malformed: the line is said' says err '^bad\.yaml:[0-9]+:[0-9]+: '
	claim 'malformed: nothing on standard output' empty out
	printf 'workers: 99\nports:\n  a: { type: sink, colour: red }\n  b: { type: boat }\nattach:\n  c: [x]\n' >bad.yaml
	leat 1 run bad.yaml
	for place in 1:10 3:20 4; do
		claim "each mistake is said: line $place" says err "^bad\.yaml:$place:"
	done
	claim 'each mistake is said: line 6' says err '^bad\.yaml:6:'
	printf 'ports:\n  a: { type: sink }\n\001\n' >bad.yaml
	leat 1 run --check bad.yaml
	claim 'a byte that is not text: the line is said' says err '^bad\.yaml:3'
}

# clock COMMAND...: sets took to the milliseconds that it takes.
clock() {
	began=$(date +%s%N)
	"$@"
	took=$((($(date +%s%N) - began) / 1000000))
}

within() {
	[ "$1" -ge "$2" ] && [ "$1" -le "$3" ]
}

durations() {
	printf 'ports:\n  a: { type: sink }\n' >idle.yaml
	clock leat 0 run idle.yaml --duration 300ms
	claim "--duration 300ms: $took ms" within "$took" 290 5000
	clock leat 0 run --duration=1 idle.yaml
	claim "--duration 1: $took ms" within "$took" 990 6000
	leat 3 run idle.yaml --duration 50ms --expect-traffic
	claim 'no traffic: it is said' says err 'no packet reached an end'
	printf 'ports:\n  a: { type: pktgen, count: 100 }\n' >dropped.yaml
	leat 3 run dropped.yaml --expect-traffic
	claim 'all of it dropped: it is said' says err 'no packet reached an end'
	claim 'all of it dropped: the reason is in the totals' says out '100 +no_handler'
	leat 0 run "$quickstart" --duration 2s --expect-traffic
	claim 'quickstart: packets came to rest' awk '$1 == "out" && $5 > 1000 { good = 1 } END { exit !good }' out
	claim 'quickstart: nothing is outstanding' grep -qx 'buffers outstanding: 0' out
	printf 'ports:\n  a: { type: pktgen, count: 1000 }\n  b: { type: sink }\nbridges:\n  br0: [a, b]\n' >count.yaml
	leat 0 run count.yaml --expect-traffic
	claim 'it ends with its sources' awk '$1 == "b" && $5 == 1000 { good = 1 } END { exit !good }' out
}

signals() {
	for signal in TERM INT; do
		for file in idle.yaml "$quickstart"; do
			start_leat "$file"
			sleep 0.2
			kill -$signal "$leat"
			code=0
			wait "$leat" || code=$?
			leat=
			equal "SIG$signal ends $(basename "$file")" "$code" 0
			claim "SIG$signal: totals" says out '^totals after'
			claim "SIG$signal: nothing is outstanding" grep -qx 'buffers outstanding: 0' out
		done
	done
}

watching() {
	"$LEAT_BIN" run --watch=100ms --duration 1s "$quickstart" 2>err | cat >out
	claim 'a table to a pipe' says out '^port .*state'
	deny 'no escape sequences in it' grep -q "$(printf '\033')" out
	claim 'several tables' [ "$(grep -c '^program .*runs/s' out)" -ge 5 ]
	code=0
	{ timeout 10 "$LEAT_BIN" run --watch=50ms --duration 5s "$quickstart" 2>err || code=$?; echo $code >code; } |
		head -n 3 >/dev/null
	claim 'a reader that goes away does not hurt' [ "$(cat code)" -le 5 ]
}

help_and_version
mistakes
checks
check_touches_nothing
bad_files
durations
signals
watching
done_testing
