#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# What tcpdump captures of real traffic goes through a bridge and a program and comes out byte for byte.
set -eu
. "$(dirname "$0")/common.sh"

printf 'ports:\n  a: { type: pcap-in, file: a }\n' >has-pcap.yaml
"$LEAT_BIN" run --check has-pcap.yaml >/dev/null 2>&1 || skip 'leat is built without libpcap'

# capture FILE PRECISION: ping and TCP between two namespaces, both directions, as tcpdump sees them.
capture() {
	ip netns exec a tcpdump -Z root -U --immediate-mode -B 32768 --time-stamp-precision "$2" -n -i v0 -w "$1" 2>dump.err &
	dump=$!
	until_true grep -q listening dump.err || fail 'tcpdump listens'
	ping4 a 2 >/dev/null || fail 'ping'
	ping6 a 2 >/dev/null || fail 'ping'
	ip netns exec b iperf3 -s -1 >/dev/null &
	server=$!
	sleep 0.3
	at a iperf3 -c 10.9.0.2 -n 2M >/dev/null || fail 'iperf3'
	wait "$server"
	sleep 0.3
	kill "$dump"
	wait "$dump" || :
	rm -f dump.err
}

# through PRECISION: in.pcap through leat to out.pcap.
through() {
	cat >run.yaml <<-YAML
	ports:
	  in: { type: pcap-in, file: in.pcap }
	  out: { type: pcap-out, file: out.pcap, precision: $1 }
	programs:
	  no-iperf2: { builtin: drop-udp-port, port: 5002 }
	attach:
	  in: [no-iperf2]
	bridges:
	  br0: [in, out]
	YAML
	timeout 20 "$LEAT_BIN" run run.yaml --expect-traffic >out 2>err
}

# No segmentation offload: leat takes no packets that are longer than its MTU.
add_netns a b
ip link add v0 netns a type veth peer name v1 netns b
ip -n a link set v0 gso_max_size 1500 gso_max_segs 1
ip -n b link set v1 gso_max_size 1500 gso_max_segs 1
ip -n a address add 10.9.0.1/24 dev v0
ip -n b address add 10.9.0.2/24 dev v1
ip -n a address add fd09::1/64 dev v0 nodad
ip -n b address add fd09::2/64 dev v1 nodad
ip -n a link set v0 up
ip -n b link set v1 up

for precision in micro nano; do
	capture in.pcap $precision
	claim "$precision: the capture holds traffic" [ "$(tcpdump -n -r in.pcap 2>/dev/null | wc -l)" -gt 100 ]
	claim "$precision: through leat" through $precision
	equal "$precision: nothing is outstanding" "$(grep outstanding out)" 'buffers outstanding: 0'
	claim "$precision: byte for byte" cmp in.pcap out.pcap
done
done_testing
