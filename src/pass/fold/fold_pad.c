/* SPDX-License-Identifier: Apache-2.0 */
/* fold-pad: a Pad whose consumer is a convolution or pooling becomes that node's padding. */
#include <math.h>
#include <string.h>

#include "op/conv_geometry.h"
#include "op/op.h"
#include "pass/pass.h"
#include "pass/rewrite.h"

/* A Pad of spatial dims with one constant. */
typedef struct padding {
    oct_value *x;
    int n; /* spatial dims */
    int64_t begin[OCT_MAX_SPATIAL], end[OCT_MAX_SPATIAL];
    double value;
} padding;

/* Pads for all dims, also where the node names axes. */
static bool all_pads(const oct_node *n, int rank, int64_t pads[2 * OCT_MAX_RANK])
{
    int64_t given[2 * OCT_MAX_RANK], axes[OCT_MAX_RANK];
    int n_pads, n_axes = rank;

    if (!oct_const_ints(oct_node_const(n, 1), given, 2 * OCT_MAX_RANK, &n_pads)) return false;
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    if (oct_node_in(n, 3) && !oct_const_ints(oct_node_const(n, 3), axes, OCT_MAX_RANK, &n_axes))
        return false;
    if (n_pads != 2 * n_axes) return false;
    memset(pads, 0, 2 * OCT_MAX_RANK * sizeof(*pads));
    for (int i = 0; i < n_axes; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];

        if (axis < 0 || axis >= rank) return false;
        pads[axis] = given[i];
        pads[rank + axis] = given[n_axes + i];
    }
    return true;
}

static bool read_pad(const oct_node *n, padding *p)
{
    int64_t pads[2 * OCT_MAX_RANK];
    const oct_attr *mode = oct_node_attr(n, "mode");
    const int rank = n->in[0]->type.rank;

    if (mode && strcmp(mode->s, "constant") != 0) return false;
    if (rank < 3 || !all_pads(n, rank, pads)) return false;
    p->value = 0;
    if (oct_node_in(n, 2) && !oct_const_scalar(n->in[2], &p->value)) return false;
    if (pads[0] || pads[1] || pads[rank] || pads[rank + 1]) return false;
    p->x = n->in[0];
    p->n = rank - 2;
    for (int i = 0; i < p->n; i++) {
        p->begin[i] = pads[2 + i];
        p->end[i] = pads[rank + 2 + i];
        if (p->begin[i] < 0 || p->end[i] < 0) return false;
        if (p->begin[i] > INT32_MAX || p->end[i] > INT32_MAX) return false;
    }
    return true;
}

static bool is_max_pool(const oct_node *n)
{
    return oct_node_is(n, &oct_op_max_pool);
}

static bool is_pool(const oct_node *n)
{
    return is_max_pool(n) || oct_node_is(n, &oct_op_average_pool);
}

static bool flag(const oct_node *n, const char *name)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->i != 0;
}

/* Is the window's own padding equivalent to the Pad? */
static bool accepts(const oct_node *n, const padding *p, const oct_conv_geometry *g)
{
    bool has_pads = false;

    if (!oct_conv_pads_are_known(g)) return false;
    for (int i = 0; i < g->n; i++) {
        has_pads = has_pads || g->pad_begin[i] || g->pad_end[i];
        /* A window of a pool must touch the input. */
        if (is_pool(n) && (g->pad_begin[i] + p->begin[i] >= g->kernel[i] ||
                           g->pad_end[i] + p->end[i] >= g->kernel[i]))
            return false;
    }
    if (!is_pool(n)) return p->value == 0;
    if (flag(n, "ceil_mode")) return false; /* windows beyond the end would read other padding */
    if (is_max_pool(n)) return isinf(p->value) && p->value < 0 && n->n_out == 1;
    return p->value == 0 && (!has_pads || flag(n, "count_include_pad"));
}

static bool geometry(const oct_node *n, oct_conv_geometry *g)
{
    if (oct_node_is(n, &oct_op_conv))
        return n->n_in >= 2 && n->in[1] &&
               !oct_conv_geometry_conv(n, &n->in[0]->type, &n->in[1]->type, g) && g->n > 0;
    return is_pool(n) && !oct_conv_geometry_pool(n, &n->in[0]->type, g) && g->n > 0;
}

static oct_status fold(oct_node *n, int *n_changed)
{
    oct_value *mid = n->in[0];
    oct_node *pad = oct_inner_producer(mid);
    oct_conv_geometry g;
    padding p;
    int64_t pads[2 * OCT_MAX_SPATIAL];

    if (!oct_node_is(pad, &oct_op_pad) || pad->graph != n->graph || !read_pad(pad, &p))
        return OCT_OK;
    if (!geometry(n, &g) || g.n != p.n || !accepts(n, &p, &g)) return OCT_OK;
    for (int i = 0; i < g.n; i++) {
        pads[i] = g.pad_begin[i] + p.begin[i];
        pads[g.n + i] = g.pad_end[i] + p.end[i];
    }
    OCT_TRY(oct_node_set_ints(n, "pads", pads, 2 * g.n));
    OCT_TRY(oct_node_set_str(n, "auto_pad", "NOTSET"));
    if (oct_node_is(n, &oct_op_average_pool)) OCT_TRY(oct_node_set_int(n, "count_include_pad", 1));
    OCT_TRY(oct_node_set_input(n, 0, p.x));
    ++*n_changed;
    return oct_prune(mid);
}

static oct_status run(oct_graph *g, int *n_changed)
{
    for (oct_node *n = g->first; n; n = n->next) {
        int before;

        if (!oct_node_is(n, &oct_op_conv) && !is_pool(n)) continue;
        do { /* a Pad may follow a Pad */
            before = *n_changed;
            OCT_TRY(fold(n, n_changed));
        } while (*n_changed != before);
    }
    return OCT_OK;
}

const oct_pass oct_pass_fold_pad = {
    .name = "fold-pad",
    .help = "put a Pad into the padding of the Conv, MaxPool or AveragePool after it",
    .run = run,
    .promise = OCT_PASS_CLOSE,
    .in = OCT_IN_ALL,
};
