/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz.h: one input for a fuzzed function: libFuzzer's entry, which replay.c calls, too. */
#ifndef LEAT_FUZZ_H
#define LEAT_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
