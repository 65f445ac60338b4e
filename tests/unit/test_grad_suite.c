/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients over the standard's own cases of one node (../shared/data/conformance/onnx/node): every
 * operator with the attributes, shapes and operands it has there, rebuilt in float64. The
 * derivative along a random direction is compared with differences; numbers are moved a little
 * first, off corners and ties.
 */
#include <dirent.h>

#include "base/rng.h"
#include "grad/grad.h"
#include "onnx/onnx.h"
#include "op/grad/rules.h"
#include "tests/test.h"

enum { MAX_VALUES = 64, PATH_SIZE = 1024 };

/* Float operands that are settings: no gradient is asked for. */
static const struct {
    const oct_op *op;
    int operand;
} fixed[] = {
    {&oct_op_dropout, 1},
    {&oct_op_negative_log_likelihood_loss, 2},
    {&oct_op_resize, 1},
    {&oct_op_resize, 2},
    {&oct_op_rotary_embedding, 1},
    {&oct_op_rotary_embedding, 2},
    {&oct_op_softmax_cross_entropy_loss, 2},
};

/* Results from this one on are statistics. */
static const struct {
    const oct_op *op;
    int result;
} statistics[] = {
    {&oct_op_attention, 3},
    {&oct_op_batch_normalization, 1},
};

/* Cases whose attributes or operands have no gradient, though their operators have. */
static const char *const limits[] = {
    "test_attention_4d_diff_heads_mask4d_padded_kv",
    "test_maxunpool_export_with_output_shape",
    "test_scatter_elements_with_reduction_max",
    "test_scatter_elements_with_reduction_min",
    "test_scatternd_max",
    "test_scatternd_min",
    "test_scatternd_multiply",
};

typedef enum verdict {
    CHECKED,
    NOT_FLOAT, /* no float goes in and out, or not in float64 */
    REFUSED,
    WRONG,
} verdict;

typedef struct suite_case {
    oct_ctx *ctx;
    oct_graph *file, *g;
    oct_builder b;
    oct_rng rng;
    oct_value **by_id; /* of file's values: those of g */
    oct_tensor *x[MAX_VALUES], *dx[MAX_VALUES + 1];
    oct_value *wrt[MAX_VALUES];
    int n_wrt;
    oct_node *node;
} suite_case;

static oct_tensor *to_f64(suite_case *c, const oct_tensor *t, double noise)
{
    oct_type type = t->type;
    oct_tensor *out = NULL;

    type.dtype = OCT_DTYPE_F64;
    assert_ok(c->ctx, oct_tensor_make(c->ctx, &type, &out));
    for (int64_t i = 0; i < oct_type_len(&type); i++)
        ((double *)out->data)[i] =
            oct_tensor_get_f64(t, i) + noise * (2 * oct_rng_f64(&c->rng) - 1);
    return out;
}

/* A constant, in float64 if it was float32. */
static oct_value *constant(suite_case *c, oct_tensor *t)
{
    if (t->type.dtype != OCT_DTYPE_F32) return oct_value_const(c->g, NULL, oct_tensor_ref(t));
    return oct_value_const(c->g, NULL, to_f64(c, t, 0));
}

static bool is_fixed(const suite_case *c, const oct_value *v)
{
    for (size_t i = 0; i < OCT_COUNT(fixed); i++)
        if (oct_node_is(c->file->first, fixed[i].op) &&
            oct_node_in(c->file->first, fixed[i].operand) == v)
            return true;
    return false;
}

static bool read_inputs(suite_case *c, const char *folder)
{
    for (int i = 0; i < c->file->n_inputs; i++) {
        const oct_value *v = c->file->inputs[i];
        oct_tensor *t = NULL;
        char path[PATH_SIZE + 64];

        if (v->raw_type || i == MAX_VALUES) return false;
        snprintf(path, sizeof(path), "%s/test_data_set_0/input_%d.pb", folder, i);
        if (oct_onnx_read_tensor(c->ctx, path, &t)) return false;
        if ((t->type.dtype == OCT_DTYPE_F32 || t->type.dtype == OCT_DTYPE_F64) && !is_fixed(c, v)) {
            oct_tensor *x = to_f64(c, t, 1e-3);
            const oct_type type = x->type;
            oct_value *in = oct_value_new(c->g, NULL, &type);

            assert_non_null(in);
            assert_ok(c->ctx, oct_graph_add_input(c->g, in));
            c->x[c->n_wrt] = x;
            c->by_id[v->id] = c->wrt[c->n_wrt++] = in;
        } else {
            c->by_id[v->id] = constant(c, t);
        }
        oct_tensor_unref(t);
    }
    return c->n_wrt > 0;
}

