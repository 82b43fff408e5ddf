#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Every bench runs, prints the JSON object that it should, and leaves no buffer outstanding. Says nothing of speed.
set -eu
. "$(dirname "$0")/common.sh"

# bench CODE ARGUMENT...
bench() {
	should=$1
	shift
	code=0
	timeout 100 "$LEAT_BIN" bench "$@" >out 2>err || code=$?
	[ "$code" = "$should" ] || fail "leat bench $*: exit code is $code, should be $should"
}

# wrong PATTERN ARGUMENT...
wrong() {
	pattern=$1
	shift
	bench 2 "$@"
	claim "leat bench $*: it is said" grep -qE -- "$pattern" err
}

cat >shape.py <<'EOF'
import json
import statistics
import sys

report = json.load(open("out"))
assert list(report) == ["bench", "unit", "better", "variants", "ratios"], list(report)
assert report["bench"] == sys.argv[1] and report["unit"] and report["better"] in ("lower", "higher")
names = [variant["name"] for variant in report["variants"]]
assert names and len(names) == len(set(names)), names
for variant in report["variants"]:
    assert list(variant) == ["name", "samples", "median", "min", "max"], variant
    samples = variant["samples"]
    assert samples and all(isinstance(sample, float) for sample in samples), variant
    assert min(samples) == variant["min"] and max(samples) == variant["max"], variant
    assert abs(statistics.median(samples) - variant["median"]) <= 1e-5 * abs(variant["median"]), variant
for ratio in report["ratios"]:
    assert list(ratio) == ["name", "median", "low", "high"], ratio
    if ratio["median"] is None:  # to 0
        assert ratio["low"] is None and ratio["high"] is None, ratio
    else:
        assert ratio["low"] <= ratio["median"] <= ratio["high"], ratio
EOF


bench 0 --list
benches=$(cut -d' ' -f1 out)
for name in pool return frag free sizing; do
	claim "there is $name" grep -q "^$name " out
done
if [ -e "$LEAT_BUILD/leat-load" ] && command -v clang >/dev/null; then
	claim 'there is bpf' grep -q '^bpf ' out
fi
for name in $benches; do
	bench 0 "$name" --smoke --json
	claim "$name: the object is as it should be" python3 shape.py "$name"
	claim "$name: no buffer is outstanding" grep -qx 'buffers outstanding: 0' err
done

bench 0 pool --smoke
claim 'the table has a line for each variant' grep -qE '^  direct@hold1024 +[0-9.]+ +[0-9.]+ +[0-9.]+ +1$' out
claim 'the table says what is outstanding' grep -qx 'buffers outstanding: 0' out
cpu=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
bench 0 frag --rounds 6 --slice 1 --cpus "$cpu" --json
claim 'samples are as many as the rounds' python3 -c '
import json
variants = {v["name"]: v for v in json.load(open("out"))["variants"]}
assert len(variants["aligned"]["samples"]) == 6, variants["aligned"]'

bench 0 sizing --rounds 1
claim 'what is no multiple of 0 is not said to be one' grep -qE '^  histogram/ewma@64K/wasted +- +- *$' out
claim 'every number is one' sh -c '! grep -qwE -- "-?inf|-?nan" out'

wrong 'NAME is missing'
wrong "unknown bench 'speed'" speed
wrong 'more than one NAME' pool frag
wrong '--rounds' pool --rounds 0
wrong '--rounds' pool --rounds many
wrong '--cpus' pool --cpus 0,x
wrong 'unrecognized option' pool --fast
done_testing
