/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random networks for tests: valid by ONNX's rules, small, the same for the same seed everywhere.
 *
 * A network grows row by row: a row (rows.h) takes values from the pool and adds a
 * node with random attributes. What the operator's shape function refuses is taken back.
 */
#ifndef OCT_TESTS_RANDOM_NET_H
#define OCT_TESTS_RANDOM_NET_H

#include <octet/octet.h>

#include "base/rng.h"
#include "graph/op.h"
#include "op/op.h"

typedef enum net_kind {
    NET_FLOAT,   /* float operators, shapes known */
    NET_OPEN,    /* the same, shapes of inputs left open in the file */
    NET_CODES,   /* quantized networks: Q and DQ around layers, as quantizers write them */
    NET_CORNERS, /* Q and DQ of all types in every order, codes as inputs and outputs */
    NET_ODD,     /* any of these with one to three attributes or constants made odd */
    N_NET_KINDS
} net_kind;

enum { NET_POOL = 96, NET_INPUTS = 3, NET_MAX_LEN = 20000 };

typedef struct net {
    oct_graph *g;
    oct_builder b;
    oct_rng r;
    oct_value *pool[NET_POOL]; /* what later rows may read, oldest first */
    int n_pool;
} net;

typedef struct net_row {
    const char *name;
    bool (*add)(net *t); /* false: nothing was added */
    int weight;          /* how often, compared with the others */
} net_row;

/* What inputs really are, also where the file leaves it open. */
typedef struct net_types {
    oct_type in[NET_INPUTS];
} net_types;

/* The network of this kind and seed; NULL: the shapes drawn led to nothing. */
oct_graph *net_make(oct_ctx *ctx, net_kind kind, uint64_t seed, net_types *types);
const char *net_kind_name(net_kind kind);

/* --- what rows are made of --- */

static inline int64_t net_between(net *t, int64_t low, int64_t high) /* both included */
{
    return low + (int64_t)oct_rng_below(&t->r, (uint64_t)(high - low + 1));
}

static inline bool net_chance(net *t, int n) /* one in n */
{
    return oct_rng_below(&t->r, (uint64_t)n) == 0;
}

/* A value of the pool of this element type (NONE: any) and between these ranks; NULL: there is
 * none. */
oct_value *net_pick(net *t, oct_dtype dtype, int low_rank, int high_rank);

/* A float constant, uniform in [low, high). */
oct_value *net_const(net *t, int32_t rank, const int64_t *dims, double low, double high);

/* A constant of any type with whole numbers in [low, high]. */
oct_value *net_const_int(net *t, oct_dtype dtype, int32_t rank, const int64_t *dims, int64_t low,
                         int64_t high);

/* A node without attributes yet. NULL operands are left out. */
oct_node *net_node(net *t, const oct_op *op, oct_value *const *in, int32_t n_in, int32_t n_out);

/* Infers the node and puts its results into the pool, or takes it back: false. */
bool net_keep(net *t, oct_node *n);

/* Attributes, in one line. */
void net_int(oct_node *n, const char *name, int64_t v);
void net_ints(oct_node *n, const char *name, const int64_t *v, int64_t n_v);

#endif
