/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizes a float NCHW input image to NHWC codes in one pass. */
#include "base/parallel.h"
#include "exec/int8/int8_kernel.h"

#define MAX_CHANNELS 4
#define CHUNK        8192 /* pixels that are worth a thread */

typedef struct state {
    const oct_int8 *set;
    oct_int8_codes codes;
    int64_t images, channels, pixels, chunks, pitch;
} state;

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    const oct_slot *x;

    if (!s->integer || s->integer->n_chain || s->n_in != 1 || !oct_node_is_quantize(s->node))
        return false;
    x = &p->slots[s->in[0]];
    if (!x->value->is_input || x->type.rank != 4 || x->type.dtype != OCT_DTYPE_F32) return false;
    if (x->type.dim[1] < 2 || x->type.dim[1] > MAX_CHANNELS || oct_type_len(&x->type) < 1)
        return false;
    *layout = OCT_LAYOUT_PLAIN;
    return oct_codes_are_u8(&s->integer->out);
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_type *t = &p->slots[s->out[0]].type;
    state *st = oct_plan_alloc(p, 1, sizeof(*st));

    if (!st) return OCT_ERR_MEMORY;
    st->set = oct_int8_get();
    st->images = t->dim[0];
    st->channels = t->dim[1];
    st->pixels = oct_type_pixels(t);
    st->chunks = oct_ceil_div(st->pixels, CHUNK);
    st->pitch = oct_slot_pitch(p, s->out[0]);
    OCT_TRY(oct_int8_codes_make(p, &s->integer->out, &st->codes));
    s->state = st;
    s->impl = oct_arena_printf(p->arena, "int8 input:%s", st->set->name);
    return s->impl ? OCT_OK : OCT_ERR_MEMORY;
}

typedef struct job {
    const state *st;
    const float *x;
    uint8_t *y;
} job;

static void chunks(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const state *st = j->st;

    for (int64_t u = begin; u < end; u++) {
        const int64_t image = u / st->chunks, at = u % st->chunks * CHUNK;

        st->set->quantize_nchw(&st->codes, j->x + image * st->channels * st->pixels + at,
                               st->pixels, st->channels, OCT_MIN(CHUNK, st->pixels - at),
                               j->y + (image * st->pixels + at) * st->pitch, st->pitch);
    }
}

static oct_status run(const oct_bound *b)
{
    const state *st = b->step->state;
    job j = {st, b->in[0], b->out[0]};

    oct_parallel_for(b->n_threads, st->images * st->chunks, 1, chunks, &j);
    return OCT_OK;
}

const oct_kernel oct_kernel_int8_input_nchw = {
    .name = "int8-input-nchw",
    .flags = OCT_KERNEL_INTEGER | OCT_KERNEL_STRIDED_OUT,
    .out_layout = OCT_LAYOUT_CLAST,
    .accepts = accepts,
    .make = make,
    .run = run,
};
