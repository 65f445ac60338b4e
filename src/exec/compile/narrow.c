/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bfloat16 for training: convolutions read operands that are rounded to bfloat16 and sum their
 * products in float32; what waits in memory for the backward part is bfloat16.
 *
 * Works on steps that have their kernels. A slot that convolutions, BatchNorm or activations read
 * gets a copy in bfloat16, or is written so at once if nothing else reads it. Where the CPU has
 * products of bfloat16, convolutions read the copies; elsewhere each gets them widened, just before
 * it runs, and so has the same operands. Sums of gradients, statistics and the loss stay float32.
 */
#include "exec/onednn/onednn.h"
#include "exec/train/bf16.h"
#include "op/grad/rules.h"
#include "op/op.h"

enum { MAX_ACTS = 2 }; /* operands of a convolution, or of its gradients, that are activations */

typedef struct narrower {
    oct_plan *p;
    uint8_t *is_read, *is_wide; /* by slot: read as bfloat16; must be float32 */
    int32_t *copy;              /* by slot: the one in bfloat16, or -1 */
    int32_t n_slots;
    bool has_products; /* the CPU multiplies bfloat16 */
} narrower;

/* --- who reads what --- */

static bool is_conv(const oct_step *s)
{
    const oct_op *op = s->node && !s->integer ? s->node->op : NULL;

    return op == &oct_op_conv || op == &oct_op_conv_transpose || op == &oct_op_conv_grad_weight;
}

static bool is_act(const oct_step *s)
{
    return s->kernel == &oct_kernel_unary || s->kernel == &oct_kernel_act_grad;
}

static bool is_norm(const oct_step *s)
{
    return s->kernel == &oct_kernel_batch_norm_train ||
           s->kernel == &oct_kernel_batch_norm_train_grad;
}

/* The first operand; of ConvGradWeight both. */
static bool reads_narrow(const oct_step *s, int32_t operand)
{
    if (operand == 0) return is_conv(s) || is_act(s) || is_norm(s);
    return operand == 1 && is_conv(s) && s->node->op == &oct_op_conv_grad_weight;
}

static bool writes_narrow(const narrower *a, const oct_step *s, int32_t result)
{
    if (result != 0) return false;
    return is_act(s) || is_norm(s) ||
           (a->has_products && s->kernel == &oct_kernel_onednn_conv_bf16);
}

/* Activations in NHWC. */
static bool may_be_narrow(const oct_plan *p, int32_t slot)
{
    const oct_slot *s = &p->slots[slot];

    return !s->data && !s->is_input && s->type.dtype == OCT_DTYPE_F32 && s->parent < 0 &&
           s->layout == OCT_LAYOUT_CLAST && oct_type_has_channels(&s->type);
}

static void find_readers(narrower *a)
{
    const oct_plan *p = a->p;

    for (int32_t i = 0; i < p->n_slots; i++) {
        a->copy[i] = -1;
        if (p->slots[i].pinned || p->is_kept[p->slots[i].value->id]) a->is_wide[i] = 1;
        if (p->slots[i].parent >= 0) a->is_wide[p->slots[i].parent] = 1;
    }
    for (int32_t i = 0; i < p->n_steps; i++)
        for (int32_t k = 0; k < p->steps[i].n_in; k++) {
            const int32_t slot = p->steps[i].in[k];

            if (slot < 0) continue;
            if (reads_narrow(&p->steps[i], k) && may_be_narrow(p, slot))
                a->is_read[slot] = 1;
            else
                a->is_wide[slot] = 1;
        }
}

/* --- rewriting --- */

/* A step that converts `from`; *to is the new slot. */
static oct_status add_conversion(narrower *a, int32_t from, const oct_kernel *kernel,
                                 oct_dtype dtype, int32_t *to)
{
    oct_plan *p = a->p;
    oct_slot slot = p->slots[from];
    oct_step s = {.fuse = {.residual = -1},
                  .kernel = kernel,
                  .layout = slot.layout,
                  .label = kernel->name,
                  .n_in = 1,
                  .n_out = 1};

    slot.type.dtype = dtype;
    slot.data = NULL;
    slot.parent = -1;
    slot.pinned = slot.is_input = false;
    if (!(s.in = oct_plan_alloc(p, 2, sizeof(int32_t)))) return OCT_ERR_MEMORY;
    s.out = s.in + 1;
    OCT_TRY(oct_plan_add_slot(p, &slot, to));
    s.in[0] = from;
    s.out[0] = *to;
    return oct_plan_add_step(p, &s, NULL);
}

