/* SPDX-License-Identifier: BSD-3-Clause */
/* replay_cover.h: a line that two programs have code of. */
volatile __u64 sum;

static __attribute__((always_inline)) void add_to_sum(__u64 n)
{
	sum += n; /* times: 7 */
}
