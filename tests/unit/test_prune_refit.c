/* SPDX-License-Identifier: Apache-2.0 */
/* Layers that are fitted to what they gave before: their inputs stand in for those that went. */
#include "prune_blocks.h"
#include "stat/least_squares.h"
#include "tests/unit/data_files.h"

enum { N_PICTURES = 24 };

/* Tensors [1,4,8,8], as blocks take them. */
static oct_dataset *pictures(files *t, int n)
{
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){1, 4, 8, 8});
    oct_dataset *d = NULL;
    oct_rng rng;

    oct_rng_init(&rng, 3);
    put_folder(t, "items");
    for (int i = 0; i < n; i++) {
        char name[32];
        oct_tensor *v = NULL;

        (void)snprintf(name, sizeof(name), "items/%d.npy", i);
        assert_ok(t->ctx, oct_tensor_make(t->ctx, &type, &v));
        for (int64_t k = 0; k < oct_tensor_len(v); k++)
            ((float *)v->data)[k] = (float)(oct_rng_f64(&rng) * 2 - 1);
        assert_ok(t->ctx, oct_tensor_save_npy(t->ctx, v, below(t, name)));
        oct_tensor_unref(v);
    }
    assert_ok(t->ctx, open_dataset(t->ctx, below(t, "items"), NULL, false, &d));
    return d;
}

static oct_value *begin_net(maker *m, fixture *f, uint64_t seed)
{
    const int64_t dims[4] = {1, 4, 8, 8};

    m->f = f;
    oct_rng_init(&m->rng, seed);
    return graph_input(f, "x", OCT_DTYPE_F32, 4, dims);
}

/* Squared error of output 0 over the power of that of the network before. */
static double noise(files *t, oct_graph *small)
{
    oct_tensor *want[8] = {NULL}, *got[8] = {NULL};
    double error = 0, power = 0;

    prune_run(t->f, t->f->g, want);
    prune_run(t->f, small, got);
    for (int64_t i = 0; i < oct_tensor_len(want[0]); i++) {
        const double y = oct_tensor_get_f64(want[0], i);
        const double e = oct_tensor_get_f64(got[0], i) - y;

        error += e * e;
        power += y * y;
    }
    for (int i = 0; i < 8; i++) {
        oct_tensor_unref(want[i]);
        oct_tensor_unref(got[i]);
    }
    return error / power;
}

static double pruned_noise(files *t, const oct_dataset *d, const char *importance, double channels)
{
    oct_prune_options o;
    oct_graph *small = NULL;
    double sum;

    oct_prune_options_init(&o);
    o.channels = channels;
    o.multiple = 1;
    o.importance = importance;
    o.pictures = d;
    assert_ok(t->ctx, oct_prune_run(t->f->g, &o, &small, NULL));
    sum = noise(t, small);
    oct_graph_free(small);
    return sum;
}

/* --- solving --- */

static void equations_are_solved(void **state)
{
    double a[9] = {4, 2, .6, 2, 5, 1, .6, 1, 3}, b[6] = {1, 0, 2, 1, 3, -1};
    const double a0[9] = {4, 2, .6, 2, 5, 1, .6, 1, 3}, b0[6] = {1, 0, 2, 1, 3, -1};
    double bad[4] = {1, 2, 2, 1};

    (void)state;
    assert_true(oct_factorize(a, 3));
    oct_substitute(a, 3, b, 2);
    for (int i = 0; i < 3; i++)
        for (int c = 0; c < 2; c++) {
            double sum = 0;

            for (int j = 0; j < 3; j++)
                sum += a0[i * 3 + j] * b[j * 2 + c];
            assert_true(fabs(sum - b0[i * 2 + c]) < 1e-12);
        }
    assert_false(oct_factorize(bad, 2));
}

/* --- channels --- */

/* Filters i + 4 give twice what filters i give: one of the two is enough, and no other four are. */
static void twins_stand_in(void **state)
{
    files *t = *state;
    oct_dataset *d = pictures(t, N_PICTURES);
    maker m;
    oct_value *x = begin_net(&m, t->f, 5), *y = layer(&m, x, 8, 3, 1), *z;
    float *w = y->producer->in[1]->data->data, *bias = y->producer->in[2]->data->data;

    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < 36; k++)
            w[(i + 4) * 36 + k] = 2 * w[i * 36 + k];
        bias[i + 4] = 2 * bias[i];
    }
    z = layer(&m, emit(t->f, &oct_op_relu, y, NULL), 6, 3, 1);
    assert_ok(t->ctx, oct_graph_add_output(t->f->g, z));
    assert_true(pruned_noise(t, d, "reconstruction", .5) < 1e-5);
    assert_true(pruned_noise(t, NULL, "l2", .5) > 1e-3);
    assert_true(pruned_noise(t, d, "l2", .5) < 1e-5); /* the longer twins are left */
    assert_true(pruned_noise(t, d, "reconstruction", .75) > 1e-3);
    oct_dataset_close(d);
}