/* Operands that are rounded, in float32, of one step only: they need memory while it runs. */
static oct_status round_operands(narrower *a, oct_step *s)
{
    const bool has_weights = s->node->op != &oct_op_conv_grad_weight;

    for (int32_t k = 0; k < MAX_ACTS; k++) {
        const int32_t slot = s->in[k], copy = slot >= 0 && slot < a->n_slots ? a->copy[slot] : -1;

        if (slot < 0) continue;
        if (copy >= 0 && !(k == 1 && has_weights))
            OCT_TRY(add_conversion(a, copy, &oct_kernel_widen, OCT_DTYPE_F32, &s->in[k]));
        else if (!a->p->slots[slot].data)
            OCT_TRY(add_conversion(a, slot, &oct_kernel_round_bf16, OCT_DTYPE_F32, &s->in[k]));
    }
    return OCT_OK;
}

static bool has_copies(const narrower *a, const oct_step *s)
{
    for (int32_t k = 0; k < s->n_in; k++)
        if (reads_narrow(s, k) && (s->in[k] < 0 || a->copy[s->in[k]] < 0)) return false;
    return true;
}

static oct_status change_conv(narrower *a, oct_step *s)
{
    if (!a->has_products || !has_copies(a, s) || !oct_onednn_conv_bf16_accepts(a->p, s))
        return round_operands(a, s);
    s->kernel = &oct_kernel_onednn_conv_bf16;
    for (int32_t k = 0; k < s->n_in; k++)
        if (reads_narrow(s, k)) s->in[k] = a->copy[s->in[k]];
    return OCT_OK;
}

static void change_other(const narrower *a, oct_step *s)
{
    for (int32_t k = 0; k < s->n_in; k++)
        if (s->in[k] >= 0 && reads_narrow(s, k) && a->copy[s->in[k]] >= 0)
            s->in[k] = a->copy[s->in[k]];
}

/* After a step: copies of what it made. */
static oct_status add_copies(narrower *a, oct_step *s)
{
    oct_plan *p = a->p;

    for (int32_t k = 0; k < s->n_out; k++) {
        const int32_t slot = s->out[k];

        if (slot < 0 || slot >= a->n_slots || !a->is_read[slot]) continue;
        if (!a->is_wide[slot] && writes_narrow(a, s, k)) {
            p->slots[slot].type.dtype = OCT_DTYPE_BF16;
            a->copy[slot] = slot;
            continue;
        }
        OCT_TRY(add_conversion(a, slot, &oct_kernel_narrow, OCT_DTYPE_BF16, &a->copy[slot]));
    }
    return OCT_OK;
}

static void choose_act(const oct_plan *p, oct_step *s)
{
    bool any = oct_slot_is_bf16(p, s->out[0]);

    for (int32_t k = 0; k < s->n_in; k++)
        any |= oct_slot_is_bf16(p, s->in[k]);
    if (any)
        s->kernel =
            s->kernel == &oct_kernel_unary ? &oct_kernel_unary_bf16 : &oct_kernel_act_grad_bf16;
}

static oct_status change_step(narrower *a, oct_step s)
{
    oct_plan *p = a->p;
    int32_t at = 0;

    if (is_conv(&s))
        OCT_TRY(change_conv(a, &s));
    else
        change_other(a, &s);
    OCT_TRY(oct_plan_add_step(p, &s, &at));
    OCT_TRY(add_copies(a, &s));
    if (is_act(&p->steps[at])) choose_act(p, &p->steps[at]);
    return OCT_OK;
}

oct_status oct_plan_narrow(oct_plan *p)
{
    const size_t n_slots = (size_t)p->n_slots + 1;
    oct_step *steps = p->steps;
    const int32_t n = p->n_steps;
    narrower a = {.p = p, .n_slots = p->n_slots, .has_products = oct_dnnl_has_bf16()};
    oct_status st = OCT_OK;

    if (!p->is_bf16) return OCT_OK;
    a.is_read = oct_plan_alloc(p, n_slots, 1);
    a.is_wide = oct_plan_alloc(p, n_slots, 1);
    a.copy = oct_plan_alloc(p, n_slots, sizeof(*a.copy));
    if (!a.is_read || !a.is_wide || !a.copy) return OCT_ERR_MEMORY;
    find_readers(&a);
    p->steps = NULL; /* rebuilt, with the conversions */
    p->n_steps = 0;
    p->cap_steps = 0;
    for (int32_t i = 0; i < n && !st; i++)
        st = change_step(&a, steps[i]);
    oct_free(p->ctx, steps);
    return st;
}
