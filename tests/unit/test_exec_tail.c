/* SPDX-License-Identifier: Apache-2.0 */
/* What the tails of detectors are made of: transposing, distributions of boxes, parts put together.
 */
#include "unit/quant_net.h"

#include <string.h>

#include "exec/kernel.h"
#include "exec/simd/simd.h"

static oct_value *halved(fixture *f, oct_value *x)
{
    oct_node *n = node(f, &oct_op_max_pool, x, NULL, NULL);

    assert_ok(f->ctx, oct_node_set_ints(n, "kernel_shape", (const int64_t[]){2, 2}, 2));
    assert_ok(f->ctx, oct_node_set_ints(n, "strides", (const int64_t[]){2, 2}, 2));
    return infer(f, n);
}

static void squares_are_turned(void **state)
{
    static const int64_t shapes[][2] = {{1, 1}, {1, 40}, {40, 1}, {16, 16}, {17, 33}, {5, 70}};

    (void)state;
    for (int i = 0; oct_simd_at(i); i++)
        for (size_t k = 0; k < OCT_COUNT(shapes); k++) {
            const int64_t rows = shapes[k][0], cols = shapes[k][1];
            float x[40 * 73], y[70 * 43];

            for (int64_t e = 0; e < 40 * 73; e++)
                x[e] = (float)e;
            for (int64_t e = 0; e < 70 * 43; e++)
                y[e] = -1;
            oct_simd_at(i)->transpose(x, cols + 3, y, rows + 3, rows, cols);
            for (int64_t c = 0; c < cols; c++)
                for (int64_t r = 0; r < rows + 3 && c * (rows + 3) + r < 70 * 43; r++)
                    assert_true(y[c * (rows + 3) + r] ==
                                (r < rows ? x[r * (cols + 3) + c] : -1.0f));
        }
}

static void transposes_of_every_size(void **state)
{
    static const oct_dtype types[] = {OCT_DTYPE_F32, OCT_DTYPE_U8, OCT_DTYPE_I16, OCT_DTYPE_F64};
    static const int64_t perms[][4] = {{0, 2, 1, 3}, {0, 3, 1, 2}, {3, 2, 1, 0}, {2, 3, 0, 1},
                                       {0, 1, 3, 2}, {1, 0, 2, 3}, {0, 1, 2, 3}};

    for (size_t t = 0; t < OCT_COUNT(types); t++) {
        fixture *f = *state;
        oct_value *x;

        restart(f);
        x = picture(f, 3, 18, 7, 70);
        if (types[t] != OCT_DTYPE_F32) x = cast(f, emit(f, &oct_op_abs, x, NULL), types[t]);
        for (size_t i = 0; i < OCT_COUNT(perms); i++)
            output(f, transpose(f, x, 4, perms[i]));
        assert_kernels_agree(f, oct_dtype_get(types[t])->name);
    }
}

static void means_of_distributions(void **state)
{
    for (int i = 0; i < 4; i++) {
        fixture *f = *state;
        const int64_t bins = i & 1 ? 17 : 16;
        oct_rng rng;
        oct_value *x;

        restart(f);
        oct_rng_init(&rng, (uint64_t)i);
        x = conv(f, &rng, picture(f, 2, 5, 11, 13), &(conv_case){5, 4 * bins, 1, 1, 1, 0, 1});
        output(f, means(f, &rng, x, bins, (i & 2) != 0));
        assert_int_equal(count_steps(f, NULL, "Softmax+Conv"), 1);
        assert_kernels_agree(f, "distribution");
    }
}

/* Somebody else reads what the softmax makes: nothing may be left out. */
static void distributions_that_are_read_stay(void **state)
{
    fixture *f = *state;
    oct_rng rng;
    oct_value *x;

    oct_rng_init(&rng, 5);
    x = conv(f, &rng, picture(f, 1, 5, 6, 7), &(conv_case){5, 64, 1, 1, 1, 0, 1});
    x = means(f, &rng, x, 16, false);
    output(f, x);
    output(f, x->producer->in[0]);
    assert_int_equal(count_steps(f, NULL, "Softmax+Conv"), 0);
    assert_kernels_agree(f, "distribution and softmax");
}

