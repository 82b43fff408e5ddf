#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# leat replay and pcapng: captures in it are read; what is written is what draft-ietf-opsawg-pcapng says, block by
# block, with each packet's verdict as comment; tcpdump and leat itself read it.
set -eu
. "$(dirname "$0")/common.sh"
. "$top/tests/replay-common.sh"

ln -s "$objects/replay.bpf.o" many.bpf.o
many=many.bpf.o

# blocks FILE: each block's lengths and padding are checked; what it says is printed, one line a block.
cat >blocks.py <<'PYTHON'
import struct, sys

def options(data):
    at, found = 0, []
    while True:
        code, length = struct.unpack_from("=HH", data, at)
        value = data[at + 4:at + 4 + length]
        padding = data[at + 4 + length:at + 4 + (length + 3 & ~3)]
        assert len(value) == length and not any(padding)
        at += 4 + (length + 3 & ~3)
        if not code:
            assert not length and at == len(data)
            return found
        found.append((code, value))

def say(kind, body):
    if kind == 0x0A0D0D0A:
        magic, major, minor, length = struct.unpack_from("=IHHq", body)
        assert magic == 0x1A2B3C4D and length == -1
        return "section %d.%d %s" % (major, minor, options(body[16:]))
    if kind == 1:
        link, reserved, snap = struct.unpack_from("=HHI", body)
        assert not reserved
        return "interface of type %d, snap %d %s" % (link, snap, options(body[8:]))
    assert kind == 6
    interface, high, low, captured, original = struct.unpack_from("=IIIII", body)
    end = 20 + (captured + 3 & ~3)
    assert not any(body[20 + captured:end])
    option = dict(options(body[end:]))
    assert option[2] == struct.pack("=I", 1) and option[7][0] == 2 and len(option) == 3
    return "packet %d %d %d/%d %s verdict %d: %s" % (interface, high << 32 | low, captured, original,
        body[20:20 + captured].hex(), struct.unpack("=q", option[7][1:])[0], option[1].decode())

data, at = open(sys.argv[1], "rb").read(), 0
while at < len(data):
    kind, length = struct.unpack_from("=II", data, at)
    assert length % 4 == 0 and struct.unpack_from("=I", data, at + length - 4)[0] == length
    print(say(kind, data[at + 8:at + length - 4]))
    at += length
assert at == len(data)
PYTHON

# ---- written ----

replay 0 "$examples/drop_udp_port.bpf.o" in.pcap -o out.pcapng --keep all
claim 'all are written' grep -qx 'written: 5' out
claim 'the blocks are well formed' python3 blocks.py out.pcapng
python3 blocks.py out.pcapng >blocks
equal 'section and interface' "$(head -n 2 blocks)" "section 1.0 [(4, b'leat replay')]
interface of type 1, snap 0 [(2, b'port 1'), (9, b'\\t')]"
# time, lengths and bytes as pcap-tool shows those of the capture
sed -n 's/^packet 0 \([0-9]*\) \([0-9]*\)\/\([0-9]*\) \([0-9a-f]*\) .*/\1 \2 \3 \4/p' blocks >is
"$top/tests/pcap-tool" show in.pcap >should
claim 'packets with their times in nanoseconds' diff should is
sed -n 's/.*verdict/verdict/p' blocks >is
cat >should <<'TEXT'
verdict 2: leat: pass (prog drop_udp_port)
verdict 1: leat: drop (prog drop_udp_port)
verdict 2: leat: pass (prog drop_udp_port)
verdict 1: leat: drop (prog drop_udp_port)
verdict 2: leat: pass (prog drop_udp_port)
TEXT
claim 'each with its verdict' diff should is

replay 0 "$examples/drop_udp_port.bpf.o" in.pcap -o out.pcapng
equal 'without --keep what passed' "$(python3 blocks.py out.pcapng | grep -c '^packet.*: leat: pass ')" 3
replay 0 $many in.pcap -p route --map ports=2=9 --map 'nets=10.0.0.0/8=2' -o out.pcapng
claim 'where a packet is redirected to' \
	sh -c 'python3 blocks.py out.pcapng | grep -q "verdict 4: leat: redirect to ports\[2\], port 9 (prog route)$"'
replay 0 $many in.pcap -p jump --queue 1 --map jumps=2=grow,1=odd --ifindex 7 --keep all -o out.pcapng
claim 'a number that is no verdict' \
	sh -c 'python3 blocks.py out.pcapng | grep -q ": leat: unknown (prog jump)$"'
