#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The XDP programs among the samples and tests of Linux run alike in the kernel and in leat: tests/bpf_kernel.c with all
# of them. They are compiled from the tarball of Debian's linux-source-6.1, once for a build.
#
# usage: bpf_linux.sh		LEAT_BUILD: the build; LEAT_SRC: the source
set -u

tarball=/usr/src/linux-source-6.1.tar.xz
folder=$LEAT_BUILD/tests/bpf/linux
for need in "$tarball" /usr/sbin/bpftool /sys/kernel/btf/vmlinux; do
	if [ ! -e "$need" ]; then
		echo "1..0 # SKIP $need is missing: linux-source-6.1 and bpftool must be installed, the kernel must have BTF"
		exit 0
	fi
done
PATH=$PATH:/usr/sbin

fail() {
	printf '1..1\nnot ok 1 - %s\n' "$1"
	exit 1
}

"$LEAT_SRC/tests/bpf/linux/compile" "$tarball" "$folder" >&2 || fail 'the programs are compiled'
[ "$(wc -l <"$folder/list")" -ge 40 ] || fail "the tarball has at least 40 sources with XDP programs"
"$LEAT_BUILD/tests/test-bpf_kernel" $(cat "$folder/list")
