#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Works out what every operation of RFC 9669 gives for edge values, in Python's unbounded integers, and prints the
table that interp_test.c and bpf_kernel_vectors.c run: src/bpf/test_vectors.py > src/bpf/test_vectors.h
"""
M64 = (1 << 64) - 1
EDGES = [0, 1, M64, 0x80000000, 0xdeadbeef00000007, 0x8000000000000000, 0x7fffffffffffffff, 0xffffffff80000000]
SMALL = [0, 3, M64, 0x80000000, 0x7fffffff80000001, 0x8000000000000000]
FEW = [0, M64, 0x0123456789abcdef, 0x80fedcba98f65432]
IMMS = [0, 3, -1, -7, -0x80000000]
SHIFTS = [0, 1, 31, 32, 33, 63, 64, 255]


def signed(x, bits):
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def quotient(a, b):
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def alu(name, a, b, n):
    """a and b are unsigned numbers of n bits."""
    sa, sb = signed(a, n), signed(b, n)
    return {
        "ADD": lambda: a + b, "SUB": lambda: a - b, "MUL": lambda: a * b, "OR": lambda: a | b, "AND": lambda: a & b,
        "XOR": lambda: a ^ b, "DIV": lambda: a // b if b else 0, "MOD": lambda: a % b if b else a,
        "SDIV": lambda: quotient(sa, sb), "SMOD": lambda: sa - sb * quotient(sa, sb) if sb else sa,
        "LSH": lambda: a << (b % n), "RSH": lambda: a >> (b % n), "ARSH": lambda: sa >> (b % n), "MOV": lambda: b,
    }[name]() & ((1 << n) - 1)


def swap(x, n):
    return int.from_bytes((x & ((1 << n) - 1)).to_bytes(n // 8, "little"), "big")


def taken(name, a, b, n):
    mask = (1 << n) - 1
    a, b = a & mask, b & mask
    sa, sb = signed(a, n), signed(b, n)
    return {"JEQ": a == b, "JNE": a != b, "JGT": a > b, "JGE": a >= b, "JLT": a < b, "JLE": a <= b, "JSET": a & b != 0,
            "JSGT": sa > sb, "JSGE": sa >= sb, "JSLT": sa < sb, "JSLE": sa <= sb}[name]


def row(op, a, b, c, imm, want, want2):
    print("\t{ LEAT_OP_%s, %d, 0x%xull, 0x%xull, 0x%xull, 0x%xull, 0x%xull }," %
          (op, imm, a & M64, b & M64, c & M64, want & M64, want2 & M64))


def alu_rows():
    for name in ["ADD", "SUB", "MUL", "DIV", "SDIV", "OR", "AND", "LSH", "RSH", "MOD", "SMOD", "XOR", "ARSH", "MOV"]:
        shift = name in ("LSH", "RSH", "ARSH")
        for n in (32, 64):
            mask = (1 << n) - 1
            for a in EDGES:
                for b in SHIFTS if shift else SMALL:
                    row("%s%dX" % (name, n), a, b, 0, 0, alu(name, a & mask, b & mask, n), 0)
                for imm in [s for s in SHIFTS if s < n] if shift else IMMS:
                    if imm == 0 and name in ("DIV", "SDIV", "MOD", "SMOD"):
                        continue  # the kernel's verifier refuses it
                    row("%s%dK" % (name, n), a, 0, 0, imm, alu(name, a & mask, imm & mask, n), 0)
    for a in EDGES:
        for n in (32, 64):
            row("NEG%d" % n, a, 0, 0, 0, -a & ((1 << n) - 1), 0)
            for bits in (8, 16, 32):
                if bits < n:
                    row("MOVS%d_%d" % (bits, n), 1, a, 0, bits, signed(a, bits) & ((1 << n) - 1), 0)
        for n in (16, 32, 64):
            row("LE%d" % n, a, 0, 0, n, a & ((1 << n) - 1), 0)
            row("BE%d" % n, a, 0, 0, n, swap(a, n), 0)
            row("BSWAP%d" % n, a, 0, 0, n, swap(a, n), 0)
        row("LD64", a, 0, 0, 0, a, 0)


def jump_rows():
    for name in ["JEQ", "JNE", "JGT", "JGE", "JLT", "JLE", "JSET", "JSGT", "JSGE", "JSLT", "JSLE"]:
        for n in (32, 64):
            for a in EDGES:
                for b in SMALL:
                    row("%s%dX" % (name, n), a, b, 0, 0, taken(name, a, b, n), 0)
                for imm in IMMS:
                    row("%s%dK" % (name, n), a, 0, 0, imm, taken(name, a, imm, n), 0)
    row("JA", 0, 0, 0, 0, 1, 0)
    row("JA32", 0, 0, 0, 0, 1, 0)


def memory_rows():
    for a in FEW:
        for n in (8, 16, 32, 64):
            mask = (1 << n) - 1
            row("LDX%d" % n, a, 0, 0, 0, a & mask, a)
            if n < 64:
                row("LDXS%d" % n, a, 0, 0, 0, signed(a, n), a)
            for b in FEW:
                row("STX%d" % n, a, b, 0, 0, (a & ~mask) | (b & mask), b)
            for imm in IMMS:
                row("ST%d" % n, a, 0, 0, imm, (a & ~mask) | (imm & mask), 0)


def atomic_rows():
    codes = {"ADD": 0x00, "OR": 0x40, "AND": 0x50, "XOR": 0xa0}
    for a in FEW:
        for b in FEW:
            for n in (32, 64):
                mask = (1 << n) - 1
                for name, code in codes.items():
                    after = (a & ~mask) | alu(name, a & mask, b & mask, n)
                    row("A%s%d" % (name, n), a, b, 0, code, after, b)
                    row("AF%s%d" % (name, n), a, b, 0, code | 1, after, a & mask)
                row("AXCHG%d" % n, a, b, 0, 0xe1, (a & ~mask) | (b & mask), a & mask)
                for c in (a, a ^ 1, a ^ (1 << 40), 0):
                    same = (a ^ c) & mask == 0
                    row("ACMPXCHG%d" % n, a, b, c, 0xf1, (a & ~mask) | ((b if same else a) & mask), a & mask)


print("""/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_vectors.h: what every operation of RFC 9669 gives for edge values. Written by test_vectors.py.
 *
 * a: destination, or memory; b: source; c: r0 before cmpxchg; imm: immediate (offset of sign-extending moves); want:
 * destination or memory after, 1 for a jump that is taken; want2: source (r0 of cmpxchg) after, memory after a load.
 */
#ifndef LEAT_BPF_TEST_VECTORS_H
#define LEAT_BPF_TEST_VECTORS_H

#include "bpf/insn.h"

static const struct test_vector {
	uint16_t op;
	int32_t imm;
	uint64_t a, b, c, want, want2;
} test_vector[] = {""")
alu_rows()
jump_rows()
memory_rows()
atomic_rows()
print("};\n\n#endif")
