/* SPDX-License-Identifier: Apache-2.0 */
/* Cast and CastLike: any number to any other; text is refused. */
#include <string.h>

#include "base/parallel.h"
#include "op/elementwise.h"
#include "op/grad/rules.h"
#include "tensor/small_float.h"

/* Both rows: the attributes they share, in the same places. */
enum { SATURATE, ROUND_MODE, TO };

#define SHARED_ATTRS                                                                               \
    [SATURATE] = {"saturate", OCT_ATTR_INT, .def.i = 1}, [ROUND_MODE] = {                          \
                                                             "round_mode", OCT_ATTR_STRING,        \
                                                             .def.s = "up", .n_def = 2}

static const oct_attr_def cast_attrs[] = {
    SHARED_ATTRS,
    [TO] = {"to", OCT_ATTR_INT, .no_default = true, .required = true},
    {0},
};
static const oct_attr_def like_attrs[] = {SHARED_ATTRS, {0}};

static bool find_round(const char *mode, oct_round *out)
{
    if (strcmp(mode, "up") == 0)
        *out = OCT_ROUND_UP;
    else if (strcmp(mode, "down") == 0)
        *out = OCT_ROUND_DOWN;
    else if (strcmp(mode, "nearest") == 0)
        *out = OCT_ROUND_NEAREST;
    else
        return false;
    return true;
}

static oct_status shape_to(const oct_infer *q, oct_dtype to)
{
    const char *mode = q->node->attr[ROUND_MODE].s;
    const oct_type *x;
    oct_round round;

    OCT_TRY(oct_infer_need(q, 0, &x));
    if (x->dtype != OCT_DTYPE_NONE && oct_dtype_get(x->dtype)->kind == OCT_DKIND_OTHER)
        return oct_infer_fail(q, OCT_ERR_UNSUPPORTED, "cannot cast elements of type %s",
                              oct_dtype_name(x->dtype));
    if (!find_round(mode, &round))
        return oct_infer_fail(q, OCT_ERR_FORMAT, "round_mode is '%.40s', not up, down or nearest",
                              mode);
    q->out[0] = *x;
    q->out[0].dtype = to;
    return OCT_OK;
}

static oct_status shape_cast(const oct_infer *q)
{
    oct_dtype to;

    OCT_TRY(oct_dtype_attr(q->node, oct_int(q->node, TO), &to));
    return shape_to(q, to);
}

static oct_status shape_like(const oct_infer *q)
{
    const oct_type *like;
    oct_dtype to = OCT_DTYPE_NONE;

    OCT_TRY(oct_infer_need(q, 1, &like));
    if (like->dtype != OCT_DTYPE_NONE) OCT_TRY(oct_dtype_attr(q->node, like->dtype, &to));
    return shape_to(q, to);
}

typedef struct job {
    oct_dtype from, to;
    const char *x;
    char *y;
    bool saturate;
    oct_round round;
} job;

/* oct_convert() rounds this format up. */
static void to_e8m0(const job *j, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        float x;

        oct_load_f32(j->from, j->x, i, 1, &x);
        j->y[i] = (char)oct_f32_to_e8m0(x, j->round, j->saturate);
    }
}

/* begin is a multiple of the grain, so packed types start at a byte. */
static void range(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const int64_t in_bits = oct_dtype_get(j->from)->bits, out_bits = oct_dtype_get(j->to)->bits;

    if (j->to == OCT_DTYPE_F8E8M0 && j->from != j->to)
        to_e8m0(j, begin, end);
    else
        oct_convert(j->from, j->x + begin * in_bits / 8, j->to, j->y + begin * out_bits / 8,
                    end - begin, j->saturate);
}

static oct_status ref(const oct_args *a)
{
    job j = {.from = a->in[0]->type.dtype,
             .to = a->out[0]->type.dtype,
             .x = a->in[0]->data,
             .y = a->out[0]->data,
             .saturate = oct_int(a->node, SATURATE) != 0};

    find_round(a->node->attr[ROUND_MODE].s, &j.round);
    oct_parallel_for(a->n_threads, oct_tensor_len(a->out[0]), OCT_MAP_GRAIN, range, &j);
    return OCT_OK;
}

/* Between floats; other casts carry no gradient. */
static oct_status grad(const oct_grad_args *a)
{
    if (a->wanted[0]) a->dx[0] = oct_grad_cast(a->b, a->dy[0], a->node->in[0]->type.dtype);
    return OCT_OK;
}

const oct_op oct_op_cast = {
    .name = "Cast",
    .since = 7,
    .min_in = 1,
    .max_in = 1,
    .attrs = cast_attrs,
    .shape = shape_cast,
    .ref = ref,
    .grad = grad,
    .flow = OCT_FLOW_PASS,
    .flags = OCT_OP_ELEMENTWISE,
};

const oct_op oct_op_cast_like = {
    .name = "CastLike",
    .since = 15,
    .min_in = 2,
    .max_in = 2,
    .attrs = like_attrs,
    .shape = shape_like,
    .ref = ref,
    .grad = grad,
    .flow = OCT_FLOW_PASS,
};
