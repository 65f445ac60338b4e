/* SPDX-License-Identifier: Apache-2.0 */
/* MatMul and Gemm with bias and activation, by oneDNN. */
#include "exec/onednn/onednn_prim.h"
#include "op/op.h"

enum { A, B, C };

typedef struct product {
    oct_type a, b, y;
    int rank;
    bool trans_a, trans_b;
} product;

static bool flag(const oct_node *n, const char *name)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->i;
}

static bool is_one(const oct_node *n, const char *name)
{
    const oct_attr *a = oct_node_attr(n, name);

    return a && a->f == 1.0f;
}

/* A bias that oneDNN can add: one value for each column. */
static bool is_row(const oct_type *c, int64_t columns)
{
    return c->rank >= 1 && c->dim[c->rank - 1] == columns && oct_type_len(c) == columns;
}

/* All rows of all matrices as one. */
static oct_type one_matrix(const oct_type *t)
{
    const int64_t columns = t->dim[t->rank - 1];

    return oct_type_make(t->dtype, 2, (const int64_t[]){oct_type_len(t) / columns, columns});
}

/* One matrix that multiplies the whole other operand is one product, not thousands of small
 * ones. */
static void merge_batch(product *pr)
{
    if (oct_type_span(&pr->b, 0, pr->b.rank - 2) != 1) return;
    pr->a = one_matrix(&pr->a);
    pr->b = one_matrix(&pr->b);
    pr->y = one_matrix(&pr->y);
}

static bool find_product(const oct_plan *p, const oct_step *s, product *pr)
{
    const oct_tensor *c = oct_step_const(p, s, C);
    const bool is_plain = s->node->op == &oct_op_mat_mul;

    *pr = (product){
        .a = p->slots[s->in[A]].type, .b = p->slots[s->in[B]].type, .y = p->slots[s->out[0]].type};
    if (pr->a.rank < 2 || pr->b.rank < 2) return false;
    if (oct_type_len(&pr->a) < 1 || oct_type_len(&pr->b) < 1) return false;
    if (is_plain) merge_batch(pr);
    pr->rank = OCT_MAX(pr->a.rank, pr->b.rank);
    if (pr->rank > 6) return false;
    if (is_plain) return true;
    pr->trans_a = flag(s->node, "transA");
    pr->trans_b = flag(s->node, "transB");
    if (!is_one(s->node, "alpha")) return false;
    if (!oct_step_in(p, s, C)) return true;
    return c && is_one(s->node, "beta") && is_row(&c->type, pr->y.dim[1]);
}

static bool accepts(const oct_plan *p, const oct_step *s, oct_layout *layout)
{
    product pr;

    if (!s->node || (s->node->op != &oct_op_mat_mul && s->node->op != &oct_op_gemm)) return false;
    if (!oct_step_is_f32(p, s) || s->fuse.residual >= 0 || p->slots[s->in[A]].data) return false;
    *layout = OCT_LAYOUT_PLAIN;
    return oct_prim_sizes_fit(p, s) && find_product(p, s, &pr);
}

/* Dense, with leading ones up to `rank`, the last two dims swapped if transposed. */
static void operand_md(const oct_type *t, int rank, bool transposed, dnnl_memory_desc_t *md)
{
    dnnl_dims_t d = {0}, strides = {0};
    int64_t step = 1;

    for (int i = rank - 1; i >= 0; i--) {
        const int k = i - (rank - t->rank);

        d[i] = k >= 0 ? t->dim[k] : 1;
        strides[i] = step;
        step *= d[i];
    }
    if (transposed) {
        const int64_t rows = d[rank - 2], row = strides[rank - 2];

        d[rank - 2] = d[rank - 1];
        strides[rank - 2] = strides[rank - 1];
        d[rank - 1] = rows;
        strides[rank - 1] = row;
    }
    dnnl_memory_desc_init_by_strides(md, rank, d, dnnl_f32, strides);
}

static dnnl_status_t make_desc(const oct_plan *p, const oct_step *s, const dnnl_memory_desc_t *a,
                               const dnnl_memory_desc_t *b, const dnnl_memory_desc_t *bias,
                               const dnnl_memory_desc_t *y, dnnl_primitive_desc_t *out)
{
    dnnl_matmul_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t st = dnnl_matmul_desc_init(&desc, a, b, bias, y);

    if (!st) st = dnnl_primitive_attr_create(&attr);
    if (!st) st = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (!st) st = dnnl_post_ops_create(&ops);
    if (!st && !oct_prim_append_act(ops, &s->fuse.act[0])) st = dnnl_unimplemented;
    if (!st) st = dnnl_primitive_attr_set_post_ops(attr, ops);
    if (!st) st = dnnl_primitive_desc_create(out, &desc, attr, p->dnnl->engine, NULL);
    if (ops) dnnl_post_ops_destroy(ops);
    if (attr) dnnl_primitive_attr_destroy(attr);
    return st;
}

static oct_status make(oct_plan *p, oct_step *s)
{
    const oct_tensor *w = oct_step_const(p, s, B), *c = oct_step_const(p, s, C);
    dnnl_memory_desc_t a, b, b_any, bias, y;
    dnnl_primitive_desc_t pd = NULL;
    oct_prim *prim = NULL;
    product pr;
    dnnl_status_t st;

    if (!find_product(p, s, &pr)) return oct_node_fail(s->node, OCT_ERR_STATE, "has no product");
    OCT_TRY(oct_prim_new(p, s, &prim));
    operand_md(&pr.a, pr.rank, pr.trans_a, &a);
    operand_md(&pr.b, pr.rank, pr.trans_b, &b);
    operand_md(&pr.y, pr.rank, false, &y);
    b_any = b;
    if (w) dnnl_memory_desc_init_by_tag(&b_any, b.ndims, b.dims, dnnl_f32, dnnl_format_tag_any);
    if (c) {
        oct_type row = oct_type_make(OCT_DTYPE_F32, 1, &y.dims[pr.rank - 1]);

        operand_md(&row, pr.rank, false, &bias);
    }
    if ((st = make_desc(p, s, &a, &b_any, c ? &bias : NULL, &y, &pd)))
        return oct_dnnl_fail(s, st, "matrix product");
    oct_prim_add(prim, DNNL_ARG_SRC, OCT_PRIM_IN, A, &a);
    oct_prim_add(prim, DNNL_ARG_DST, OCT_PRIM_OUT, 0, &y);
    if (w) {
        const dnnl_memory_desc_t *to = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
        const oct_status packed = oct_prim_pack(p, s, prim, DNNL_ARG_WEIGHTS, &b, w->data, to);

        if (packed) {
            dnnl_primitive_desc_destroy(pd);
            return packed;
        }
    } else {
        oct_prim_add(prim, DNNL_ARG_WEIGHTS, OCT_PRIM_IN, B, &b);
    }
    if (c) oct_prim_add(prim, DNNL_ARG_BIAS, OCT_PRIM_IN, C, &bias);
    return oct_prim_finish(p, s, prim, pd);
}

const oct_kernel oct_kernel_onednn_matmul = {
    .name = "onednn-matmul",
    .flags = OCT_KERNEL_OPENMP,
    .accepts = accepts,
    .make = make,
    .drop = oct_prim_drop,
    .bind = oct_prim_bind,
    .unbind = oct_prim_unbind,
    .run = oct_prim_run,
};
