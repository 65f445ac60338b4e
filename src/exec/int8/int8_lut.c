/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of one u8 operand as a lookup table of 256 results, computed with the reference kernels
 * of its nodes: a chain of Sigmoid, Swish, HardSwish and arithmetic with scalars.
 */
#include "base/parallel.h"
#include "exec/int8/int8_kernel.h"

#define GRAIN 32768 /* elements */

typedef struct state {
    const oct_int8 *set;
    uint8_t code[256];
    float value[256];
    bool to_codes;
    oct_int8_grid grid;
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    if (!s->integer || !s->integer->n_chain || !oct_step_in_u8(p, s, 0)) return false;
    if (s->integer->in[0].n != 1 || !oct_step_out_u8_or_f32(p, s)) return false;
    if (oct_step_out_is_codes(s) && s->integer->out.n != 1) return false;
    *layout = OCT_LAYOUT_ANY;
    return true;
}

/* x is a whole row; parameters stay scalars. */
static oct_status apply(const oct_node *n, oct_tensor **x)
{
    oct_tensor *in[8] = {NULL}, *out = NULL;
    oct_status st;

    if (n->n_in > 8) return oct_node_fail(n, OCT_ERR_STATE, "has too many operands");
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i]) in[i] = n->in[i]->data ? n->in[i]->data : *x;
    if (oct_node_is_quantize(n)) in[0] = *x;
    st = oct_node_eval(n, in, &out, NULL);
    oct_tensor_unref(*x);
    *x = out;
    if (!st && oct_tensor_len(out) != 256)
        st = oct_node_fail(n, OCT_ERR_STATE, "is no function of one element");
    return st;
}

static oct_status fill(oct_plan *p, const oct_step *s, state *st)
{
    const oct_codes *c = &s->integer->in[0];
    oct_type type = oct_type_make(OCT_DTYPE_F32, OCT_MAX(p->slots[s->in[0]].type.rank, 1),
                                  (int64_t[OCT_MAX_RANK]){1, 1, 1, 1, 1, 1, 1, 1});
    oct_tensor *x = NULL;
    oct_status status;

    type.dim[type.rank - 1] = 256;
    OCT_TRY(oct_tensor_make(p->ctx, &type, &x));
    for (int i = 0; i < 256; i++)
        ((float *)x->data)[i] = (float)(i - oct_codes_zero(c, 0)) * oct_codes_scale(c, 0);
    status = OCT_OK;
    for (int i = 0; i < s->integer->n_chain && !status; i++)
        status = apply(s->integer->chain[i], &x);
    if (!status && st->to_codes) status = apply(s->last, &x);
    for (int i = 0; i < 256 && !status; i++)
        if (st->to_codes)
            st->code[i] = ((const uint8_t *)x->data)[i];
        else
            st->value[i] = ((const float *)x->data)[i];
    oct_tensor_unref(x);
    return status;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    st->set = oct_int8_get();
    st->to_codes = oct_step_out_is_codes(s);
    OCT_TRY(fill(p, s, st));
    oct_int8_grid_make(p, s->in[0], s->out[0], 1, -1, &st->grid);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "int8 table:%s", st->set->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const uint8_t *x;
    void *y;
} job;

static void look_up(const job *j, int64_t at_x, int64_t at_y, int64_t n)
{
    const state *st = j->st;

    if (st->to_codes)
        st->set->lookup(st->code, j->x + at_x, (uint8_t *)j->y + at_y, n);
    else
        st->set->lookup_f32(st->value, j->x + at_x, (float *)j->y + at_y, n);
}

static void piece(void *arg, int64_t begin, int64_t end)
{
    look_up(arg, begin, begin, end - begin);
}

static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const oct_int8_strides *r = &j->st->grid.r;

    for (int64_t i = begin; i < end; i++)
        look_up(j, i * r->a_pitch, i * r->y_pitch, r->n);
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const oct_int8_strides *r = &st->grid.r;
    job j = {st, b->in[0], b->out[0]};

    if (r->rows == 1)
        oct_parallel_for(b->n_threads, r->n, GRAIN, piece, &j);
    else
        oct_parallel_for(b->n_threads, r->rows, OCT_MAX(1, GRAIN / OCT_MAX(r->n, 1)), rows, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_int8_lut = {
    .name = "int8-lut",
    .flags =
        OCT_KERNEL_INTEGER | OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT | OCT_KERNEL_IN_PLACE,
    .accepts = accepts,
    .make = make,
    .run = run,
};