claim 'the port has its number' sh -c 'python3 blocks.py out.pcapng | grep -q "^interface .*port 7"'
replay 6 $many in.pcap -p reckless -o out.pcapng --keep aborted
equal 'packets at which the program was ended' \
	"$(python3 blocks.py out.pcapng | grep -c ': leat: aborted (prog reckless)$')" 4

replay 0 "$examples/reflect.bpf.o" in.pcap -o - --format pcapng
claim 'to standard output' sh -c 'python3 blocks.py out | grep -q ": leat: tx (prog reflect)$"'
claim 'the report is on standard error then' grep -q 'tx  *5$' err
replay 0 "$examples/reflect.bpf.o" in.pcap -o plain.pcapng --format pcap
claim '--format goes before the name' "$top/tests/pcap-tool" show plain.pcapng
replay 0 "$examples/reflect.bpf.o" none.pcap -o none.pcapng
equal 'of no packet: a section and an interface' "$(python3 blocks.py none.pcapng | wc -l)" 2
replay 1 "$examples/reflect.bpf.o" in.pcap -o /dev/full --format pcapng
says 'a disk that is full' '/dev/full: cannot be written: '

# ---- read by others, and by leat ----

replay 0 "$examples/reflect.bpf.o" in.pcap -o out.pcapng
replay 0 "$examples/reflect.bpf.o" in.pcap -o out.pcap
for file in out.pcap out.pcapng; do
	tcpdump -r $file -nn -tt --nano -e -xx 2>/dev/null >$file.txt
done
equal 'tcpdump reads every packet' "$(grep -c ethertype out.pcapng.txt)" 5
claim 'the same ones as in a pcap' diff out.pcap.txt out.pcapng.txt
replay 0 "$examples/reflect.bpf.o" out.pcapng -o again.pcap
"$top/tests/pcap-tool" show in.pcap >should
"$top/tests/pcap-tool" show again.pcap >is
claim 'leat reads what it wrote' diff should is
replay 1 "$examples/reflect.bpf.o" out.pcapng -o out.pcapng
says 'not onto the capture that is read' 'out.pcapng: is the capture that is read'

# Of another byte order and two interfaces of different clocks, with blocks and options that are passed over.
python3 - <<'PYTHON'
import struct

def option(code, value):
    return struct.pack(">HH", code, len(value)) + value + bytes(-len(value) % 4)

def block(kind, body):
    return struct.pack(">II", kind, 12 + len(body)) + body + struct.pack(">I", 12 + len(body))

section = block(0x0A0D0D0A, struct.pack(">IHHq", 0x1A2B3C4D, 1, 0, -1))
ports = [block(1, struct.pack(">HHI", link, 0, 65535) + option(9, bytes([resolution])) + option(0, b""))
         for link, resolution in ((1, 6), (1, 9), (101, 9))]

def packet(port, time, data):
    return block(6, struct.pack(">IIIII", port, time >> 32, time & 0xFFFFFFFF, len(data), len(data)) +
                 data + bytes(-len(data) % 4) + option(1, b"a comment") + option(0, b""))

frame = bytes.fromhex("020000000002020000000001080045") + bytes(46)
good = section + ports[0] + ports[1] + packet(0, 1700000000123456, frame) + block(0xBAD, b"what") + \
    packet(1, 1700000001123456789, frame)
open("good.pcapng", "wb").write(good)
open("cut.pcapng", "wb").write(good[:-8])
open("raw.pcapng", "wb").write(section + ports[0] + ports[2] + packet(0, 1700000000123456, frame))
PYTHON
replay 0 "$examples/reflect.bpf.o" good.pcapng --verdicts
claim 'times in microseconds' grep -qx 'packet 1: 1700000000.123456000, 61 bytes: tx' out
claim 'and in nanoseconds' grep -qx 'packet 2: 1700000001.123456789, 61 bytes: tx' out
replay 4 "$examples/reflect.bpf.o" cut.pcapng
claim 'one that is cut off: what stands before was run' grep -q 'tx  *1$' out
says 'and where' 'cut.pcapng: packet 2: '
replay 4 "$examples/reflect.bpf.o" raw.pcapng
claim 'an interface that is not Ethernet' [ -s err ]

usage '--format' a.o b -o c --format text
usage '--format: says how' a.o b --format pcapng
done_testing
