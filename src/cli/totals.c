/* SPDX-License-Identifier: Apache-2.0 */
/* What a model consists of: nodes, parameters and multiply-adds, by operator. */
#include <stdlib.h>
#include <string.h>

#include "cli/model.h"

static cli_op_count *count_of(cli_totals *t, const char *op)
{
    for (int i = 0; i < t->n_ops; i++)
        if (strcmp(t->ops[i].op, op) == 0) return &t->ops[i];
    t->ops = cli_realloc(t->ops, (size_t)t->n_ops + 1, sizeof(*t->ops));
    t->ops[t->n_ops] = (cli_op_count){.op = op};
    return &t->ops[t->n_ops++];
}

const cli_op_count *cli_totals_find(const cli_totals *t, const char *op)
{
    for (int i = 0; i < t->n_ops; i++)
        if (strcmp(t->ops[i].op, op) == 0) return &t->ops[i];
    return NULL;
}

static int by_count(const void *a, const void *b)
{
    const cli_op_count *x = a, *y = b;

    if (x->n != y->n) return x->n < y->n ? 1 : -1;
    return strcmp(x->op, y->op);
}

/* As oct_node_params() counts: wide integers are shapes, axes and biases of quantized models. */
static int64_t constant_params(const oct_tensor *t)
{
    switch (oct_tensor_dtype(t)) {
    case OCT_DTYPE_U16:
    case OCT_DTYPE_I16:
    case OCT_DTYPE_U32:
    case OCT_DTYPE_I32:
    case OCT_DTYPE_U64:
    case OCT_DTYPE_I64:
    case OCT_DTYPE_STRING:
    case OCT_DTYPE_C64:
    case OCT_DTYPE_C128:
        return 0;
    default:
        return oct_tensor_len(t);
    }
}

static int by_address(const void *a, const void *b)
{
    const oct_value *const *x = a, *const *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* All constants that nodes read, once each. */
static void count_constants(cli_totals *t, const oct_graph *g)
{
    const oct_value **all = NULL;
    size_t n = 0, cap = 0;

    for (const oct_node *node = oct_graph_first_node(g); node; node = oct_node_next(node))
        for (int32_t i = 0; i < oct_node_n_in(node); i++) {
            const oct_value *v = oct_node_input(node, i);

            if (!v || !oct_value_data(v)) continue;
            if (n == cap) all = cli_realloc(all, cap = cap ? cap * 2 : 256, sizeof(*all));
            all[n++] = v;
        }
    if (n) qsort(all, n, sizeof(*all), by_address);
    for (size_t i = 0; i < n; i++) {
        if (i && all[i] == all[i - 1]) continue;
        t->params += constant_params(oct_value_data(all[i]));
        t->weight_bytes += (int64_t)oct_tensor_size(oct_value_data(all[i]));
    }
    free(all);
}

/* Files may claim any size. */
static void add_macs(int64_t *sum, int64_t macs)
{
    *sum = macs > INT64_MAX - *sum ? INT64_MAX : *sum + macs;
}

void cli_totals_init(cli_totals *t, const oct_graph *g)
{
    memset(t, 0, sizeof(*t));
    for (const oct_node *n = oct_graph_first_node(g); n; n = oct_node_next(n)) {
        cli_op_count *op = count_of(t, oct_node_op(n));

        op->n++;
        op->params += oct_node_params(n);
        add_macs(&op->macs, oct_node_macs(n));
        add_macs(&t->macs, oct_node_macs(n));
        t->n_nodes++;
    }
    if (t->n_ops) qsort(t->ops, (size_t)t->n_ops, sizeof(*t->ops), by_count);
    count_constants(t, g);
}

void cli_totals_fini(cli_totals *t)
{
    free(t->ops);
}
