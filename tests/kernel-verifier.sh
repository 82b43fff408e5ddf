#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The running kernel's verifier is asked about programs: leat prog check --kernel, and bpf.kernel-verifier in a
# configuration. Needs the privilege to ask it.
set -eu
. "$(dirname "$0")/common.sh"

object=$LEAT_BUILD/tests/bpf/replay.bpf.o
if [ ! -e "$object" ] || [ ! -e "$LEAT_BUILD/leat-load" ]; then
	echo 'without clang or libbpf there are no eBPF objects'
	exit 77
fi

check() {
	"$LEAT_BIN" prog check "$@" >out 2>err
}

# As root, without what makes root root.
powerless() {
	setpriv --bounding-set -all --inh-caps -all "$@" >out 2>err
}

if ! check --kernel=require "$object" -p grow && grep -q 'cannot be asked' out; then
	echo 'bpf(2) is not allowed'
	exit 77
fi

claim 'a program that both accept' check --kernel "$object" -p grow
claim 'is said to be accepted' grep -qx "  the kernel's verifier accepts it" out
claim 'one with maps, constants and tail calls' check --kernel=require "$object" -p jump
claim 'nobody asks without the option' check "$object" -p grow
deny 'and nothing is said' grep -q kernel out

claim 'a program with a test at run time' check --kernel "$object" -p reckless
claim 'is refused by the kernel, in its own words' \
	grep -qx "  the kernel's verifier refuses it: R1 offset is outside of the packet" out
deny 'which refuses it here, too, if that is wanted' check --kernel=require "$object" -p reckless
claim 'in words' grep -q "reckless: the kernel's verifier refuses it: R1 offset is outside of the packet" out

claim 'as JSON' check --kernel -j "$object"
claim 'which says the same' python3 -c '
import json
p = {p["name"]: p for p in json.load(open("out"))["programs"]}
assert p["grow"]["kernel"] == "accepts it" and p["grow"]["kernel_says"] == ""
assert p["reckless"]["kernel"] == "refuses it" and "outside of the packet" in p["reckless"]["kernel_says"]
assert p["reckless"]["verdict"] == "good" and all(p[n]["kernel"] == "accepts it" for n in p if n != "reckless")'

claim 'without privilege' powerless "$LEAT_BIN" prog check --kernel "$object" -p grow
claim 'it is said that it cannot be asked' \
	grep -qx "  the kernel's verifier cannot be asked: Operation not permitted" out
deny 'which is a refusal where it must be' powerless "$LEAT_BIN" prog check --kernel=require "$object" -p grow
claim 'in words' grep -q "grow: the kernel's verifier cannot be asked: Operation not permitted" out

config() {
	cat >config.yaml <<-END
		ports: { a: { type: sink } }
		bpf: { kernel-verifier: $1 }
		programs: { p: { object: $object } }
		attach: { a: p }
	END
	sed -i "s/object: [^ ]*/&, prog: reckless/" config.yaml
}

run() {
	"$LEAT_BIN" run --duration 0.05 config.yaml >out 2>err
}

config require
deny 'a configuration that wants programs to be accepted' run
claim 'says which one is not, and where' \
	grep -q "config.yaml:3:.*: reckless: the kernel's verifier refuses it: R1 offset is outside of the packet" err
config ask
claim 'one that asks runs' run
claim 'with a warning' grep -q "warning: reckless: the kernel's verifier refuses it: R1 offset is outside" err
config off
claim 'one that does not ask' run
deny 'has none' grep -q kernel err
config 'yes'
deny 'any other word' run
claim 'is a mistake' grep -q 'config.yaml:2:.*kernel-verifier' err
done_testing
