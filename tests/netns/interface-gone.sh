#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Interfaces that are set down, deleted, or whose namespace is deleted, all under traffic: their port fails and says
# so, the other ports go on, nothing spins and nothing is lost from the accounts.
set -eu
. "$(dirname "$0")/common.sh"

cat >three.yaml <<'YAML'
ports:
  a: { type: tap, ifname: t0, netns: a }
  b: { type: tap, ifname: t0, netns: b }
  c: { type: tap, ifname: t0, netns: c }
bridges:
  br0: [a, b, c]
YAML
flood=

# make: three namespaces with a TAP each, and leat between them.
make() {
	add_netns a b c
	add_tap a t0 1
	add_tap b t0 2
	add_tap c t0 3
	start_leat three.yaml
}

unmake() {
	stop_flood
	for ns in a b c; do
		ip netns delete $ns 2>/dev/null || :
	done
}

# Traffic from a to c, and what c answers; it goes on when nobody answers.
start_flood() {
	ip netns exec a ping -n -q -f -s 1000 10.9.0.3 >/dev/null 2>&1 &
	flood=$!
	sleep 0.3
}

stop_flood() {
	if [ -n "$flood" ]; then
		kill "$flood" 2>/dev/null || :
		wait "$flood" 2>/dev/null || :
	fi
	flood=
}

# What leat does without any work, so the flood is stopped first.
claim_rest() {
	stop_flood
	sleep 0.3
	claim 'it does not spin' [ "$(cpu_percent 2)" -lt 5 ]
}

make
claim 'ping to c' ping4 a 3
start_flood
ip -n c link set t0 down
sleep 0.3
claim 'c is down: the others go on' ping4 a 2
claim_rest
deny 'it is not a failure' grep -q gone err
ip -n c link set t0 up
ip -n c address replace fd09::3/64 dev t0 nodad
until_true ping4 a 3 || :
claim 'c is up again, IPv4' ping4 a 3
claim 'c is up again, IPv6' ping6 a 3
stop_leat 0
unmake

make
claim 'ping to c' ping4 a 3
start_flood
ip -n c link delete t0
claim 'c is deleted: it is said, with the name of the port' until_true grep -q 'port c: the interface is gone' err
claim 'the others go on, IPv4' ping4 a 2
claim 'the others go on, IPv6' ping6 b 1
equal 'it is said once' "$(grep -c gone err)" 1
claim_rest
stop_leat 4
claim 'the reason for the code is said' grep -q 'a port failed' err
unmake

# Both ends of the traffic, one after the other.
make
claim 'ping to c' ping4 a 3
start_flood
ip -n c link delete t0
ip -n a link delete t0
claim 'a is deleted as well' until_true grep -q 'port a: the interface is gone' err
claim_rest
stop_leat 4
unmake

# A namespace that has lost its name lives on while leat has its interface open.
make
claim 'ping to c' ping4 a 3
start_flood
ip netns delete c
claim 'the namespace of c is deleted: the others go on' ping4 a 2
claim_rest
claim 'the others go on, IPv6' ping6 b 1
stop_leat 0
unmake
done_testing
