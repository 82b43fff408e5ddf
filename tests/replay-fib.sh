#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# leat replay --fib: a program that asks bpf_fib_lookup, with the table of a configuration: what it sends where, and
# which configurations are refused.
set -eu
. "$(dirname "$0")/common.sh"

object=$LEAT_BUILD/examples/bpf/forward.bpf.o
if [ ! -e "$object" ] || [ ! -e "$LEAT_BUILD/leat-load" ]; then
	echo 'without clang or libbpf there are no eBPF objects'
	exit 77
fi

# UDP to 10.2.0.9 (known), 10.2.0.8 (no neighbour), 10.3.0.1 (prohibited), 9.9.9.9 (default), 10.2.0.9 with one hop left.
python3 - <<'PYTHON'
import socket, struct

def packet(to, ttl=64):
    head = bytes.fromhex("0200000000020200000000010800")
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 28, 1, 0, ttl, 17, 0) + socket.inet_aton("10.1.0.5") + socket.inet_aton(to)
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xffff) + (total >> 16)
    ip = ip[:10] + struct.pack(">H", 0xffff & ~((total & 0xffff) + (total >> 16))) + ip[12:]
    return head + ip + struct.pack(">HHHH", 1000, 53, 8, 0)

packets = [packet("10.2.0.9"), packet("10.2.0.8"), packet("10.3.0.1"), packet("9.9.9.9"), packet("10.2.0.9", 1)]
with open("in.pcap", "wb") as f:
    f.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for i, p in enumerate(packets):
        f.write(struct.pack("=IIII", 1700000000 + i, 0, len(p), len(p)) + p)
PYTHON

cat >router.yaml <<'YAML'
ports: { lan: { type: sink }, wan: { type: sink } }
fib:
  ports:
    lan: { addresses: [10.1.0.1/16] }
    wan: { addresses: [10.2.0.1/16], mac: "02:00:00:00:00:22" }
  routes:
  - { to: default, via: 10.2.0.7 }
  - { to: 10.3.0.0/16, type: prohibit }
  neighbours:
  - { address: 10.2.0.9, port: wan, mac: "02:00:00:00:00:99" }
  - { address: 10.2.0.7, port: wan, mac: "02:00:00:00:00:77" }
YAML

"$LEAT_BIN" replay "$object" in.pcap --verdicts --fib router.yaml -o out.pcap >out 2>err || fail 'replay --fib runs'
equal 'verdicts are those of the table' "$(sed -n 's/^packet .* bytes: //p' out | tr '\n' ';')" \
	'redirect to port 2;pass;drop;redirect to port 2;pass;'
python3 - >sent <<'PYTHON'
data = open("out.pcap", "rb").read()
at, packets = 24, []
while at < len(data):
    n = int.from_bytes(data[at + 8:at + 12], "little")
    packets.append(data[at + 16:at + 16 + n])
    at += 16 + n
for p in packets:
    words = [int.from_bytes(p[i:i + 2], "big") for i in range(14, 34, 2)]
    total = sum(words)
    total = (total & 0xffff) + (total >> 16)
    print(p[:6].hex(":"), p[6:12].hex(":"), p[22], "good" if total + (total >> 16) == 0xffff else "bad")
PYTHON
claim 'packets leave with the addresses of next hop and port, one hop less, and a good checksum' diff - sent <<'END'
02:00:00:00:00:99 02:00:00:00:00:22 63 good
02:00:00:00:00:02 02:00:00:00:00:01 64 good
02:00:00:00:00:77 02:00:00:00:00:22 63 good
02:00:00:00:00:02 02:00:00:00:00:01 1 good
END
cp out first
"$LEAT_BIN" replay "$object" in.pcap --verdicts --fib router.yaml -o again.pcap >out 2>err || fail 'replay --fib runs again'
claim 'the same twice' cmp first out
"$LEAT_BIN" replay "$object" in.pcap >out 2>err || fail 'replay without --fib runs'
claim 'without a table nothing is forwarded' grep -qx '  pass  *5' out
"$LEAT_BIN" replay "$object" in.pcap --fib router.yaml --ifindex 3 >out 2>err || fail 'replay --ifindex runs'
claim 'nor what comes from a port that the table does not have' grep -qx '  pass  *5' out

# refused TEXT WORDS: the configuration TEXT is a mistake that says WORDS.
refused() {
	printf '%s\n' "$1" >bad.yaml
	code=0
	"$LEAT_BIN" replay "$object" in.pcap --fib bad.yaml >out 2>err || code=$?
	equal "exit code for '$2'" $code 1
	claim "it says '$2'" grep -q "$2" err
}
refused 'ports: { a: { type: sink } }' 'bad.yaml: fib: the section is missing'
refused 'ports: { a: { type: sink } }
fib: { mirror: { ports: { a: eth0 } } }' 'bad.yaml:2:1: fib: a mirror'
refused 'ports: { a: { type: sink } }
fib: { routes: [{ to: 10.0.0.0/40, port: a }] }' "bad.yaml:2:23: fib.routes.to: '10.0.0.0/40' is not a prefix"
rm bad.yaml
code=0
"$LEAT_BIN" replay "$object" in.pcap --fib bad.yaml >out 2>err || code=$?
equal 'a file that is not there' "$code $(grep -c 'bad.yaml: ' err)" '1 1'
done_testing
