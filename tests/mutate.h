/* SPDX-License-Identifier: Apache-2.0 */
/* Breaks protobuf files: blindly, and in ways that keep the wire format whole. */
#ifndef OCT_TESTS_MUTATE_H
#define OCT_TESTS_MUTATE_H

#include <stddef.h>

#include "base/rng.h"

/* Room a buffer must have beyond twice the file's size. */
#define MUTATE_ROOM 4096

/* A file in a buffer with room for 2 * its first size + MUTATE_ROOM bytes. */
typedef struct bytes {
    unsigned char *p;
    size_t n;
    const unsigned char *other; /* another file, for splicing; not empty */
    size_t n_other;
} bytes;

/* A few mutations, blind or structural, chosen by the generator. */
void mutate(bytes *b, oct_rng *r);

#endif
