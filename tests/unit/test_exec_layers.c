/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantized detectors on a picture, layer by layer. Every layer reads the codes that the integer
 * plan made, so that what it computes is compared, not what layers before it passed on: integers
 * against the simulation (equal but for ties), and one instruction set against another (equal).
 */
#include "tests/unit/data_files.h"

#include "op/qparams.h"
#include "pass/pass.h"

enum { PICTURES = 12, MAX_CODES = 1024 };

/* --- a network cut into layers --- */

typedef struct layers {
    oct_graph *g;
    const char *name[MAX_CODES]; /* of values of codes */
    int n;
} layers;

/* Codes of 8 bits that only DequantizeLinear nodes read. */
static bool is_border(const oct_node *n)
{
    oct_codes c;

    if (!oct_node_is_quantize(n) || !oct_codes_of(n, &c) || c.dtype != OCT_DTYPE_U8) return false;
    for (int32_t i = 0; i < n->out[0]->n_users; i++)
        if (!oct_node_is_dequantize(n->out[0]->users[i])) return false;
    return n->out[0]->n_users > 0 && !n->out[0]->is_output;
}

/* All codes become results; if cut, their readers read inputs named after them. */
static layers cut(oct_ctx *ctx, const oct_graph *from, bool is_cut)
{
    layers l = {.n = 0};
    oct_value *codes[MAX_CODES];
    int changed = 0;

    assert_ok(ctx, oct_graph_clone(from, &l.g));
    /* what a plan does first; it cannot where codes are results */
    assert_ok(ctx, oct_pass_byte_codes.run(l.g, &changed));
    for (oct_node *n = l.g->first; n; n = n->next)
        if (is_border(n) && l.n < MAX_CODES) codes[l.n++] = n->out[0];
    for (int i = 0; i < l.n; i++) {
        l.name[i] = codes[i]->name;
        if (is_cut) {
            const char *name = oct_arena_printf(l.g->arena, "%s_given", codes[i]->name);
            oct_value *v = oct_value_new(l.g, name, &codes[i]->type);

            assert_non_null(v);
            assert_ok(ctx, oct_graph_add_input(l.g, v));
            assert_ok(ctx, oct_value_replace_uses(codes[i], v));
        }
        assert_ok(ctx, oct_graph_add_output(l.g, codes[i]));
    }
    return l;
}

/* Most layers must be steps on integers, or there is nothing to compare. */
static void assert_integers(const oct_plan *p, int n)
{
    int found = 0;

    for (int32_t i = 0; i < oct_plan_n_steps(p); i++) {
        oct_step_info info = {.struct_size = sizeof(info)};

        oct_plan_step(p, i, &info);
        found += info.is_integer && !info.is_conversion;
    }
    if (found < n / 2) fail_msg("only %d steps on integers for %d layers", found, n);
}

/* Runs on the picture and, if cut, on these codes; results are the codes of all layers. */
static void run_layers(oct_ctx *ctx, const layers *l, bool simulate, const oct_tensor *picture,
                       oct_tensor *const *given, oct_tensor **out)
{
    oct_plan_options o;
    oct_plan *p = NULL;
    oct_run *r = NULL;

    oct_plan_options_init(&o);
    o.simulate = simulate;
    assert_ok(ctx, oct_plan_new(l->g, &o, &p));
    if (!simulate) assert_integers(p, l->n);
    assert_ok(ctx, oct_run_new(ctx, p, &r));
    assert_ok(ctx, oct_run_set_input(r, oct_plan_input_name(p, 0), picture));
    for (int i = 0; given && i < l->n; i++) {
        char name[512];

        snprintf(name, sizeof(name), "%s_given", l->name[i]);
        assert_ok(ctx, oct_run_set_input(r, name, given[i]));
    }
    assert_ok(ctx, oct_run_execute(r));
    for (int i = 0; i < l->n; i++) {
        const oct_tensor *t = NULL;

        assert_ok(ctx, oct_run_output(r, oct_plan_n_outputs(p) - l->n + i, &t));
        assert_ok(ctx, oct_tensor_copy(ctx, t, &out[i]));
    }
    oct_run_free(r);
    oct_plan_free(p);
}

static void drop(oct_tensor **t, int n)
{
    for (int i = 0; i < n; i++)
        oct_tensor_unref(t[i]);
}

/* At most one step, in fewer than 1 of `rarely` elements (0: none at all). */
static void compare(const char *what, const layers *l, oct_tensor *const *a, oct_tensor *const *b,
                    int64_t rarely)
{
    for (int i = 0; i < l->n; i++) {
        const uint8_t *x = a[i]->data, *y = b[i]->data;
        const int64_t n = oct_tensor_len(a[i]);
        int64_t others = 0;
        int worst = 0;

        assert_int_equal(n, oct_tensor_len(b[i]));
        for (int64_t k = 0; k < n; k++) {
            others += x[k] != y[k];
            worst = OCT_MAX(worst, abs(x[k] - y[k]));
        }
        /* a small tensor may have one tie */
        if (worst > 1 || (rarely ? others > 1 && others * rarely >= n : others > 0))
            fail_msg("%s: %lld of %lld codes of '%s' differ, by up to %d", what, (long long)others,
                     (long long)n, l->name[i], worst);
    }
}

/* --- the networks --- */

