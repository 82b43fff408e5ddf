#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The example examples/framer.c: every message arrives, whatever pieces the stream comes in; broken streams are refused;
# nothing is outstanding.
set -eu
. "$(dirname "$0")/common.sh"

framer=$LEAT_BUILD/examples/framer

sums() {
	python3 -c '
import struct, sys
data = open(sys.argv[1], "rb").read()
at = messages = size = total = 0
while at < len(data):
    n, = struct.unpack_from(">I", data, at)
    messages += 1
    size += n
    total += sum(data[at + 4:at + 4 + n])
    at += 4 + n
print("%d messages, %d bytes, sum %d;" % (messages, size, total))' "$1"
}

"$framer" --generate 5000 >stream
should=$(sums stream)
claim 'a stream from a file' sh -c "'$framer' <stream >out"
equal 'its messages' "$(sed 's/; .*/;/' out)" "$should"
claim 'nothing is outstanding' grep -q 'outstanding: 0$' out
claim 'some messages lay across two chunks' grep -qv ' 0 moved' out
claim 'a stream in small pieces' sh -c "dd if=stream bs=117 2>/dev/null | '$framer' >out"
equal 'its messages' "$(sed 's/; .*/;/' out)" "$should"
claim 'nothing is outstanding' grep -q 'outstanding: 0$' out
claim 'an empty stream' sh -c "'$framer' </dev/null >out"
claim 'has no messages' grep -q '^0 messages, 0 bytes, sum 0; 0 moved; outstanding: 0$' out
head -c 100001 stream >cut
deny 'a stream that ends in a message' sh -c "'$framer' <cut >out 2>err"
claim 'is said to' grep -q 'Protocol error' err
claim 'and leaves nothing' grep -q 'outstanding: 0$' out
printf '\377\377\377\377abcd' >long
deny 'a length that is too large' sh -c "'$framer' <long >out 2>err"
claim 'leaves nothing' grep -q 'outstanding: 0$' out
done_testing
