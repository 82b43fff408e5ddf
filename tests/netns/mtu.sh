#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Long frames: they cross where both MTUs allow it, and are dropped and counted where not.
set -eu
. "$(dirname "$0")/common.sh"
long=40

cat >mtu.yaml <<'YAML'
ports:
  a: { type: tap, ifname: t0, netns: a }
  b: { type: tap, ifname: t0, netns: b, mtu: 9000 }
  c: { type: tap, ifname: t0, netns: c }
bridges:
  br0: [a, b, c]
YAML

add_netns a b c
add_tap a t0 1 9000
add_tap b t0 2
add_tap c t0 3
start_leat mtu.yaml
claim 'leat sets the MTU of an interface' grep -q 'mtu 9000' <<-END
	$(ip -n b link show t0)
END
claim 'short packets to the 1500-byte port' ping4 a 3
claim 'the longest packets cross, IPv4' ping4 a 2 -s 8972 -M "do"
claim 'the longest packets cross, IPv6' ping6 b 1 -s 8952 -M "do"
claim 'fragments cross' ping4 a 2 -s 30000
# Bytes on c's port: 14 Ethernet, 20 IPv4, 8 ICMP; the MTU leaves room for one VLAN tag more.
deny 'too long for the 1500-byte port' at a ping -n -q -c $long -i 0.01 -W 1 -s 3000 -M "do" 10.9.0.3
claim 'what fits goes there again' ping4 a 3 -s 1472 -M "do"
# The interface grows behind leat's back: the port keeps its MTU.
ip -n c link set t0 mtu 9000
deny 'too long from the 1500-byte port' at c ping -n -q -c $long -i 0.01 -W 1 -s 3000 -M "do" 10.9.0.1
claim 'what fits comes from there again' ping4 c 1 -s 1472 -M "do"
stop_leat 0
# Half of them on their way out of the port, half on their way in.
equal 'the totals count each of them' "$(drops c oversize)" $((2 * long))
equal 'and none elsewhere' "$(drops a oversize) $(drops b oversize)" '0 0'
done_testing
