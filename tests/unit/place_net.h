/* SPDX-License-Identifier: Apache-2.0 */
/* Small networks for tests of placement, and questions to ask of the points. */
#ifndef OCT_TESTS_PLACE_NET_H
#define OCT_TESTS_PLACE_NET_H

#include "quant/place/place.h"
#include "tests/unit/exec_net.h"

typedef struct placed {
    fixture *f;
    oct_rng rng;
    oct_quantize_options o;
    const oct_target *t;
    oct_qmap *m;
} placed;

static inline void start(placed *p, fixture *f, const char *target)
{
    *p = (placed){.f = f, .o = {.struct_size = sizeof(p->o)}};
    oct_rng_init(&p->rng, 1);
    assert_ok(f->ctx, oct_target_find(f->ctx, target, &p->t));
}

static inline void name_node(const oct_value *v, const char *name)
{
    v->producer->name = name;
}

static inline oct_value *image(placed *p, int64_t channels)
{
    return graph_input(p->f, "x", OCT_DTYPE_F32, 4, (int64_t[]){1, channels, 8, 8});
}

/* A convolution of 3x3 pixels; depthwise if both counts are 0. */
static inline oct_value *layer(placed *p, const char *name, oct_value *x, int64_t c_out)
{
    const int64_t c = x->type.dim[1];
    const conv_case k = {c, c_out ? c_out : c, 3, 1, 1, 1, c_out ? 1 : c};
    oct_value *y = conv(p->f, &p->rng, x, &k);

    name_node(y, name);
    return y;
}

static inline oct_value *silu(placed *p, oct_value *x)
{
    return emit(p->f, &oct_op_mul, x, emit(p->f, &oct_op_sigmoid, x, NULL));
}

static inline oct_value *join(placed *p, oct_value *a, oct_value *b, int64_t axis)
{
    oct_node *c = oct_emit_node(&p->f->b, &oct_op_concat, (oct_value *[]){a, b}, 2, 1);

    assert_ok(p->f->ctx, oct_node_set_int(c, "axis", axis));
    return infer(p->f, c);
}

static inline oct_value *pool(placed *p, oct_value *x)
{
    oct_node *n = node(p->f, &oct_op_max_pool, x, NULL, NULL);

    assert_ok(p->f->ctx, oct_node_set_ints(n, "kernel_shape", (int64_t[]){1, 1}, 2));
    return infer(p->f, n);
}

static inline void output(placed *p, oct_value *y)
{
    assert_ok(p->f->ctx, oct_graph_add_output(p->f->g, y));
}

static inline void place(placed *p)
{
    assert_ok(p->f->ctx, oct_place(p->f->g, p->t, &p->o, &p->m));
}

static inline void finish(placed *p)
{
    oct_qmap_free(p->m);
    p->m = NULL;
}

/* The point for all readers of v, or NULL. */
static inline const oct_qpoint *at(const placed *p, const oct_value *v)
{
    const int32_t k = p->m->of_value[v->id];

    return k < 0 ? NULL : &p->m->points[k];
}

static inline bool is_active(const placed *p, const oct_value *v)
{
    return at(p, v) && at(p, v)->state == OCT_QSTATE_ACTIVE;
}

static inline const char *reason(const placed *p, const oct_value *v)
{
    return p->m->float_reason[v->producer->id];
}

#endif
