/* SPDX-License-Identifier: Apache-2.0 */
/* Where a scale comes from: of every scale in a quantized network the qmap file says how it came
 * about. */
#include "tests/unit/quant_job.h"
#include "tests/unit/quant_net.h"

static const char *const targets[] = {"octet",    "ort",      "openvino",
                                      "tensorrt", "npu-pow2", "npu-pow2-pc"};

/* Convolutions with SiLU, a Concat, a depthwise convolution and a sum. */
static oct_value *make_net(fixture *f)
{
    oct_value *x = picture(f, 1, 3, 16, 16), *a, *b, *y;
    oct_rng rng;

    oct_rng_init(&rng, 9);
    y = conv(f, &rng, x, &(conv_case){3, 16, 3, 1, 1, 1, 1});
    a = emit(f, &oct_op_mul, y, emit(f, &oct_op_sigmoid, y, NULL));
    b = emit(f, &oct_op_relu, conv(f, &rng, a, &(conv_case){16, 16, 3, 1, 1, 1, 16}), NULL);
    a = emit(f, &oct_op_add, a, b);
    a = conv(f, &rng, concat(f, (oct_value *[]){a, b}, 2, 1), &(conv_case){32, 16, 1, 1, 1, 0, 1});
    output(f, conv(f, &rng, emit(f, &oct_op_relu, a, NULL), &(conv_case){16, 8, 3, 1, 1, 1, 1}));
    return x;
}

static void check_row(const oct_scale_info *s, const char *target, bool has_qmap)
{
    const bool is_bias = strcmp(s->kind, "bias") == 0;

    if (!(s->scale_min > 0 && s->scale_min <= s->scale_max && s->low < s->high))
        fail_msg("%s: '%s' has scales %g to %g", target, s->value, s->scale_min, s->scale_max);
    if (!has_qmap && (s->scale_by || s->observer || s->has_seen))
        fail_msg("%s: '%s' knows more than the file says", target, s->value);
    if (!has_qmap || is_bias) return; /* the scale of a bias follows from two others */
    if (!s->scale_by || !s->observer)
        fail_msg("%s: who set the %s '%s' (for %s)?", target, s->kind, s->value,
                 s->node ? s->node : "all");
    if (strncmp(s->scale_by, s->observer, strlen(s->observer)) != 0)
        fail_msg("%s: '%s' by %s, not %s", target, s->value, s->scale_by, s->observer);
    if (!s->has_seen || !(s->seen_low <= s->seen_high))
        fail_msg("%s: what was seen of '%s'?", target, s->value);
}

static int32_t check_rows(files *t, const oct_graph *g, const char *qmap, const char *target)
{
    oct_scale_info s = {.struct_size = sizeof(s)};
    oct_scale_list *all = NULL;
    int32_t n = 0;

    assert_ok(t->ctx, oct_graph_scales(g, qmap, &all));
    while (oct_scale_list_at(all, n, &s)) {
        check_row(&s, target, qmap != NULL);
        n++;
    }
    assert_int_equal(oct_scale_list_at(all, -1, &s), 0);
    oct_scale_list_free(all);
    return n;
}

static void every_scale_says_where_it_comes_from(void **state)
{
    files *t = *state;
    oct_dataset *d = items(t, make_net(t->f), 2);

    for (size_t i = 0; i < OCT_COUNT(targets); i++) {
        oct_quantize_options o;
        oct_quantized *q = NULL;
        int32_t n;

        oct_quantize_options_init(&o);
        o.target = targets[i];
        o.bias_correction = "full"; /* all stages */
        assert_ok(t->ctx, oct_quantize(t->f->g, d, &o, &q));
        assert_ok(t->ctx, oct_quantized_save_qmap(q, below(t, "q.json")));
        n = check_rows(t, oct_quantized_graph(q), below(t, "q.json"), targets[i]);
        assert_true(n >= 6);
        assert_int_equal(check_rows(t, oct_quantized_graph(q), NULL, targets[i]), n);
        oct_quantized_free(q);
    }
    oct_dataset_close(d);
}

static void what_is_no_qmap_is_refused(void **state)
{
    static const char *const wrong[] = {"",
                                        "[]",
                                        "{}",
                                        "{\"octet_qmap\":1}",
                                        "{\"points\":[]}",
                                        "{\"octet_qmap\":1,\"points\":[{]}"};
    /* A circle of dominators, fields of other types: nothing is said, nothing breaks. */
    static const char odd[] = "{\"octet_qmap\":1,\"points\":[{\"value\":\"x\",\"dominator\":1},"
                              "{\"value\":\"x\",\"dominator\":0,\"seen\":7,\"observer\":[]},{},3]}";
    files *t = *state;
    oct_dataset *d = items(t, make_net(t->f), 2);
    oct_scale_list *all = NULL;
    oct_quantized *q = NULL;

    assert_ok(t->ctx, oct_quantize(t->f->g, d, NULL, &q));
    for (size_t i = 0; i < OCT_COUNT(wrong); i++) {
        put_text(t, "q.json", wrong[i]);
        assert_fails(t->ctx, oct_graph_scales(oct_quantized_graph(q), below(t, "q.json"), &all),
                     OCT_ERR_FORMAT, "q.json");
        assert_null(all);
    }
    put_text(t, "q.json", odd);
    assert_ok(t->ctx, oct_graph_scales(oct_quantized_graph(q), below(t, "q.json"), &all));
    for (oct_scale_info s = {.struct_size = sizeof(s)}; oct_scale_list_at(all, 0, &s);) {
        assert_null(s.scale_by);
        break;
    }
    oct_scale_list_free(all);
    oct_scale_list_free(NULL);
    oct_quantized_free(q);
    /* Of a float network there are none. */
    assert_int_equal(check_rows(t, t->f->g, NULL, "float"), 0);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_scale_says_where_it_comes_from, setup_files,
                                        teardown_files),
        cmocka_unit_test_setup_teardown(what_is_no_qmap_is_refused, setup_files, teardown_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
