/* SPDX-License-Identifier: Apache-2.0 */
/* What the integer kernels share. */
#include "exec/int8/int8_kernel.h"

bool oct_codes_are_u8(const oct_codes *c)
{
    return c->dtype == OCT_DTYPE_U8 && (c->axis < 0 || c->axis == 1);
}

bool oct_step_in_u8(const oct_plan *p, const oct_step *s, int32_t i)
{
    return i < s->n_in && s->in[i] >= 0 && oct_codes_are_u8(&s->integer->in[i]) &&
           !p->slots[s->in[i]].data;
}

bool oct_step_out_u8_or_f32(const oct_plan *p, const oct_step *s)
{
    if (s->n_out != 1 || s->out[0] < 0) return false;
    return oct_step_out_is_codes(s) ? oct_codes_are_u8(&s->integer->out)
                                    : p->slots[s->out[0]].type.dtype == OCT_DTYPE_F32;
}

oct_status oct_int8_codes_make(oct_plan *p, const oct_codes *c, oct_int8_codes *out)
{
    float *scale = oct_plan_alloc(p, (size_t)c->n, sizeof(*scale));
    int32_t *zero = oct_plan_alloc(p, (size_t)c->n, sizeof(*zero));

    if (!scale || !zero) return OCT_ERR_MEMORY;
    for (int64_t i = 0; i < c->n; i++) {
        scale[i] = oct_codes_scale(c, i);
        zero[i] = oct_codes_zero(c, i);
    }
    *out = (oct_int8_codes){c->n, scale, zero, c->last};
    return OCT_OK;
}

void *oct_plan_alloc_aligned(oct_plan *p, size_t size)
{
    char *at = size <= SIZE_MAX - 64 ? oct_plan_alloc(p, size + 64, 1) : NULL;

    return at ? at + (64 - (uintptr_t)at % 64) % 64 : NULL;
}

oct_status oct_int8_epilogue_make(oct_plan *p, const oct_int8_epilogue_spec *s,
                                  oct_int8_epilogue *f)
{
    void *memory = oct_plan_alloc_aligned(p, oct_int8_epilogue_size(s->c));

    if (!memory) return OCT_ERR_MEMORY;
    oct_int8_epilogue_pack(s, memory, f);
    return OCT_OK;
}

void oct_int8_grid_make(const oct_plan *p, int32_t in, int32_t out, int64_t n_codes, int32_t axis,
                        oct_int8_grid *g)
{
    const oct_type *t = &p->slots[out].type;
    const bool clast = p->slots[out].layout == OCT_LAYOUT_CLAST;
    const int64_t len = oct_type_len(t);

    g->n_params = 1;
    if (clast && (n_codes > 1 || !oct_slot_is_dense(p, in) || !oct_slot_is_dense(p, out))) {
        g->r = (oct_int8_strides){.rows = t->dim[0] * oct_type_pixels(t),
                                  .n = t->dim[1],
                                  .a_pitch = oct_slot_pitch(p, in),
                                  .y_pitch = oct_slot_pitch(p, out)};
        return;
    }
    g->r = (oct_int8_strides){.rows = 1, .n = len};
    if (n_codes > 1) {
        const int64_t inner = oct_type_span(t, axis + 1, t->rank);

        g->r.n = inner == 1 ? n_codes : inner;
        g->r.rows = g->r.n ? len / g->r.n : 0;
        if (inner != 1) g->n_params = n_codes;
    }
    g->r.a_pitch = g->r.y_pitch = g->r.n;
}
