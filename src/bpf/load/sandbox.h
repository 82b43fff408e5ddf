/* SPDX-License-Identifier: BSD-3-Clause */
/* sandbox.h: takes from this process what it does not need. */
#ifndef LEAT_BPF_LOAD_SANDBOX_H
#define LEAT_BPF_LOAD_SANDBOX_H

/** Limits on memory, time and files; no descriptors from @first_fd on; no new privileges. 0 or a negative errno. */
int load_sandbox_limit(unsigned int first_fd);
/** Only system calls that work on what is open already. 0 or a negative errno. */
int load_sandbox_close(void);

#endif
