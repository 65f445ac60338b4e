/* SPDX-License-Identifier: Apache-2.0 */
/* Add, Sub and Mul of two u8 operands; the second may be broadcast over pixels or channels. */
#include "base/parallel.h"
#include "exec/int8/int8_kernel.h"
#include "op/op.h"

enum { A, B };

static const struct row {
    const oct_op *op;
    oct_int8_op kind;
} rows[] = {
    {&oct_op_add, OCT_INT8_ADD},
    {&oct_op_sub, OCT_INT8_SUB},
    {&oct_op_mul, OCT_INT8_MUL},
};

/* How the second operand is broadcast. */
typedef enum repeat {
    SAME_SHAPE,  /* not at all: one element for each of the result's */
    ONE_PIXEL,   /* [N or 1, C, 1, 1]: channels for all pixels */
    ONE_CHANNEL, /* [N, 1, H, W]: one element for all channels of a pixel */
    ONE_ROW      /* the last axis only, in NCHW */
} repeat;

typedef struct state {
    const oct_int8 *set;
    oct_int8_binary binary;
    int32_t a, b; /* which operand is which: the second is broadcast */
    int b_step;
    int64_t images, b_image; /* loops around the rows; elements of b from one to the next */
    int64_t a_picture, y_picture;
    oct_int8_strides r;
    int64_t len; /* one long row, cut into pieces: its length; 0: rows as they are */
    size_t y_size;
} state;

static const struct row *find_row(const oct_step *s)
{
    for (size_t i = 0; s->node && i < OCT_COUNT(rows); i++)
        if (s->node->op == rows[i].op) return &rows[i];
    return NULL;
}

/* With leading ones up to the rank of y. */
static oct_type padded(const oct_type *t, const oct_type *y)
{
    oct_type out = *y;

    for (int d = 0; d < y->rank; d++)
        out.dim[d] = d < y->rank - t->rank ? 1 : t->dim[d - (y->rank - t->rank)];
    out.dtype = t->dtype;
    return out;
}

static bool same_dims(const oct_type *a, const oct_type *b)
{
    for (int d = 0; d < b->rank; d++)
        if (a->rank != b->rank || a->dim[d] != b->dim[d]) return false;
    return true;
}

static bool find_repeat(const oct_slot *x, const oct_type *y, repeat *out)
{
    const oct_type t = padded(&x->type, y);

    *out = SAME_SHAPE;
    if (x->type.rank > y->rank) return false;
    if (same_dims(&t, y) && !x->data) return true; /* a constant is NCHW */
    *out = ONE_ROW;
    if (y->rank > 0 && t.dim[y->rank - 1] == y->dim[y->rank - 1] &&
        oct_type_len(&t) == y->dim[y->rank - 1])
        return true;
    if (y->rank < 3 || (x->type.rank != y->rank && !x->data)) return false;
    *out = ONE_PIXEL;
    if (oct_type_pixels(&t) == 1 && t.dim[1] == y->dim[1] &&
        (t.dim[0] == 1 || t.dim[0] == y->dim[0]))
        return true;
    *out = ONE_CHANNEL;
    if (x->data || t.dim[1] != 1 || t.dim[0] != y->dim[0]) return false;
    for (int d = 2; d < y->rank; d++)
        if (t.dim[d] != y->dim[d]) return false;
    return true;
}

/* Which operand is broadcast, and how; the other has the result's shape. */
static bool find_order(const oct_plan *p, const oct_step *s, int32_t *a, repeat *how)
{
    const oct_type *y = &p->slots[s->out[0]].type;

    for (*a = A; *a <= B; ++*a) {
        const oct_slot *x = &p->slots[s->in[*a]];

        if (*a == B && s->node->op == &oct_op_sub) return false;
        if (!x->data && same_dims(&x->type, y) && find_repeat(&p->slots[s->in[1 - *a]], y, how))
            return true;
    }
    return false;
}

static bool is_per_channel(const oct_step *s)
{
    return s->integer->in[A].n > 1 || s->integer->in[B].n > 1 ||
           (oct_step_out_is_codes(s) && s->integer->out.n > 1);
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    repeat how;
    int32_t a;

    if (!s->integer || s->integer->n_chain || !find_row(s) || s->n_in != 2) return false;
    if (s->in[A] < 0 || s->in[B] < 0 || s->fuse.residual >= 0 || s->fuse.act[1].kind) return false;
    if (!oct_codes_are_u8(&s->integer->in[A]) || !oct_codes_are_u8(&s->integer->in[B]))
        return false;
    if (!oct_step_out_u8_or_f32(p, s) || !find_order(p, s, &a, &how)) return false;
    *layout = OCT_LAYOUT_ANY;
    /* Channels are axis 1 counted from the front: in an operand of lower rank that is another
     * axis. */
    if (how == ONE_ROW ||
        (how == SAME_SHAPE && p->slots[s->in[1 - a]].type.rank != p->slots[s->out[0]].type.rank)) {
        *layout = OCT_LAYOUT_PLAIN;
        return !is_per_channel(s);
    }
    if (how != SAME_SHAPE || is_per_channel(s)) {
        if (!oct_type_has_channels(&p->slots[s->out[0]].type)) return false;
        *layout = OCT_LAYOUT_CLAST;
    }
    /* Scales by channel cannot be applied to an operand with one element for each pixel. */
    return how != ONE_CHANNEL || s->integer->in[1 - a].n == 1;
}