/* Boxes and scores of two levels, joined, cut apart again, and joined for the output. */
static void tail(fixture *f, oct_value *const *box, oct_value *const *score)
{
    oct_value *level[2], *part[2], *in[2];
    oct_node *split;

    for (int i = 0; i < 2; i++) {
        const oct_type *t = &box[i]->type;

        level[i] = concat(f, (oct_value *[]){box[i], score[i]}, 2, 1);
        level[i] =
            reshape(f, level[i], 3,
                    (const int64_t[]){t->dim[0], level[i]->type.dim[1], t->dim[2] * t->dim[3]});
    }
    in[0] = concat(f, level, 2, 2);
    in[1] = oct_ints(&f->b, (const int64_t[]){box[0]->type.dim[1], score[0]->type.dim[1]}, 2);
    split = oct_emit_node(&f->b, &oct_op_split, in, 2, 2);
    assert_non_null(split);
    assert_ok(f->ctx, oct_node_set_int(split, "axis", 1));
    assert_ok(f->ctx, oct_node_infer(split));
    part[0] = emit(f, &oct_op_exp, split->out[0], NULL);
    part[1] = emit(f, &oct_op_sigmoid, split->out[1], NULL);
    output(f, concat(f, part, 2, 1));
}

static void joined_channels_are_cut_apart(void **state)
{
    for (int64_t n = 1; n < 3; n++) {
        fixture *f = *state;
        oct_value *x, *box[2], *score[2];
        oct_rng rng;

        restart(f);
        oct_rng_init(&rng, 1);
        x = picture(f, n, 5, 12, 14);
        for (int i = 0; i < 2; i++) {
            box[i] = conv(f, &rng, x, &(conv_case){5, 12, 3, 1 + i, 1, 1, 1});
            score[i] = conv(f, &rng, x, &(conv_case){5, 21, 3, 1 + i, 1, 1, 1});
        }
        tail(f, box, score);
        assert_int_equal(count_steps(f, NULL, "Split"), 0);
        assert_int_equal(count_steps(f, NULL, "Sigmoid"), 0);
        assert_int_equal(count_steps(f, NULL, "Conv+Sigmoid"), 2);
        assert_kernels_agree(f, "tail");
    }
}

/* In integers, scores become planes of the output without ever lying elsewhere. */
static void planes_are_written_where_they_belong(void **state)
{
    for (int64_t n = 1; n < 3; n++) {
        fixture *f = *state;
        const qconv_case q[2] = {{{16, 12, 1, 1, 1, 0, 1}, 0.016f, OCT_DTYPE_I8, 0, NULL},
                                 {{16, 21, 1, 1, 1, 0, 1}, 0.016f, OCT_DTYPE_I8, 0, NULL}};
        oct_value *x[2], *box[2], *score[2];

        restart(f);
        x[0] = qdq_u8(f, picture(f, n, 16, 12, 14), 0.016f);
        x[1] = halved(f, x[0]);
        for (int i = 0; i < 2; i++) {
            box[i] = qconv(f, x[i], &q[0]);
            score[i] = qconv(f, x[i], &q[1]);
        }
        tail(f, box, score);
        assert_int_equal(count_kernels(f, NULL, "int8 conv to NCHW"), 2);
        assert_kernels_agree(f, "planes");
    }
}

/* Pixels joined inside of joined channels cannot have the pitch of those. */
static void joined_pixels_inside_joined_channels(void **state)
{
    fixture *f = *state;
    oct_value *x, *part[2], *flat[2];
    oct_rng rng;

    oct_rng_init(&rng, 2);
    x = picture(f, 1, 5, 6, 7);
    for (int i = 0; i < 2; i++)
        flat[i] = reshape(f, conv(f, &rng, x, &(conv_case){5, 9, 1, 1, 1, 0, 1}), 3,
                          (const int64_t[]){1, 9, 42});
    part[0] = concat(f, flat, 2, 2);
    part[1] = reshape(f, conv(f, &rng, x, &(conv_case){5, 14, 1, 1, 1, 0, 1}), 3,
                      (const int64_t[]){1, 7, 84});
    x = concat(f, part, 2, 1);
    output(f, conv(f, &rng, x, &(conv_case){16, 8, 3, 1, 1, 1, 1}));
    assert_kernels_agree(f, "joined pixels");
}

