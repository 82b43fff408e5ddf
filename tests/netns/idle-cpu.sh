#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A datapath with nothing to do uses less than one per cent of a processor, and answers at once when there is.
set -eu
. "$(dirname "$0")/common.sh"

cat >idle.yaml <<'YAML'
workers: 2
ports:
  a: { type: tap, ifname: t0, netns: a }
  b: { type: tap, ifname: t0, netns: b }
bridges:
  br0: [a, b]
YAML

# How many milliseconds the slowest of five answers took.
slowest() {
	awk -F'[/ ]' '/^rtt/ { print int($(NF - 2)) }' "$dir/ping"
}

add_netns a b
add_tap a t0 1
add_tap b t0 2
start_leat idle.yaml
claim 'ping' ping4 a 2
sleep 0.5
before=$(cpu_ticks)
sleep 5
ticks=$(($(cpu_ticks) - before))
echo "# $ticks ticks of $((5 * $(getconf CLK_TCK)))"
claim 'less than one per cent of a processor in five seconds' [ $((ticks * 100)) -lt $((5 * $(getconf CLK_TCK))) ]
claim 'ping after that' ping4 a 2
claim 'the slowest answer within 50 ms' [ "$(slowest)" -lt 50 ]
stop_leat 0
done_testing
