#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# TAP ports that cannot be opened: exit code 1, and one message with the line that says what is wrong.
set -eu
. "$(dirname "$0")/common.sh"

# conf KEYS...: writes bad.yaml with that TAP port in line 4.
conf() {
	cat >bad.yaml <<-YAML
	# a comment
	ports:
	  good: { type: sink }
	  bad: { type: tap, $* }
	YAML
}

# refused TEXT PATTERN COMMAND...: leat, run by that command, refuses bad.yaml.
refused() {
	text=$1 pattern=$2
	shift 2
	code=0
	timeout 10 "$@" "$dir/leat" run bad.yaml --duration 5s >out 2>err || code=$?
	[ $code = 1 ] || fail "$text: exit code $code, should be 1"
	grep -qE '^bad\.yaml:4:[0-9]+: ' err || fail "$text: the message has file, line and column"
	grep -qE -- "$pattern" err || fail "$text: the message says: $pattern"
	[ "$(grep -c '' err)" = 1 ] || fail "$text: one message"
	[ ! -s out ] || fail "$text: nothing on standard output"
	ok "$text"
}

# Another user must be able to read and run it, wherever it was built.
cp "$LEAT_BIN" "$dir/leat"
no_caps='setpriv --inh-caps=-all --bounding-set=-all'
nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'

conf ifname: t0, netns: nowhere
refused 'a namespace that is not there' 'nowhere|network namespace' env
conf ifname: t0, netns: /dev/null
refused 'a file that is not a namespace' 'network namespace' env

add_netns n
ip -n n link add v0 type veth peer name v1
conf ifname: v0, netns: n
refused 'a veth of that name' "'v0'.*not a .*TAP" env
ip -n n link add d0 type dummy 2>/dev/null || ip -n n link add d0 type bridge
conf ifname: d0, netns: n
refused 'an interface of another kind' "'d0'.*not a .*TAP" env
ip -n n tuntap add u0 mode tun
conf ifname: u0, netns: n
refused 'a TUN interface' "'u0'.*not a .*TAP" env
ip -n n tuntap add q0 mode tap multi_queue
conf ifname: q0, netns: n
refused 'a TAP with several queues' "'q0'.*single-queue" env

add_tap n t0 1
conf ifname: t0, netns: n
start_leat bad.yaml
cp out out.first
refused 'a TAP that another leat has' "'t0'.*in use" env
kill -TERM "$leat"
claim 'the other leat was not disturbed' wait "$leat"

conf ifname: x0
refused 'no capability to make an interface' CAP_NET_ADMIN $no_caps
conf ifname: t0, netns: n
refused 'no capability to enter a namespace' CAP_SYS_ADMIN $no_caps
# Whether another user may open /dev/net/tun is up to the machine: the capability is named either way.
refused 'another user' 'CAP_NET_ADMIN|CAP_SYS_ADMIN' $nobody
conf ifname: x0
refused 'another user, in this namespace' CAP_NET_ADMIN $nobody

conf ifname: x0, mtu: 9217
refused 'an MTU above the range' 'mtu.*9216' env
conf ifname: x0, mtu: 67
refused 'an MTU below the range' 'mtu.*68' env
ip -n n tuntap add m0 mode tap
ip -n n link set m0 mtu 9500
conf ifname: m0, netns: n
refused 'an interface with an MTU above the range' 'MTU.*9216' env
conf ifname: an-interface-name
refused 'a name that is too long' 'ifname.*15' env
conf ifname: a/b
refused 'a name that no interface can have' 'ifname.*name of an interface' env
conf ifname: x0, mac: 01:00:5e:00:00:01
refused 'the address of a group' "mac.*group's" env
conf ifname: t0, netns: n, mac: 02:00:00:00:00:0
refused 'half an address' 'mac.*not a MAC' env
conf netns: n
refused 'no name' 'ifname' env

# Nothing was left behind by the ports that could be opened before the bad one.
cat >bad.yaml <<'YAML'
ports:
  one: { type: tap, ifname: one0 }
  two: { type: tap, ifname: two0, netns: n }

# line 4 of the others:
  bad: { type: tap, ifname: v0, netns: n }
YAML
code=0
"$dir/leat" run bad.yaml >out 2>err || code=$?
equal 'one bad port of three' "$code" 1
claim 'its line is said' grep -q '^bad.yaml:6:' err
deny 'the interface of the first is gone' ip link show one0
deny 'the interface of the second is gone' ip -n n link show two0
done_testing
