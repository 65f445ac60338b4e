/* SPDX-License-Identifier: Apache-2.0 */
/* How libFuzzer changes programs of torch.export: half the time in ways that keep the JSON whole.
 */
#ifndef OCT_TESTS_FUZZ_TORCH_MUTATOR_H
#define OCT_TESTS_FUZZ_TORCH_MUTATOR_H

#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "torch/aten.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

static json_t *any_of(json_t *list, oct_rng *r)
{
    return json_array_size(list) ? json_array_get(list, oct_rng_below(r, json_array_size(list)))
                                 : NULL;
}

/* A number from those that break things. */
static json_t *odd_number(oct_rng *r)
{
    static const int64_t odd[] = {0,  1,  -1,   2,         3,         7,        64,
                                  -3, 65, 1000, INT32_MAX, INT64_MAX, INT64_MIN};

    return json_integer(odd[oct_rng_below(r, OCT_COUNT(odd))]);
}

/* Changes one number somewhere below j. */
static void change_number(json_t *j, oct_rng *r)
{
    for (int depth = 0; depth < 12; depth++) {
        json_t *next = NULL;

        if (json_is_array(j) && json_array_size(j)) {
            const size_t i = oct_rng_below(r, json_array_size(j));

            next = json_array_get(j, i);
            if (json_is_number(next)) {
                json_array_set_new(j, i, odd_number(r));
                return;
            }
        } else if (json_is_object(j) && json_object_size(j)) {
            void *it = json_object_iter(j);

            for (size_t i = oct_rng_below(r, json_object_size(j)); i > 0; i--)
                it = json_object_iter_next(j, it);
            next = json_object_iter_value(it);
            if (json_is_number(next)) {
                json_object_iter_set_new(j, it, odd_number(r));
                return;
            }
        }
        if (!next) return;
        j = next;
    }
}

static void change_node(json_t *nodes, oct_rng *r)
{
    json_t *node = any_of(nodes, r), *other = any_of(nodes, r), *in, *arg;
    size_t n_rows = 0;

    if (!node) return;
    in = json_object_get(node, "inputs");
    while (oct_aten_at(n_rows))
        n_rows++;
    switch (oct_rng_below(r, 5)) {
    case 0: { /* another operator */
        char target[160];

        (void)snprintf(target, sizeof(target), "torch.ops.%s",
                       oct_aten_at(oct_rng_below(r, n_rows))->target);
        json_object_set_new(node, "target", json_string(target));
        break;
    }
    case 1: /* an argument less */
        if (json_array_size(in)) json_array_remove(in, oct_rng_below(r, json_array_size(in)));
        break;
    case 2: /* an argument of another node */
        arg = any_of(json_object_get(other, "inputs"), r);
        if (arg) json_array_append_new(in, json_deep_copy(arg));
        break;
    case 3: /* a node less */
        if (json_array_size(nodes))
            json_array_remove(nodes, oct_rng_below(r, json_array_size(nodes)));
        break;
    default:
        change_number(in, r);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    json_t *j, *graph;
    oct_rng r;
    size_t n;

    oct_rng_init(&r, seed);
    if (size < 2 || data[0] != '{' || oct_rng_below(&r, 4) == 0)
        return LLVMFuzzerMutate(data, size, max_size);
    if (!(j = json_loadb((char *)data, size, 0, NULL)))
        return LLVMFuzzerMutate(data, size, max_size);
    graph = json_object_get(json_object_get(j, "graph_module"), "graph");
    for (uint64_t i = 1 + oct_rng_below(&r, 3); i > 0; i--) {
        if (oct_rng_below(&r, 4))
            change_node(json_object_get(graph, "nodes"), &r);
        else
            change_number(json_object_get(graph, "tensor_values"), &r);
    }
    n = json_dumpb(j, (char *)data, max_size, JSON_COMPACT);
    json_decref(j);
    return n && n <= max_size ? n : size;
}

#endif
