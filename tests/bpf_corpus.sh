#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The XDP objects that Debian ships, in files and within programs and libraries, run alike by the kernel and leat:
# tests/bpf_kernel.c with all of them. Objects are read where they are installed; what is carved goes when the test ends.
#
# usage: bpf_corpus.sh		LEAT_BUILD: the build; LEAT_SRC: the source
set -u

# Packages and what of them must be there.
bpf=/usr/lib/$(cc -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)/bpf
lib=$(dirname "$bpf")
files="$bpf/xdp-dispatcher.o $bpf/xsk_def_xdp_prog.o $bpf/xsk_def_xdp_prog_5.3.o $bpf/xdpdump_xdp.o $bpf/xdpdump_bpf.o"
for policy in alw dny; do
	for layer in eth ip tcp udp all; do
		files="$files $bpf/xdpfilt_${policy}_$layer.o"
	done
done
for name in xdp_pass xdp_drop test_long_func_name; do
	files="$files /usr/libexec/xdp-tools/$name.o"
done
hosts="/usr/sbin/xdp-bench /usr/sbin/xdp-trafficgen /usr/sbin/xdp-monitor $lib/libknot.so.13"

for file in $files $hosts; do
	if [ ! -e "$file" ]; then
		echo "1..0 # SKIP $file is missing: xdp-tools, libxdp1, xdp-tests and libknot13 must be installed"
		exit 0
	fi
done

carved=$(mktemp -d) || exit 1
trap 'rm -rf "$carved"' EXIT
"$LEAT_SRC/tests/bpf/carve" "$carved" $hosts >"$carved/list" || exit 1
[ "$(wc -l <"$carved/list")" -ge 8 ] || {
	echo "1..1"
	echo "not ok 1 - objects are carved from $hosts"
	exit 1
}
"$LEAT_BUILD/tests/test-bpf_kernel" $files $(cat "$carved/list")