static void cut_rows(const oct_plan *p, const oct_step *s, repeat how, state *st)
{
    const oct_type *t = &p->slots[s->out[0]].type;
    const int32_t a = s->in[st->a], b = s->in[st->b], y = s->out[0];
    const bool dense =
        oct_slot_is_dense(p, a) && oct_slot_is_dense(p, b) && oct_slot_is_dense(p, y);

    st->images = 1;
    st->b_step = how != ONE_CHANNEL;
    if (how == SAME_SHAPE && dense && !is_per_channel(s)) {
        st->len = oct_type_len(t);
        return;
    }
    if (how == ONE_ROW) {
        const int64_t n = t->dim[t->rank - 1];

        st->r = (oct_int8_strides){
            .rows = n ? oct_type_len(t) / n : 0, .n = n, .a_pitch = n, .y_pitch = n};
        return;
    }
    st->r = (oct_int8_strides){.rows = t->dim[0] * oct_type_pixels(t),
                               .n = t->dim[1],
                               .a_pitch = oct_slot_pitch(p, a),
                               .b_pitch = oct_slot_pitch(p, b),
                               .y_pitch = oct_slot_pitch(p, y)};
    if (how != ONE_PIXEL) return;
    st->r.b_pitch = 0;
    st->images = t->dim[0];
    st->r.rows = oct_type_pixels(t);
    st->a_picture = st->r.rows * st->r.a_pitch;
    st->y_picture = st->r.rows * st->r.y_pitch;
    if (!p->slots[b].data && p->slots[b].type.dim[0] > 1) st->b_image = oct_slot_pitch(p, b);
    if (p->slots[b].data && padded(&p->slots[b].type, t).dim[0] > 1) st->b_image = t->dim[1];
}

static oct_status make(oct_plan *p, oct_step *s)
{
    oct_int8_binary_spec spec = {
        .op = find_row(s)->kind, .act = s->fuse.act[0], .c = 1, .out = OCT_INT8_F32};
    state *st = oct_plan_alloc(p, 1, sizeof(*st));
    repeat how;
    void *memory;

    if (!st) return OCT_ERR_MEMORY;
    if (!find_order(p, s, &st->a, &how))
        return oct_node_fail(s->node, OCT_ERR_STATE, "has operands that do not repeat");
    st->set = oct_int8_get();
    st->b = 1 - st->a;
    spec.swapped = st->a == B;
    if (s->integer->out.was_signed) spec.offset = 128;
    if (is_per_channel(s)) spec.c = p->slots[s->out[0]].type.dim[1];
    OCT_TRY(oct_int8_codes_make(p, &s->integer->in[st->a], &spec.a));
    OCT_TRY(oct_int8_codes_make(p, &s->integer->in[st->b], &spec.b));
    if (oct_step_out_is_codes(s)) {
        spec.out = OCT_INT8_U8;
        OCT_TRY(oct_int8_codes_make(p, &s->integer->out, &spec.y));
    }
    if (!(memory = oct_plan_alloc_aligned(p, oct_int8_binary_size(spec.c)))) return OCT_ERR_MEMORY;
    oct_int8_binary_pack(&spec, memory, &st->binary);
    cut_rows(p, s, how, st);
    st->y_size = oct_dtype_size(p->slots[s->out[0]].type.dtype);
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "int8 binary:%s", st->set->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const uint8_t *a, *b;
    char *y;
} job;

/* Elements of one long row, or rows. */
static void some(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;
    const int64_t n = end - begin;
    oct_int8_strides r = {.rows = 1, .n = n, .a_pitch = 1, .b_pitch = 1, .y_pitch = 1};

    if (!st->len) {
        r = st->r;
        r.rows = n;
    }
    st->set->binary(&st->binary, &r, j->a + begin * r.a_pitch, j->b + begin * r.b_pitch, st->b_step,
                    j->y + (size_t)(begin * r.y_pitch) * st->y_size);
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    const int64_t grain =
        st->len ? OCT_GRAIN_ELEMENTS : OCT_MAX(1, OCT_GRAIN_ELEMENTS / OCT_MAX(st->r.n, 1));

    for (int64_t i = 0; i < st->images; i++) {
        job j = {.st = st,
                 .a = (const uint8_t *)b->in[st->a] + i * st->a_picture,
                 .b = (const uint8_t *)b->in[st->b] + i * st->b_image,
                 .y = (char *)b->out[0] + (size_t)(i * st->y_picture) * st->y_size};

        oct_parallel_for(b->n_threads, st->len ? st->len : st->r.rows, grain, some, &j);
    }
    return OCT_OK;
}

const oct_kernel oct_kernel_int8_binary = {
    .name = "int8-binary",
    .flags =
        OCT_KERNEL_INTEGER | OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT | OCT_KERNEL_IN_PLACE,
    .accepts = accepts,
    .make = make,
    .run = run,
};