/* The same with a Gemm that reads them, whose weights lie either way, with a bias and without. */
static void gemm_is_fitted(void **state)
{
    files *t = *state;
    oct_dataset *d = pictures(t, N_PICTURES);

    for (int kind = 0; kind < 4; kind++) {
        const int64_t dims[2] = {kind & 1 ? 5 : 8, kind & 1 ? 8 : 5}, five = 5;
        maker m;
        oct_value *x = begin_net(&m, t->f, 5), *y = layer(&m, x, 8, 3, 1);
        float *w = y->producer->in[1]->data->data;
        oct_node *n;

        memcpy(w + 4 * 36, w, 4 * 36 * sizeof(*w));
        memset(y->producer->in[2]->data->data, 0, 8 * sizeof(float));
        y = emit(t->f, &oct_op_global_average_pool, emit(t->f, &oct_op_relu, y, NULL), NULL);
        y = with_axis(&m, &oct_op_flatten, y, NULL, 1);
        n = node(t->f, &oct_op_gemm, y, weights(t->f, &m.rng, 2, dims),
                 kind & 2 ? weights(t->f, &m.rng, 1, &five) : NULL);
        assert_ok(t->ctx, oct_node_set_int(n, "transB", kind & 1));
        assert_ok(t->ctx, oct_graph_add_output(t->f->g, infer(t->f, n)));
        assert_true(pruned_noise(t, d, "reconstruction", .5) < 1e-5);
        assert_true(pruned_noise(t, d, "reconstruction", .75) > 1e-5);
        oct_graph_free(t->f->g);
        assert_ok(t->ctx, oct_graph_new(t->ctx, "test", &t->f->g));
        t->f->b = (oct_builder){.g = t->f->g};
    }
    oct_dataset_close(d);
}

/* On an input that was not among the pictures. */
static void fitting_helps(void **state)
{
    files *t = *state;
    oct_dataset *d = pictures(t, N_PICTURES);
    double plainly, fitted, chosen;
    maker m;
    oct_value *x = begin_net(&m, t->f, 9);

    x = emit(t->f, &oct_op_relu, layer(&m, x, 16, 3, 1), NULL);
    x = layer(&m, emit(t->f, &oct_op_relu, layer(&m, x, 16, 3, 16), NULL), 16, 1, 1);
    x = layer(&m, emit(t->f, &oct_op_relu, x, NULL), 6, 1, 1);
    assert_ok(t->ctx, oct_graph_add_output(t->f->g, x));
    plainly = pruned_noise(t, NULL, "l2", .25);
    fitted = pruned_noise(t, d, "l2", .25);
    chosen = pruned_noise(t, d, "reconstruction", .25);
    if (!(fitted < plainly && chosen < .5 * fitted))
        fail_msg("noise %g, fitted %g, chosen %g", plainly, fitted, chosen);
    oct_dataset_close(d);
}

/* Cut or masked, all blocks compute the same after fitting; norms, gates, splits and all. */
static void all_blocks(void **state)
{
    files *t = *state;
    fixture *f = t->f;
    oct_dataset *d = pictures(t, N_PICTURES);

    for (size_t i = 0; i < 2 * OCT_COUNT(blocks); i++) {
        oct_prune_options o;
        maker m;
        oct_value *x = plain(&m, begin_net(&m, f, 100 + i));

        x = layer(&m, plain(&m, blocks[i / 2](&m, x)), 4, 1, 1);
        assert_ok(f->ctx, oct_graph_add_output(f->g, x));
        oct_prune_options_init(&o);
        o.flops_target = .15;
        o.multiple = 1;
        o.global = 1;
        o.importance = i % 2 ? "reconstruction" : "bn_scale";
        o.pictures = d;
        assert_true(prune_both(f, f->g, &o, "block") >= .15);
        oct_graph_free(f->g);
        assert_ok(f->ctx, oct_graph_new(f->ctx, "test", &f->g));
        f->b = (oct_builder){.g = f->g};
    }
    oct_dataset_close(d);
}

static void nonsense_is_refused(void **state)
{
    files *t = *state;
    oct_dataset *few = pictures(t, 3);
    oct_graph *small = NULL;
    oct_prune_options o;
    maker m;
    oct_value *x = plain(&m, begin_net(&m, t->f, 2));

    assert_ok(t->ctx, oct_graph_add_output(t->f->g, layer(&m, x, 4, 1, 1)));
    oct_prune_options_init(&o);
    o.channels = .5;
    o.importance = "reconstruction";
    assert_fails(t->ctx, oct_prune_run(t->f->g, &o, &small, NULL), OCT_ERR_ARG, "needs pictures");
    o.pictures = few;
    assert_fails(t->ctx, oct_prune_run(t->f->g, &o, &small, NULL), OCT_ERR_ARG, "too few");
    o.channels = 0;
    o.zeros = 1;
    assert_fails(t->ctx, oct_prune_run(t->f->g, &o, &small, NULL), OCT_ERR_ARG, "nothing to fit");
    oct_dataset_close(few);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equations_are_solved),
        cmocka_unit_test_setup_teardown(twins_stand_in, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(gemm_is_fitted, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(fitting_helps, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(all_blocks, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(nonsense_is_refused, setup_files, teardown_files),
    };

    return run_test_group(tests);
}
