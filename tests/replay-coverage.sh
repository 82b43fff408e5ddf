#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# leat replay --coverage: how often lines and instructions run and which ways branches go; as text, JSON and for lcov;
# where the source is another one or not there.
set -eu
. "$(dirname "$0")/common.sh"
. "$top/tests/replay-common.sh"

# A program of which the source can be changed.
cp "$LEAT_SRC/tests/bpf/replay_cover.bpf.c" "$LEAT_SRC/tests/bpf/replay_cover.h" .
compile() {
	clang -g -O2 -target bpf -idirafter "/usr/include/$(uname -m)-linux-gnu" -c replay_cover.bpf.c -o cover.bpf.o "$@"
}
compile
ln -s "$objects/replay.bpf.o" many.bpf.o
args='-p cover --map jumps=1=other'

# ---- lines ----

replay 0 cover.bpf.o in.pcap $args
cp out plain
replay 0 cover.bpf.o in.pcap $args --coverage
sed '/^coverage/,$d' out >is
claim 'the rest of the report is the same' diff plain is
sed -n '/^coverage/,$p' out >cover
# what the comments of the source say: line, times, ways
wants() {
	sed -n 's/^ *\([#0-9]*\) *\([0-9]*\/[0-9]*\)\{0,1\}  *[0-9]*  .*times: \([0-9]*\)\( ways: \([0-9/]*\)\)\{0,1\}.*/\1=\3 \2=\5/p' "$1" |
		sed 's/^#####=/0=/; s/ .*=$//'
}
wants cover >pairs
equal 'lines that say how often they run' "$(wc -l <pairs)" 9
deny 'each does' sh -c "awk -F'[= ]' '\$1 != \$2 || \$3 != \$4' pairs | grep ."
claim 'a line that never ran is marked' grep -q '^ *##### *37  .*huge++' cover
claim 'one without code is not' grep -q '^ *6  #include <linux/bpf.h>$' cover
claim 'the loop as often as it turned' grep -q '^ *8 *39  ' cover
claim 'a file of its own for what is included' grep -qx 'coverage of .*/replay_cover.h' cover
equal 'all lines of both sources' "$(grep -c '^ .*[0-9]  ' cover)" \
	"$(($(cat replay_cover.bpf.c replay_cover.h | wc -l) + 3))"
# sum WHAT: "REACHED TOTAL" of lines, instructions or branches.
sum() {
	sed -n "s/^  $1  *\([0-9]*\) of  *\([0-9]*\)  .*/\1 \2/p" out
}
lines=$(sum lines)
insns=$(sum instructions)
branches=$(sum branches)
# all but one of them
for what in lines branches; do
	set -- $(sum $what)
	equal "$what: one was not reached" $(($2 - $1)) 1
done
claim 'shares' grep -qE '^  lines .*  9[0-9]\.[0-9] %$' out
replay 0 cover.bpf.o in.pcap $args --coverage
sed -n '/^coverage/,$p' out >is
claim 'twice the same' diff cover is
replay 0 cover.bpf.o none.pcap $args --coverage
claim 'no packet, no line' grep -qx "  lines  *0 of  *${lines#* }  *0.0 %" out
replay 0 cover.bpf.o in.pcap -p other --coverage
claim 'only programs that were loaded' grep -qx '  lines  *3 of  *3  *100 %' out

# ---- instructions ----

replay 0 cover.bpf.o in.pcap $args --coverage=insns
claim 'both programs' sh -c 'grep -qx "coverage of program cover" out && grep -qx "coverage of program other" out'
claim 'an instruction under its line' sh -c 'grep -A1 "; 37: huge++;" out | grep -q "^ *##### *[0-9]*  r1 = "'
claim 'the ways of a jump' grep -qE '^ +5 +[0-9]+  if .* goto \+[0-9]+  \[jumped 5, went on 0\]$' out
claim 'what the compiler made up is of no line' grep -q '; of no line$' out
deny 'no lines' grep -q '^coverage of .*\.c' out
replay 0 cover.bpf.o in.pcap $args --coverage=insns --coverage=lines
claim 'both, when both are asked for' sh -c 'grep -q "^coverage of .*\.c" out && grep -q "^coverage of program" out'
replay 0 cover.bpf.o in.pcap $args --coverage=insns --set limit=0
claim 'another constant, another path' sh -c 'grep -A1 "; 35: large++;" out | grep -q "^ *5 "'
replay 6 many.bpf.o in.pcap -p reckless --coverage=insns
claim 'an instruction that ends the program is one that ran' grep -qE '^ +5 +[0-9]+  .*\*\(u8 \*\)\(r[0-9] \+99\)$' out
claim 'and those behind it are not' grep -qE '^ +1 +[0-9]+  exit$' out