/* Large values made one after the other need not all be there before the first is read. */
static void branches_end_before_others_begin(void **state)
{
    fixture *f = *state;
    oct_value *x = picture(f, 1, 4, 32, 32), *big[4], *sum;
    oct_plan *p = NULL;
    size_t most = 0;
    oct_rng rng;

    oct_rng_init(&rng, 3);
    for (int i = 0; i < 4; i++)
        big[i] = conv(f, &rng, x, &(conv_case){4, 64, 3, 1, 1, 1, 1});
    for (int i = 0; i < 4; i++)
        big[i] = conv(f, &rng, big[i], &(conv_case){64, 4, 1, 1, 1, 0, 1});
    sum = emit(f, &oct_op_add, emit(f, &oct_op_add, big[0], big[1]),
               emit(f, &oct_op_add, big[2], big[3]));
    output(f, sum);
    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    for (int32_t i = 0; i <= p->n_steps; i++)
        most = OCT_MAX(most, oct_plan_live_bytes(p, i));
    assert_int_equal(oct_plan_activation_size(p), most);
    assert_true(most < 2 * 64 * 32 * 32 * sizeof(float));
    oct_plan_free(p);
    assert_kernels_agree(f, "branches");
}

/* Codes with a scale for each channel in, codes or numbers out; taps of 2x2 and 3x2. */
static void codes_are_upsampled(void **state)
{
    for (int i = 0; i < 4; i++) {
        fixture *f = *state;
        const int64_t taps[2] = {i & 1 ? 3 : 2, 2}, dims[4] = {12, 21, taps[0], 2}, out = 21;
        float scale[21], bias[21];
        int32_t zero[21];
        oct_tensor *want[1] = {NULL}, *got[1] = {NULL};
        oct_plan_options plain;
        oct_value *x, *w;
        oct_node *n;

        restart(f);
        for (int k = 0; k < 21; k++) {
            scale[k] = 0.01f + 0.001f * (float)k;
            bias[k] = 0.1f * (float)(k - 10);
            zero[k] = 100 + k;
        }
        x = qdq(f, picture(f, 2, 12, 5, 19), OCT_DTYPE_U8, scale, zero, 12, 1);
        w = dequantize(f, codes(f, OCT_DTYPE_I8, 4, dims, 3), scale, NULL, 21, 1);
        n = node(f, &oct_op_conv_transpose, x, w, constant_f32(f, 1, &out, bias));
        assert_ok(f->ctx, oct_node_set_ints(n, "strides", taps, 2));
        x = emit(f, &oct_op_relu, infer(f, n), NULL);
        output(f, i & 2 ? x : qdq_u8(f, x, 0.25f));
        assert_int_equal(count_kernels(f, NULL, "int8 rows, conv of taps"), 1);
        oct_plan_options_init(&plain);
        plain.plain = 1;
        run_graph(f, &plain, want);
        for (int k = 0; k < N_SETS; k++) {
            run_set(f, k, got);
            if (i & 2)
                assert_same("upsampled", got[0], want[0], 2e-5);
            else
                assert_steps(got[0], want[0], 0.25f, 0.001);
            oct_tensor_unref(got[0]);
        }
        oct_tensor_unref(want[0]);
    }
}

/* What was fed stays, and lies outside of what is shared. */
static void inputs_outlive_a_run(void **state)
{
    fixture *f = *state;
    oct_value *x = picture(f, 1, 4, 16, 16);
    oct_plan *p = NULL;
    oct_run *r = NULL;
    void *data = NULL;
    float before[1024];
    size_t size = 0;
    oct_rng rng;

    oct_rng_init(&rng, 4);
    for (int i = 0; i < 3; i++)
        x = conv(f, &rng, x, &(conv_case){4, 4, 3, 1, 1, 1, 1});
    output(f, x);
    assert_ok(f->ctx, oct_plan_new(f->g, NULL, &p));
    assert_true(oct_plan_input_size(p) >= sizeof(before));
    assert_ok(f->ctx, oct_run_new(f->ctx, p, &r));
    fill_inputs(f, r, p, 9);
    assert_ok(f->ctx, oct_run_input(r, "x", &data, &size));
    assert_int_equal(size, sizeof(before));
    memcpy(before, data, size);
    assert_ok(f->ctx, oct_run_execute(r));
    assert_memory_equal(before, data, size);
    oct_run_free(r);
    oct_plan_free(p);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(squares_are_turned),
        T(transposes_of_every_size),
        T(means_of_distributions),
        T(distributions_that_are_read_stay),
        T(joined_channels_are_cut_apart),
        T(planes_are_written_where_they_belong),
        T(joined_pixels_inside_joined_channels),
        T(branches_end_before_others_begin),
        T(inputs_outlive_a_run),
        T(codes_are_upsampled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