/* The file's only node again, on these operands. */
static bool copy_node(suite_case *c)
{
    const oct_node *n = c->file->first;
    oct_value *in[MAX_VALUES];

    if (n->n_in > MAX_VALUES || oct_op_is_opaque(n->op) || n->op->flags & OCT_OP_HAS_BODY)
        return false;
    for (int32_t i = 0; i < n->n_in; i++) {
        in[i] = n->in[i] ? c->by_id[n->in[i]->id] : NULL;
        if (n->in[i] && !in[i] && n->in[i]->data)
            in[i] = c->by_id[n->in[i]->id] = constant(c, n->in[i]->data);
        if (n->in[i] && !in[i]) return false;
    }
    c->node = oct_emit_node(&c->b, n->op, in, n->n_in, n->n_out);
    oct_emit_attrs_of(&c->b, c->node, n);
    return !c->b.status && !oct_node_infer(c->node);
}

static oct_value *make_loss(suite_case *c)
{
    oct_value *loss = NULL;
    int32_t n = c->node->n_out;

    for (size_t i = 0; i < OCT_COUNT(statistics); i++)
        if (oct_node_is(c->node, statistics[i].op)) n = OCT_MIN(n, statistics[i].result);
    for (int32_t i = 0; i < n; i++) {
        oct_value *y = c->file->first->out[i] ? c->node->out[i] : NULL, *w;
        int64_t axes[OCT_MAX_RANK];
        oct_tensor *t = NULL;

        if (!y || y->type.dtype != OCT_DTYPE_F64 || !oct_type_is_static(&y->type)) continue;
        assert_ok(c->ctx, oct_tensor_make(c->ctx, &y->type, &t));
        for (int64_t k = 0; k < oct_tensor_len(t); k++)
            ((double *)t->data)[k] = 2 * oct_rng_f64(&c->rng) - 1;
        w = oct_value_const(c->g, NULL, t);
        for (int32_t d = 0; d < y->type.rank; d++)
            axes[d] = d;
        y = oct_emit(&c->b, &oct_op_mul, y, w, NULL);
        y = oct_grad_reduce(&c->b, &oct_op_reduce_sum, y, axes, y ? y->type.rank : 0, false);
        loss = loss ? oct_emit(&c->b, &oct_op_add, loss, y, NULL) : y;
    }
    return c->b.status ? NULL : loss;
}

/* The loss at x + h dir; NaN: cannot be run. */
static double loss_at(suite_case *c, double h, double *const *dir, bool keep)
{
    oct_tensor *out[MAX_VALUES + 1] = {0};
    oct_status st;
    double y;

    for (int k = 0; k < c->n_wrt; k++)
        for (int64_t i = 0; i < oct_tensor_len(c->x[k]); i++)
            ((double *)c->x[k]->data)[i] += h * dir[k][i];
    st = oct_graph_eval(c->g, c->x, out, NULL);
    for (int k = 0; k < c->n_wrt; k++)
        for (int64_t i = 0; i < oct_tensor_len(c->x[k]); i++)
            ((double *)c->x[k]->data)[i] -= h * dir[k][i];
    if (st) return (double)NAN;
    y = oct_tensor_get_f64(out[0], 0);
    for (int k = 0; k <= c->n_wrt; k++) {
        if (keep)
            c->dx[k] = out[k];
        else
            oct_tensor_unref(out[k]);
    }
    return y;
}

static verdict compare(suite_case *c, char *why, size_t size)
{
    double *dir[MAX_VALUES], got = 0, want, up, norm = 0;
    const double h = 1e-6;

    for (int k = 0; k < c->n_wrt; k++) {
        dir[k] = calloc((size_t)oct_tensor_len(c->x[k]) + 1, sizeof(double));
        assert_non_null(dir[k]);
        for (int64_t i = 0; i < oct_tensor_len(c->x[k]); i++)
            dir[k][i] = 2 * oct_rng_f64(&c->rng) - 1;
    }
    up = loss_at(c, h, dir, false);
    want = (up - loss_at(c, -h, dir, false)) / (2 * h);
    if (!isnan(want)) (void)loss_at(c, 0, dir, true);
    for (int k = 0; k < c->n_wrt && c->dx[0]; k++)
        for (int64_t i = 0; i < oct_tensor_len(c->x[k]); i++) {
            got += oct_tensor_get_f64(c->dx[k + 1], i) * dir[k][i];
            norm += fabs(oct_tensor_get_f64(c->dx[k + 1], i));
        }
    for (int k = 0; k < c->n_wrt; k++)
        free(dir[k]);
    if (isnan(want) || isinf(want)) return NOT_FLOAT;
    snprintf(why, size, "%.9g, differences give %.9g", got, want);
    return fabs(got - want) <= 1e-4 * (1 + fabs(want) + 1e-2 * norm) ? CHECKED : WRONG;
}

