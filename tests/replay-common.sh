# SPDX-License-Identifier: BSD-3-Clause
# replay-common.sh: what the tests of leat replay share, after common.sh: captures, and how it is run.

examples=$LEAT_BUILD/examples/bpf
objects=$LEAT_BUILD/tests/bpf
if [ ! -e "$objects/replay.bpf.o" ] || [ ! -e "$LEAT_BUILD/leat-load" ]; then
	echo 'without clang or libbpf there are no eBPF objects'
	exit 77
fi

# in.pcap: UDP to ports 53, 5002, 5002, 80, with an ARP request in their middle; and captures that are not good.
python3 - >make.log <<'PYTHON'
import struct

def udp(port, n):
    head = bytes.fromhex("0200000000020200000000010800")
    udp = struct.pack(">HHHH", 1000, port, 8 + n, 0) + b"x" * n
    return head + struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0) + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + udp

arp = bytes.fromhex("ffffffffffff0200000000010806") + bytes(28)
packets = [udp(53, 0), udp(5002, 10), arp, udp(5002, 0), udp(80, 100)]
def capture(path, packets, snap=65535, link=1):
    with open(path, "wb") as f:
        f.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link))
        for i, p in enumerate(packets):
            f.write(struct.pack("=IIII", 1700000000 + i, i * 1000, min(len(p), snap), len(p)) + p[:snap])

capture("in.pcap", packets)
capture("odd.pcap", [b"short", bytes(14), bytes(40000)])
capture("snapped.pcap", packets, 60)
capture("loop.pcap", packets, link=0)
capture("none.pcap", [])
capture("big.pcap", [udp(53, 200)] * 4000)
data = open("in.pcap", "rb").read()
open("cut.pcap", "wb").write(data[:-1])
open("text.pcap", "wb").write(b"this is not a capture at all")
open("empty.pcap", "wb").write(b"")
open("bad.pcap", "wb").write(data[:24 + 16 + 42] + struct.pack("=IIII", 0, 0, 0xffffffff, 0xffffffff) + data[100:])
PYTHON

# replay CODE OBJECT CAPTURE ARGUMENT...: output in out and err.
replay() {
	should=$1
	object=$2
	capture=$3
	shift 3
	code=0
	timeout 60 "$LEAT_BIN" replay "$object" "$capture" "$@" >out 2>err || code=$?
	[ "$code" = "$should" ] || fail "replay $(basename "$object") $*: exit code is $code, should be $should"
}

# prints TEXT: what replay printed is standard input, but for the folder of the object.
prints() {
	sed "s|$objects/||; s|$examples/||" out >is
	cat >should
	claim "$1" diff -u should is
}

says() {
	claim "$1" grep -qF -- "$2" err
}

# usage PATTERN ARGUMENT...: exit code 2, nothing on standard output.
usage() {
	pattern=$1
	shift
	code=0
	"$LEAT_BIN" replay "$@" >out 2>err || code=$?
	equal "replay $*: exit code" "$code" 2
	says "replay $*: $pattern" "$pattern"
	claim "replay $*: nothing on standard output" [ ! -s out ]
}
