/* SPDX-License-Identifier: Apache-2.0 */
/* How libFuzzer changes ONNX models: half the time so that lengths stay right and the change
 * reaches what the wire format only carries. */
#ifndef OCT_TESTS_FUZZ_ONNX_MUTATOR_H
#define OCT_TESTS_FUZZ_ONNX_MUTATOR_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mutate.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    bytes b = {.n = size, .other = data, .n_other = size};
    oct_rng r;

    oct_rng_init(&r, seed);
    if (size < 2 || oct_rng_below(&r, 2)) return LLVMFuzzerMutate(data, size, max_size);
    if (!(b.p = malloc(2 * size + 4 * MUTATE_ROOM))) return size;
    memcpy(b.p, data, size);
    mutate(&b, &r);
    if (b.n > 0 && b.n <= max_size) {
        memcpy(data, b.p, b.n);
        size = b.n;
    }
    free(b.p);
    return size;
}

#endif
