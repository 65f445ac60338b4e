/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which instruction sets may be used: one answer for float and integer loops, from what the CPU has
 * and what the environment allows. Sets are not ordered: a CPU may have AVX-VNNI without AVX-512,
 * AVX-512 VNNI without AVX-VNNI, or both.
 */
#ifndef OCT_EXEC_SIMD_ISA_H
#define OCT_EXEC_SIMD_ISA_H

#include "base/status.h"

/* What a CPU can do, as CPUID tells it. */
enum {
    OCT_CPU_AVX2 = 1u << 0,
    OCT_CPU_FMA = 1u << 1,
    OCT_CPU_F16C = 1u << 2,
    OCT_CPU_AVX512F = 1u << 3,
    OCT_CPU_AVX512BW = 1u << 4,
    OCT_CPU_AVX512VL = 1u << 5,
    OCT_CPU_AVX512DQ = 1u << 6,
    OCT_CPU_AVX512_VNNI = 1u << 7,
    OCT_CPU_AVX_VNNI = 1u << 8,
};

/* Sets that loops are compiled for, the preferred first. */
typedef enum oct_isa {
    OCT_ISA_AVX512_VNNI,
    OCT_ISA_AVX512,
    OCT_ISA_AVX2_VNNI,
    OCT_ISA_AVX2,
    OCT_ISA_BASE, /* what every CPU of this kind has */
    OCT_ISA_COUNT
} oct_isa;

/*
 * The sets that a CPU with these features may use, preferred first; returns how many. word: a value
 * of ONEDNN_MAX_CPU_ISA; an unknown one, an empty one and NULL limit nothing. The baseline is
 * always the last.
 */
int oct_isa_list(unsigned cpu, const char *word, oct_isa list[OCT_ISA_COUNT]);

unsigned oct_isa_cpu(void);          /* the features of this CPU */
const char *oct_isa_word(void);      /* of the environment, or NULL */
const char *oct_isa_name(oct_isa i); /* "avx512_vnni" */

#endif
