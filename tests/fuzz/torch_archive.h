/* SPDX-License-Identifier: Apache-2.0 */
/* An archive around the program that a fuzzer mutates. */
#ifndef OCT_TESTS_FUZZ_TORCH_ARCHIVE_H
#define OCT_TESTS_FUZZ_TORCH_ARCHIVE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The weights that seeds name: 4096 zeros, under any shape. */
static const char weights_table[] =
    "{\"config\":{"
    "\"w\":{\"path_name\":\"z\",\"use_pickle\":false,\"tensor_meta\":{\"dtype\":7,\"sizes\":"
    "[{\"as_int\":4},{\"as_int\":3},{\"as_int\":3},{\"as_int\":3}],\"strides\":[{\"as_int\":27},"
    "{\"as_int\":9},{\"as_int\":3},{\"as_int\":1}],\"storage_offset\":{\"as_int\":0}}},"
    "\"b\":{\"path_name\":\"z\",\"use_pickle\":false,\"tensor_meta\":{\"dtype\":7,\"sizes\":"
    "[{\"as_int\":4}],\"strides\":[{\"as_int\":1}],\"storage_offset\":{\"as_int\":0}}}}}";

typedef struct zip_out {
    uint8_t *p;
    size_t n;
} zip_out;

static void put(zip_out *z, const void *p, size_t n)
{
    memcpy(z->p + z->n, p, n);
    z->n += n;
}

static void put_number(zip_out *z, uint32_t v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        z->p[z->n++] = (uint8_t)(v >> (8 * i));
}

/* Fields that a local header and an entry of the directory share, from the version on. */
static void put_fields(zip_out *z, const char *name, uint32_t size)
{
    put_number(z, 0, 4); /* version and flags */
    put_number(z, 0, 2); /* stored */
    put_number(z, 0, 4); /* time */
    put_number(z, 0, 4); /* checksum */
    put_number(z, size, 4);
    put_number(z, size, 4);
    put_number(z, (uint32_t)strlen(name), 2);
    put_number(z, 0, 2);
}

/* The caller frees it. */
static uint8_t *archive_of_program(const uint8_t *json, size_t n_json, size_t *n)
{
    static const uint8_t zeros[4096];
    const struct {
        const char *name;
        const void *p;
        size_t n;
    } members[] = {
        {"n/models/model.json", json, n_json},
        {"n/data/weights/model_weights_config.json", weights_table, sizeof(weights_table) - 1},
        {"n/data/weights/z", zeros, sizeof(zeros)},
    };
    uint32_t at[3], start;
    zip_out z = {malloc(n_json + 8192), 0};

    if (!z.p) abort();
    for (int i = 0; i < 3; i++) {
        at[i] = (uint32_t)z.n;
        put(&z, "PK\3\4", 4);
        put_fields(&z, members[i].name, (uint32_t)members[i].n);
        put(&z, members[i].name, strlen(members[i].name));
        put(&z, members[i].p, members[i].n);
    }
    start = (uint32_t)z.n;
    for (int i = 0; i < 3; i++) {
        put(&z, "PK\1\2\0\0", 6);
        put_fields(&z, members[i].name, (uint32_t)members[i].n);
        put_number(&z, 0, 2);
        put_number(&z, 0, 4);
        put_number(&z, 0, 4);
        put_number(&z, at[i], 4);
        put(&z, members[i].name, strlen(members[i].name));
    }
    put(&z, "PK\5\6\0\0\0\0\3\0\3\0", 12);
    put_number(&z, (uint32_t)z.n - 12 - start, 4);
    put_number(&z, start, 4);
    put_number(&z, 0, 2);
    *n = z.n;
    return z.p;
}

#endif
