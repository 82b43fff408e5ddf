# SPDX-License-Identifier: BSD-3-Clause
# common.sh: what the tests with real interfaces share, besides ../common.sh. A test begins with
#
#	set -eu
#	. "$(dirname "$0")/common.sh"
#
# and is then PID 1 of its own PID, mount and network namespace, with an empty /run: names of network namespaces, which
# ip-netns(8) keeps there, cannot meet those of anyone else, and whatever way the test ends, its processes, namespaces,
# interfaces and files are gone with it. Without root, or where namespaces cannot be made, it is skipped (77).

top=$(cd "$(dirname "$0")/../.." && pwd)
dir=/run/test # only in our mount namespace

skip() {
	echo "1..0 # SKIP $*"
	exit 77
}

isolate='unshare --mount --net --pid --fork --kill-child --mount-proc'

if [ -z "${LEAT_TEST_ISOLATED:-}" ]; then
	[ "$(id -u)" = 0 ] || skip 'needs root'
	for tool in unshare ip ping iperf3 tcpdump python3 setpriv; do
		command -v $tool >/dev/null || skip "$tool is missing"
	done
	$isolate sh -c 'mount -t tmpfs none /run && ip netns add probe' 2>/dev/null || skip 'network namespaces cannot be made here'
	[ -c /dev/net/tun ] || skip 'there is no /dev/net/tun'
	LEAT_TEST_ISOLATED=yes $isolate "$0" "$@" &
	inside=$!
	# unshare waits through both signals; when it is killed, everything inside is.
	trap 'kill -KILL $inside; exit 130' INT
	trap 'kill -KILL $inside; exit 143' TERM
	code=0
	wait $inside || code=$?
	exit $code
fi
unset LEAT_TEST_ISOLATED
mount -t tmpfs none /run
mkdir -p "$dir"
chmod 755 /run "$dir"
ip link set lo up
. "$top/tests/common.sh"

# ---- interfaces ----

at() {
	ns=$1
	shift
	ip netns exec "$ns" "$@"
}

# add_netns NAME...
add_netns() {
	for ns in "$@"; do
		ip netns add "$ns"
		ip -n "$ns" link set lo up
	done
}

# add_tap NETNS IFNAME NUMBER [MTU]: a persistent TAP with the addresses 10.9.0.NUMBER and fd09::NUMBER.
add_tap() {
	ip -n "$1" tuntap add "$2" mode tap
	ip -n "$1" link set "$2" mtu "${4:-1500}" up
	ip -n "$1" address add "10.9.0.$3/24" dev "$2"
	ip -n "$1" address add "fd09::$3/64" dev "$2" nodad
}

# ping4 and ping6 NETNS NUMBER [OPTION...]: five packets, none may be lost. `ping -c` alone is content with one answer.
ping4() {
	ping_all "$1" "10.9.0.$2" "$@"
}

ping6() {
	ping_all "$1" "fd09::$2" "$@"
}

ping_all() {
	from=$1 to=$2
	shift 4
	at "$from" ping -n -q -c 5 -i 0.05 -W 1 "$@" "$to" >"$dir/ping" 2>&1 || { cat "$dir/ping"; return 1; }
	cat "$dir/ping"
	grep -q ' 0% packet loss' "$dir/ping"
}

# ---- processor time ----

# cpu_ticks: processor time that leat has used, in clock ticks (a hundredth of a second).
cpu_ticks() {
	awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$leat/stat"
}

# cpu_percent SECONDS: how busy one processor is with leat during that time.
cpu_percent() {
	before=$(cpu_ticks)
	sleep "$1"
	echo $((($(cpu_ticks) - before) * 100 / ($1 * $(getconf CLK_TCK))))
}
