#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# examples/two-namespaces.yaml on real traffic: ping, TCP and UDP cross the bridge; UDP to the blocked port does not,
# and the totals say how many datagrams that were.
set -eu
. "$(dirname "$0")/common.sh"
blocked=300

# udp FROM TO NUMBER PORT COUNT: sends COUNT datagrams to 10.9.0.NUMBER; prints how many came there.
udp() {
	rm -f "$dir/ready"
	ip netns exec "$2" "$top/tests/netns/udp-count" receive "10.9.0.$3" "$4" "$5" >"$dir/count" 2>"$dir/ready" &
	receiver=$!
	until_true test -s "$dir/ready" || fail 'the receiver starts'
	at "$1" "$top/tests/netns/udp-count" send "10.9.0.$3" "$4" "$5"
	wait "$receiver" || fail 'the receiver ends'
	cat "$dir/count"
}

# iperf NAME PORT ARGUMENT...: from red to blue; the result is in the file NAME.
iperf() {
	name=$1 port=$2
	shift 2
	ip netns exec leat-blue iperf3 -s -1 -p "$port" >"$dir/server" 2>&1 &
	server=$!
	until_true listens leat-blue "$port" || fail 'iperf3 listens'
	timeout 20 ip netns exec leat-red iperf3 -J -p "$port" "$@" >"$dir/$name"
	wait "$server"
}

listens() {
	at "$1" ss -Htln "sport = :$2" | grep -q LISTEN
}

# result NAME PATH: a number out of an iperf3 result; 0 when it is not there.
result() {
	python3 -c '
import json, sys
value = json.load(open(sys.argv[1]))
for key in sys.argv[2].split("."):
    value = value.get(key, {})
print(int(value) if value else 0)' "$dir/$1" "$2"
}

demonstrate() {
	LEAT_BIN=$LEAT_BIN "$top/scripts/netns-demo" run >"$dir/demo" || { cat "$dir/demo"; return 1; }
}

own_address() {
	ip -n leat-blue link show leat-blue | grep -q 02:00:00:00:00:b1
}

more_than() {
	[ "$1" -gt "$2" ]
}

"$top/scripts/netns-demo" up
claim 'netns-demo up can be repeated' "$top/scripts/netns-demo" up
start_leat "$top/examples/two-namespaces.yaml"

claim 'ping, IPv4, red to blue' ping4 leat-red 2
claim 'ping, IPv4, blue to red' ping4 leat-blue 1
claim 'ping, IPv6, red to blue' ping6 leat-red 2
claim 'ping, IPv6, blue to red' ping6 leat-blue 1
claim 'longest packets that an MTU of 1500 allows' ping4 leat-red 2 -s 1472 -M "do"

claim 'TCP, red to blue' iperf tcp 5201 -c 10.9.0.2 -t 1
claim 'its bytes arrive' more_than "$(result tcp end.sum_received.bytes)" 10000000
claim 'TCP, blue to red' iperf tcp-back 5201 -c 10.9.0.2 -t 1 -R
claim 'its bytes arrive' more_than "$(result tcp-back end.sum_received.bytes)" 10000000
claim 'TCP over IPv6' iperf tcp6 5201 -6 -c fd09::2 -n 20M
claim 'its bytes arrive' more_than "$(result tcp6 end.sum_received.bytes)" 10000000
claim 'UDP to a port that is allowed' iperf udp 5201 -c 10.9.0.2 -u -b 20M -l 1000 -t 2
claim 'its datagrams are sent' more_than "$(result udp end.sum.packets)" 3000
claim 'less than one in a hundred is lost' more_than 1 "$(result udp end.sum.lost_percent)"
claim 'TCP to the port that is blocked for UDP' iperf tcp5002 5002 -c 10.9.0.2 -n 1M

equal 'UDP to the port beside the blocked one arrives' "$(udp leat-red leat-blue 2 5003 $blocked)" $blocked
equal 'UDP to the blocked port does not' "$(udp leat-red leat-blue 2 5002 $blocked)" 0
equal 'the other direction is not blocked' "$(udp leat-blue leat-red 1 5002 $blocked)" $blocked

stop_leat 0
equal 'the totals count each blocked datagram' "$(drops red xdp_drop)" $blocked
equal 'and none at the other port' "$(drops blue xdp_drop)" 0
claim 'the program counted the same' awk -v n=$blocked '$1 == "no-iperf2" && $6 == n { good = 1 } END { exit !good }' "$dir/out"

claim 'netns-demo down' "$top/scripts/netns-demo" down
claim 'netns-demo down without anything to remove' "$top/scripts/netns-demo" down
equal 'no namespace is left' "$(ip netns list)" ''
claim 'netns-demo run shows it all' demonstrate
claim 'and how many datagrams were blocked' grep -q 'port 5002: 100 datagrams sent by red, 0 received by blue' "$dir/demo"
equal 'no namespace is left' "$(ip netns list)" ''

# As in the README: the interfaces are leat's own, and go with it.
add_netns leat-red leat-blue
sed 's/netns: leat-blue/netns: leat-blue, mac: "02:00:00:00:00:b1"/' "$top/examples/two-namespaces.yaml" >own.yaml
start_leat own.yaml
ip -n leat-red address add 10.9.0.1/24 dev leat-red
ip -n leat-blue address add 10.9.0.2/24 dev leat-blue
claim 'ping between interfaces that leat has made' ping4 leat-red 2
claim 'an interface has the address that it was given' own_address
stop_leat 0
deny 'the interface in red is gone' ip -n leat-red link show leat-red
deny 'the interface in blue is gone' ip -n leat-blue link show leat-blue
done_testing