static verdict run(suite_case *c, const char *folder, char *why, size_t size)
{
    oct_value *dwrt[MAX_VALUES], *loss;
    char path[PATH_SIZE + 64];
    oct_status st;

    snprintf(path, sizeof(path), "%s/model.onnx", folder);
    if (oct_onnx_load(c->ctx, path, &c->file) || c->file->n_nodes != 1) return NOT_FLOAT;
    assert_ok(c->ctx, oct_graph_new(c->ctx, "case", &c->g));
    c->b.g = c->g;
    c->by_id = calloc((size_t)c->file->root->n_value_ids + 1, sizeof(*c->by_id));
    assert_non_null(c->by_id);
    /* Its kernel computes in float32 whatever it gets: differences say nothing. */
    if (oct_node_is(c->file->first, &oct_op_roi_align)) return NOT_FLOAT;
    if (!read_inputs(c, folder) || !copy_node(c) || !(loss = make_loss(c))) return NOT_FLOAT;
    assert_ok(c->ctx, oct_graph_add_output(c->g, loss));
    st = oct_grad(c->g, loss, c->wrt, c->n_wrt, dwrt);
    snprintf(why, size, "%s", oct_ctx_error(c->ctx));
    if (st) return st == OCT_ERR_UNSUPPORTED ? REFUSED : WRONG;
    for (int i = 0; i < c->n_wrt; i++)
        assert_ok(c->ctx, oct_graph_add_output(
                              c->g, oct_emit(&c->b, &oct_op_identity, dwrt[i], NULL, NULL)));
    return compare(c, why, size);
}

/* Is it known that this case is refused? */
static bool may_refuse(const suite_case *c, const char *name)
{
    bool known = !c->node->op->grad;

    for (size_t i = 0; i < OCT_COUNT(limits) && !known; i++)
        known = strcmp(limits[i], name) == 0;
    return known;
}

static void every_case(void **state)
{
    char root[PATH_SIZE / 2], folder[PATH_SIZE], why[512];
    int n[WRONG + 1] = {0};
    struct dirent **names;
    int n_names;

    (void)state;
    snprintf(root, sizeof(root), "%s/data/conformance/onnx/node", getenv("OCTET_SHARED"));
    n_names = scandir(root, &names, NULL, alphasort);
    if (n_names < 0) skip_test("there is no conformance suite");
    for (int i = 0; i < n_names; i++) {
        suite_case c = {.ctx = oct_ctx_new(NULL)};
        verdict v;

        assert_non_null(c.ctx);
        oct_rng_init(&c.rng, (uint64_t)i);
        snprintf(folder, sizeof(folder), "%s/%.200s", root, names[i]->d_name);
        v = run(&c, folder, why, sizeof(why));
        if (v == REFUSED && !may_refuse(&c, names[i]->d_name)) v = WRONG;
        n[v]++;
        if (v == WRONG) print_error("%s: %s\n", names[i]->d_name, why);
        for (int k = 0; k <= c.n_wrt; k++)
            oct_tensor_unref(c.dx[k]);
        for (int k = 0; k < c.n_wrt; k++)
            oct_tensor_unref(c.x[k]);
        free(c.by_id);
        oct_graph_free(c.g);
        oct_graph_free(c.file);
        oct_ctx_free(c.ctx);
        free(names[i]);
    }
    free(names);
    print_message("%d cases checked, %d not in floats, %d without gradient\n", n[CHECKED],
                  n[NOT_FLOAT], n[REFUSED]);
    assert_int_equal(n[WRONG], 0);
    assert_true(n[CHECKED] > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_case)};

    if (!shared_dir("test_grad_suite")) return 77;
    return run_test_group(tests);
}