static oct_tensor *picture_of(oct_ctx *ctx, const oct_graph *g, const char *path)
{
    oct_type type = g->inputs[0]->type;
    oct_detector *detector = NULL;
    oct_preprocess p;
    oct_image *im = NULL;
    oct_tensor *t = NULL;

    oct_preprocess_init(&p);
    assert_ok(ctx, oct_detector_new(g, NULL, &detector));
    oct_detector_preprocess(detector, &p);
    assert_ok(ctx, oct_image_load(ctx, path, NULL, &im));
    type.dim[0] = 1;
    assert_ok(ctx, oct_tensor_make(ctx, &type, &t));
    assert_ok(ctx, oct_preprocess_run(ctx, &p, im, type.dtype, t->data, NULL));
    oct_image_free(im);
    oct_detector_free(detector);
    return t;
}

static void check_sets(oct_ctx *ctx, const layers *l, const oct_tensor *picture,
                       oct_tensor *const *given, oct_tensor *const *want)
{
    static const char *const sets[] = {"AVX2", "SSE41"};
    /* Without AVX2 a tie may go the other way (seen: 1 of 32768 codes of a ConvTranspose). */
    static const int64_t rarely[] = {0, 1000};
    const char *old = getenv("ONEDNN_MAX_CPU_ISA");

    if (old) return; /* somebody else's choice */
    for (size_t i = 0; i < OCT_COUNT(sets); i++) {
        oct_tensor *out[MAX_CODES] = {NULL};

        setenv("ONEDNN_MAX_CPU_ISA", sets[i], 1);
        run_layers(ctx, l, false, picture, given, out);
        unsetenv("ONEDNN_MAX_CPU_ISA");
        compare(sets[i], l, out, want, rarely[i]);
        drop(out, l->n);
    }
}

static void check_network(const files *t, const char *path, const oct_dataset *images)
{
    oct_tensor *whole[MAX_CODES] = {NULL}, *integers[MAX_CODES] = {NULL},
               *simulated[MAX_CODES] = {NULL}, *picture;
    oct_quantized *q = NULL;
    oct_quantize_options o;
    oct_graph *g = NULL;
    layers all, cuts;

    oct_quantize_options_init(&o);
    assert_ok(t->ctx, oct_onnx_load(t->ctx, path, &g));
    assert_ok(t->ctx, oct_quantize(g, images, &o, &q));
    picture = picture_of(t->ctx, oct_quantized_graph(q), oct_dataset_path(images, 0));
    all = cut(t->ctx, oct_quantized_graph(q), false);
    cuts = cut(t->ctx, oct_quantized_graph(q), true);
    if (all.n <= 10) fail_msg("%s: only %d layers", path, all.n);
    assert_int_equal(all.n, cuts.n);
    run_layers(t->ctx, &all, false, picture, NULL, whole);
    run_layers(t->ctx, &cuts, false, picture, whole, integers);
    run_layers(t->ctx, &cuts, true, picture, whole, simulated);
    compare("layers apart", &cuts, integers, whole, 0);
    compare("simulation", &cuts, integers, simulated, 1000);
    check_sets(t->ctx, &cuts, picture, whole, integers);
    drop(whole, all.n);
    drop(integers, all.n);
    drop(simulated, all.n);
    oct_tensor_unref(picture);
    oct_graph_free(all.g);
    oct_graph_free(cuts.g);
    oct_quantized_free(q);
    oct_graph_free(g);
}

static oct_dataset *pictures(oct_ctx *ctx, const char *folder)
{
    oct_dataset_options o;
    oct_dataset *d = NULL;

    oct_dataset_options_init(&o);
    o.images = folder;
    o.subset_size = PICTURES;
    assert_ok(ctx, oct_dataset_open(ctx, &o, &d));
    return d;
}

static void demo_detector(void **state)
{
    const files *t = *state;
    const char *root = getenv("OCTET_SOURCE_ROOT");
    oct_synth_options o;
    oct_dataset *d;
    char path[512];

    oct_synth_options_init(&o);
    o.count = PICTURES;
    o.seed = 4;
    assert_ok(t->ctx, oct_synth_write(t->ctx, t->folder, &o, NULL));
    snprintf(path, sizeof(path), "%s/examples/demo/detector.onnx", root ? root : ".");
    d = pictures(t->ctx, below(t, "val"));
    check_network(t, path, d);
    oct_dataset_close(d);
}

static void shared_detectors(void **state)
{
    static const struct {
        const char *file, *images;
    } nets[] = {
        {"models/yolov8n.onnx", "coco/calib"},
        {"models/yolox_nano_416.onnx", "coco/calib"},
        {"models/picodet_s_416.onnx", "coco/calib"},
        {"models/nanodet_m_416.onnx", "coco/calib"},
        {"yolo-nas/yolo_nas_bccd_folded.onnx", "bccd/images"},
    };
    const char *shared = getenv("OCTET_SHARED");
    const files *t = *state;

    if (!shared) skip_test("../shared is not there");
    for (size_t i = 0; i < OCT_COUNT(nets); i++) {
        oct_dataset *d;
        char path[512];

        snprintf(path, sizeof(path), "%s/data/%s", shared, nets[i].images);
        d = pictures(t->ctx, path);
        snprintf(path, sizeof(path), "%s/data/%s", shared, nets[i].file);
        print_message("%s\n", nets[i].file);
        check_network(t, path, d);
        oct_dataset_close(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(demo_detector, setup_files, teardown_files),
        cmocka_unit_test_setup_teardown(shared_detectors, setup_files, teardown_files),
    };

    return run_test_group(tests);
}