# ---- JSON ----

replay 0 cover.bpf.o in.pcap $args --coverage --coverage=insns --json
claim 'all of it as JSON' python3 - $lines $insns $branches <<'PYTHON'
import json, sys
c = json.load(open("out"))["coverage"]
for name, i in (("lines", 1), ("instructions", 3), ("branches", 5)):
    assert c[name] == {"total": int(sys.argv[i + 1]), "reached": int(sys.argv[i])}
main, header = sorted(c["files"], key=lambda f: f["file"].split("/")[-1])
assert header["file"].endswith("/replay_cover.h")
assert header["lines"] == [{"line": 7, "times": 7, "branches": 0, "branches_reached": 0}]
lines = {l["line"]: l for l in main["lines"]}
assert lines[36] == {"line": 36, "times": 5, "branches": 2, "branches_reached": 1}
cover, other = c["programs"]
assert cover["program"] == "cover" and other["program"] == "other"
insns = cover["instructions"]
assert sum(1 for i in insns + other["instructions"] if i["times"]) == c["instructions"]["reached"]
assert {i["times"] for i in insns if i.get("line") == 37} == {0}
assert all(i["jumped"] + i["went_on"] == i["times"] for i in insns if "jumped" in i)
PYTHON
replay 0 cover.bpf.o in.pcap $args --coverage --json
claim 'instructions only when they are asked for' \
	python3 -c 'import json; assert "programs" not in json.load(open("out"))["coverage"]'

# ---- lcov ----

replay 0 cover.bpf.o in.pcap $args --coverage=lcov:cover.info
equal 'the sums are printed' "$(sum lines)" "$lines"
deny 'but no lines' grep -q '^coverage of' out
claim 'lines' grep -qx 'DA:37,0' cover.info
claim 'branches' grep -qE '^BRDA:36,[0-9]+,1,0$' cover.info
claim 'lcov reads it' lcov --rc lcov_branch_coverage=1 --summary cover.info
cp said summary
claim 'the same sums of lines' grep -q "lines.* (${lines% *} of ${lines#* } lines)" summary
claim 'and of branches' grep -q "branches.* (${branches% *} of ${branches#* } branches)" summary
claim 'two runs are one' lcov --rc lcov_branch_coverage=1 -a cover.info -a cover.info -o twice.info
claim 'with twice the counts' grep -qx 'DA:39,16' twice.info
claim 'genhtml makes pages of it' genhtml --branch-coverage -o html cover.info
claim 'with the source' grep -rq 'huge++' html
replay 1 cover.bpf.o in.pcap $args --coverage=lcov:/nowhere/cover.info
says 'a file that cannot be written' '/nowhere/cover.info: cannot be written'
equal 'the report is there all the same' "$(sum lines)" "$lines"
replay 1 cover.bpf.o in.pcap $args --coverage=lcov:/dev/full
says 'a disk that is full' '/dev/full: cannot be written'

# ---- sources that are not there ----

# known TEXT: only the lines that the object holds are shown.
known() {
	replay 0 cover.bpf.o in.pcap $args --coverage
	sed -n '/^coverage of .*\.c$/,/^coverage of/p' out >is
	claim "$1: lines with code" grep -q '^ *8 *39  .*rounds++' is
	deny "$1: no others" grep -q 'include' is
}

sed -i 's/huge++;/tiny++;/' replay_cover.bpf.c
known 'the source was changed since'
sed -i '20,$d' replay_cover.bpf.c
known 'it is shorter'
printf 'a\0b' >replay_cover.bpf.c
known 'it is no text'
rm replay_cover.bpf.c
known 'it is gone'
mkfifo replay_cover.bpf.c
known 'it is a pipe'
rm replay_cover.bpf.c

replay 0 "$objects/load_legacy_plain.bpf.o" in.pcap --coverage=insns --coverage --coverage=lcov:none.info
claim 'an object without lines' grep -q 'the object has no line information' out
claim 'its instructions are counted' grep -qE '^  instructions  *[1-9][0-9]* of' out
claim 'and lcov has nothing' [ ! -s none.info ]

# ---- the command line ----

usage '--coverage: must be lines, insns or lcov:FILE' a.o b --coverage=all
usage '--coverage: must be' a.o b --coverage=lcov:
usage '--coverage: is counted by the interpreter' a.o b --coverage --engine jit
done_testing
