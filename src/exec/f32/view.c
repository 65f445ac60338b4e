/* SPDX-License-Identifier: Apache-2.0 */
/* Zero-copy steps: Reshape, Transpose of NHWC, and the channel shuffle, which copies only if it
 * must. */
#include <string.h>

#include "base/parallel.h"
#include "exec/kernel.h"
#include "op/op.h"

static oct_status run(const oct_bound *b)
{
    const size_t size = *(const size_t *)b->step->state;

    if (b->out[0] != b->in[0]) memcpy(b->out[0], b->in[0], size);
    return OCT_OK;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    size_t *size = oct_plan_alloc(p, 1, sizeof(*size));

    if (!size) return OCT_ERR_MEMORY;
    oct_type_bytes(&p->slots[s->out[0]].type, size);
    s->state = size;
    s->impl = "copy";
    return OCT_OK;
}

/* [N, C, spatial..] to [N, C, other spatial..]: the same bytes in NHWC too. */
static bool keeps_channels(const oct_type *x, const oct_type *y)
{
    return oct_type_has_channels(x) && oct_type_has_channels(y) && x->dim[0] == y->dim[0] &&
           x->dim[1] == y->dim[1];
}

static bool accepts_view(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    const oct_slot *x = oct_step_in(p, s, 0), *y = oct_step_out(p, s, 0);

    if (!s->node || !(s->node->op->flags & (OCT_OP_VIEW | OCT_OP_IS_COPY)) || s->n_out != 1 || !x ||
        !y || s->fuse.shuffle || s->fuse.bins)
        return false;
    if (oct_type_len(&x->type) != oct_type_len(&y->type) || x->type.dtype != y->type.dtype ||
        x->data)
        return false;
    if (x->layout == OCT_LAYOUT_CLAST && keeps_channels(&x->type, &y->type))
        *layout = OCT_LAYOUT_CLAST;
    return true;
}

const oct_kernel oct_kernel_view = {
    .name = "view",
    .flags = OCT_KERNEL_VIEW,
    .accepts = accepts_view,
    .make = make,
    .run = run,
};

/* Transpose of an NHWC tensor that puts the channels last: its memory is the row-major result. */
static bool accepts_transpose(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    const oct_slot *x = oct_step_in(p, s, 0);
    const oct_attr *perm;
    int64_t want = 0;

    if (!s->node || s->node->op != &oct_op_transpose || !x || x->data) return false;
    perm = oct_node_attr(s->node, "perm");
    if (!perm || x->layout != OCT_LAYOUT_CLAST || perm->n != x->type.rank) return false;
    for (int64_t i = 0; i < perm->n; i++) {
        if (perm->is[i] != (i == perm->n - 1 ? 1 : want)) return false;
        want += want == 0 ? 2 : 1;
    }
    *layout = OCT_LAYOUT_CLAST;
    return true;
}

const oct_kernel oct_kernel_transpose_view = {
    .name = "transpose-view",
    .flags = OCT_KERNEL_VIEW,
    .out_layout = OCT_LAYOUT_PLAIN,
    .accepts = accepts_transpose,
    .make = make,
    .run = run,
};

/* --- channel shuffle: [g, C/g] read, [C/g, g] written, for each pixel --- */

typedef struct shuffle {
    int64_t pixels, groups, per_group, in_pitch, out_pitch;
    int64_t second_pitch; /* 0: one operand */
    size_t elem;          /* bytes of an element: 1 or 4 */
} shuffle;

typedef struct job {
    const shuffle *s;
    const void *x, *second; /* second: the other half, if it is an operand of its own */
    void *y;
} job;

/* Interleaves n channels of a and of b. */
#define SHUFFLE(name, T)                                                                           \
    static void name##_pair(const T *restrict a, const T *restrict b, T *restrict y, int64_t n)    \
    {                                                                                              \
        for (int64_t c = 0; c < n; c++) {                                                          \
            y[2 * c] = a[c];                                                                       \
            y[2 * c + 1] = b[c];                                                                   \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void name(void *arg, int64_t begin, int64_t end)                                        \
    {                                                                                              \
        const job *j = arg;                                                                        \
        const int64_t g = j->s->groups, k = j->s->per_group;                                       \
                                                                                                   \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const T *x = (const T *)j->x + i * j->s->in_pitch;                                     \
            T *y = (T *)j->y + i * j->s->out_pitch;                                                \
                                                                                                   \
            if (g == 2) {                                                                          \
                name##_pair(x, j->second ? (const T *)j->second + i * j->s->second_pitch : x + k,  \
                            y, k);                                                                 \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t c = 0; c < k; c++)                                                        \
                for (int64_t h = 0; h < g; h++)                                                    \
                    y[c * g + h] = x[h * k + c];                                                   \
        }                                                                                          \
    }

SHUFFLE(shuffle_floats, float)
SHUFFLE(shuffle_bytes, uint8_t)

static oct_status run_shuffle(const oct_bound *b)
{
    const shuffle *s = b->step->state;
    job j = {s, b->in[0], s->second_pitch ? b->in[1] : NULL, b->out[0]};

    oct_parallel_for(b->n_threads, s->pixels, 256, s->elem == 1 ? shuffle_bytes : shuffle_floats,
                     &j);
    return OCT_OK;
}

static oct_status make_shuffle(oct_plan *p, oct_step *s)
{
    const oct_type *t = &p->slots[s->out[0]].type;
    shuffle *sh = oct_plan_alloc(p, 1, sizeof(*sh));

    if (!sh) return OCT_ERR_MEMORY;
    *sh = (shuffle){.pixels = t->dim[0] * oct_type_pixels(t),
                    .elem = oct_dtype_size(t->dtype),
                    .groups = s->fuse.shuffle,
                    .per_group = t->dim[1] / s->fuse.shuffle,
                    .in_pitch = oct_slot_pitch(p, s->in[0]),
                    .out_pitch = oct_slot_pitch(p, s->out[0])};
    if (s->node->op == &oct_op_concat) sh->second_pitch = oct_slot_pitch(p, s->in[1]);
    s->state = sh;
    s->impl = "shuffle";
    return OCT_OK;
}

static bool accepts_shuffle(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    (void)p;
    if (!s->fuse.shuffle) return false; /* only made of types of 1 and 4 bytes */
    *layout = OCT_LAYOUT_CLAST;
    return true;
}

const oct_kernel oct_kernel_shuffle = {
    .name = "shuffle",
    .flags = OCT_KERNEL_STRIDED_IN | OCT_KERNEL_STRIDED_OUT,
    .accepts = accepts_shuffle,
    .make = make_shuffle,
    .run = run_shuffle,
};
