#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A bridge of three TAP ports and two workers: groups reach everyone, each pair speaks, and an address that turns up
# elsewhere is found there.
set -eu
. "$(dirname "$0")/common.sh"

cat >three.yaml <<'YAML'
workers: 2
ports:
  a: { type: tap, ifname: t0, netns: a }
  b: { type: tap, ifname: t0, netns: b }
  c: { type: tap, ifname: t0, netns: c }
bridges:
  br0: [a, b, c]
YAML

# listen NETNS FILTER: captures there until heard is called.
listen() {
	rm -f "$dir/$1.err"
	ip netns exec "$1" tcpdump -Z root -U --immediate-mode -n -i t0 -Q in -w "$dir/$1.pcap" "$2" 2>"$dir/$1.err" &
	eval "listener_$1=$!"
	until_true grep -q listening "$dir/$1.err" || fail "tcpdump listens in $1"
}

# heard NETNS: how many packets were captured there.
heard() {
	sleep 0.2
	eval "kill \$listener_$1; wait \$listener_$1" 2>/dev/null || :
	tcpdump -n -r "$dir/$1.pcap" 2>/dev/null | wc -l
}

ping_pairs() {
	for from in a b c; do
		for to in 1 2 3; do
			"$1" $from $to || return 1
		done
	done
}

address() {
	ip -n "$1" -br link show t0 | awk '{ print $3 }'
}

# column NAME: of the bridge, out of the totals.
column() {
	awk -v name="$1" '
		$1 == "bridge" { for (i = 1; i <= NF; i++) if ($i == name) at = i }
		$1 == "br0" { print $at }' "$dir/out"
}

add_netns a b c
add_tap a t0 1
add_tap b t0 2
add_tap c t0 3
start_leat three.yaml

listen b 'arp and arp[6:2] == 1 and dst 10.9.0.77'
listen c 'arp and arp[6:2] == 1 and dst 10.9.0.77'
deny 'nobody has the address 10.9.0.77' at a ping -n -q -c 1 -W 3 10.9.0.77
asked=$(heard b)
claim 'an ARP request is flooded' [ "$asked" -ge 2 ]
equal 'to every other port' "$(heard c)" "$asked"
claim 'ping, IPv4, every pair' ping_pairs ping4
claim 'ping, IPv6, every pair' ping_pairs ping6

listen b 'icmp6 and dst ff02::1 and ip6[40] == 128'
listen c 'icmp6 and dst ff02::1 and ip6[40] == 128'
at a ping -n -q -c 4 -i 0.1 -W 1 ff02::1%t0 >/dev/null || fail 'someone answers to ff02::1'
equal 'IPv6 multicast reaches b' "$(heard b)" 4
equal 'IPv6 multicast reaches c' "$(heard c)" 4

# Flooded to two ports by clones while both workers are at it.
listen c 'udp port 7'
at a "$top/tests/netns/udp-count" broadcast 10.9.0.255 7 300 &
first=$!
at b "$top/tests/netns/udp-count" broadcast 10.9.0.255 7 300
wait "$first"
equal 'broadcasts of two ports at once' "$(heard c)" 600

# The address of b moves to c: a neighbour that a knows is now elsewhere.
claim 'a reaches 10.9.0.2 at b' ping4 a 2
moving=$(address b)
ip -n b link set t0 down
ip -n b address flush dev t0
ip -n c link set t0 down address "$moving"
ip -n c link set t0 up
ip -n c address replace 10.9.0.2/24 dev t0
at c ping -n -q -c 1 -W 1 10.9.0.1 >/dev/null || fail 'c speaks with the address of b'
claim 'a reaches 10.9.0.2 at c' ping4 a 2
stop_leat 0
equal 'the totals count one move' "$(column moved)" 1
equal 'nothing was dropped at c' "$(drops c bridge_same_port) $(drops c tx_error)" '0 0'
done_testing
