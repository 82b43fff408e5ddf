#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# An XDP router on real traffic: examples/router.yaml with its own table; then the same program with the table of a
# third namespace, whose changes it follows.
set -eu
. "$(dirname "$0")/common.sh"
[ -e "$LEAT_OBJECT_PATH/forward.bpf.o" ] || skip 'without clang there are no eBPF objects'
lost=20

# host NETNS NET OTHER: addresses and neighbours of the only interface; the router is .1, the host .2.
host() {
	ip -n "$1" link set "$1" up
	ip -n "$1" address add "10.8.$2.2/24" dev "$1"
	ip -n "$1" address add "fd08:$2::2/64" dev "$1" nodad
	ip -n "$1" neighbour replace "10.8.$2.1" lladdr "02:00:00:00:08:0$2" dev "$1"
	ip -n "$1" neighbour replace "fd08:$2::1" lladdr "02:00:00:00:08:0$2" dev "$1"
	ip -n "$1" route add 10.8.0.0/16 via "10.8.$2.1"
	ip -n "$1" route add fd08::/16 via "fd08:$2::1"
}

hosts() {
	host leat-red 1
	host leat-blue 2
}

# reach FROM ADDRESS: five answers to five packets.
reach() {
	at "$1" ping -n -q -c 5 -i 0.05 -W 1 "$2" >"$dir/ping" 2>&1 || { cat "$dir/ping"; return 1; }
	grep -q ' 0% packet loss' "$dir/ping"
}

# vanish FROM ADDRESS: no packet is answered.
vanish() {
	! at "$1" ping -n -q -c $lost -i 0.01 -W 1 "$2" >"$dir/ping" 2>&1 && grep -q ' 100% packet loss' "$dir/ping"
}

add_netns leat-red leat-blue
start_leat "$top/examples/router.yaml"
hosts
claim 'IPv4, red to blue' reach leat-red 10.8.2.2
claim 'IPv4, blue to red' reach leat-blue 10.8.1.2
claim 'IPv6, red to blue' reach leat-red fd08:2::2
claim 'IPv6, blue to red' reach leat-blue fd08:1::2
at leat-red ping -n -c 1 -W 1 -t 9 10.8.2.2 >"$dir/ping"
claim 'one hop on the way there and back' grep -q 'ttl=63' "$dir/ping"
claim 'where the table says prohibit nothing comes' vanish leat-red 10.8.66.1
ip -n leat-red address add 10.8.100.5/32 dev leat-red
claim 'a network behind a host' reach leat-blue 10.8.100.5
stop_leat 0
equal 'the totals count what was turned away' "$(drops red xdp_drop)" $lost

# The table of a namespace that has the router's interfaces, and moves no packet itself.
add_netns leat-gw
for i in 1 2; do
	ip -n leat-gw link add "gw$i" address "02:00:00:00:08:0$i" type veth peer name "far$i"
	ip -n leat-gw link set "gw$i" up
	ip -n leat-gw link set "far$i" up
	ip -n leat-gw address add "10.8.$i.1/24" dev "gw$i"
	ip -n leat-gw address add "fd08:$i::1/64" dev "gw$i" nodad
	for address in "10.8.$i.2" "fd08:$i::2"; do
		ip -n leat-gw neighbour add "$address" lladdr "02:00:00:00:0$i:02" dev "gw$i"
	done
done
at leat-gw sh -c 'for f in ipv4 ipv6; do echo 1 >/proc/sys/net/$f/conf/all/forwarding; done'
sed '/^fib:/,$d' "$top/examples/router.yaml" >mirror.yaml
echo 'fib: { mirror: { netns: leat-gw, ports: { red: gw1, blue: gw2 } } }' >>mirror.yaml
start_leat mirror.yaml
hosts
claim 'leat says what it has mirrored' grep -q 'fib: .* routes, .* 2 of 2 ports have their interface' "$dir/err"
claim 'IPv4 by the table of the third namespace' reach leat-red 10.8.2.2
claim 'IPv6 by it' reach leat-red fd08:2::2
ip -n leat-gw route add blackhole 10.8.2.2/32
claim 'a route that comes is followed' until_true vanish leat-red 10.8.2.2
ip -n leat-gw route del blackhole 10.8.2.2/32
claim 'and one that goes' until_true reach leat-red 10.8.2.2
ip -n leat-gw neighbour del fd08:2::2 dev gw2
claim 'a neighbour that goes' until_true vanish leat-red fd08:2::2
ip -n leat-gw neighbour add fd08:2::2 lladdr 02:00:00:00:02:02 dev gw2
claim 'and one that comes' until_true reach leat-red fd08:2::2
at leat-gw sh -c 'echo 0 >/proc/sys/net/ipv4/conf/gw1/forwarding'
claim 'an interface that does not forward any more' until_true vanish leat-red 10.8.2.2
at leat-gw sh -c 'echo 1 >/proc/sys/net/ipv4/conf/gw1/forwarding'
claim 'and does again' until_true reach leat-red 10.8.2.2
ip -n leat-gw link set gw2 down
claim 'an interface that goes down takes its routes along' until_true vanish leat-red 10.8.2.2
stop_leat 0

sed -i 's/leat-gw/leat-none/' mirror.yaml
code=0
"$LEAT_BIN" run mirror.yaml >"$dir/out" 2>"$dir/err" || code=$?
equal 'a namespace that is not there is a mistake' "$code" 1
claim 'with its line' grep -q 'mirror.yaml:[0-9]*:1: fib.mirror: cannot open the network namespace' "$dir/err"
done_testing
