/* SPDX-License-Identifier: Apache-2.0 */
/* Networks cut into blocks. */
#include "quant/learn/blocks.h"
#include "quant/quantize.h"
#include "tests/unit/place_net.h"

#include <octet/onnx.h>

/* Every layer is in one block, and blocks read what earlier ones give. */
static void check_blocks(const oct_qmap *m, const oct_blocks *b, int32_t size)
{
    uint8_t *given = calloc((size_t)m->g->n_value_ids + 1, 1);
    int32_t layers = 0, quantized = 0;

    for (int32_t i = 0; i < m->g->n_inputs; i++)
        given[m->g->inputs[i]->id] = 1;
    for (int32_t i = 0; i < m->n_points; i++)
        quantized +=
            m->points[i].role == OCT_QROLE_WEIGHT && m->points[i].state == OCT_QSTATE_ACTIVE;
    for (int32_t i = 0; i < b->n; i++) {
        const oct_block *k = &b->item[i];

        assert_true(k->n_nodes > 0);
        assert_true(k->n_out > 0);
        assert_true(k->depth <= 2 * size);
        for (int32_t j = 0; j < k->n_in; j++)
            assert_true(given[k->in[j]->id]);
        for (int32_t j = 0; j < k->n_out; j++)
            given[k->out[j]->id] = 1;
        for (int32_t j = 0; j < k->n_nodes; j++)
            assert_int_equal(b->of_node[k->nodes[j]->id], i);
        layers += k->n_layers;
    }
    assert_int_equal(layers, quantized);
    free(given);
}

/* Two layers, a residual block of two, one more; then two branches. */
static void residuals_stay_together(void **state)
{
    placed p;
    oct_value *x, *y, *z;
    oct_blocks b;
    oct_arena *a;

    start(&p, *state, "octet");
    x = layer(&p, "a", image(&p, 3), 4);
    x = silu(&p, layer(&p, "b", x, 4));
    y = silu(&p, layer(&p, "c", x, 4));
    y = emit(p.f, &oct_op_add, x, layer(&p, "d", y, 4));
    z = layer(&p, "e", y, 4);
    output(&p, layer(&p, "f", z, 2));
    output(&p, layer(&p, "g", y, 2));
    place(&p);
    a = oct_arena_new(p.f->ctx);
    assert_ok(p.f->ctx, oct_blocks_find(p.m, 4, a, &b));
    check_blocks(p.m, &b, 4);
    assert_int_equal(b.n, 4);
    assert_int_equal(b.item[0].n_layers, 2);
    assert_ptr_equal(b.item[0].out[0], x);
    assert_int_equal(b.item[1].n_layers, 2);
    assert_ptr_equal(b.item[1].in[0], x);
    assert_int_equal(b.item[1].n_out, 1);
    assert_ptr_equal(b.item[1].out[0], y);
    assert_int_equal(b.item[2].n_layers, 2);
    assert_int_equal(b.item[3].n_layers, 1);
    oct_arena_free(a);
    finish(&p);
}

static void long_chains_are_cut(void **state)
{
    placed p;
    oct_value *x, *y;
    oct_blocks b;
    oct_arena *a;

    start(&p, *state, "octet");
    x = y = layer(&p, "first", image(&p, 3), 4);
    for (int i = 0; i < 12; i++)
        y = layer(&p, oct_arena_printf(p.f->g->arena, "l%d", i), y, 4);
    output(&p, layer(&p, "last", emit(p.f, &oct_op_add, x, y), 4)); /* around everything */
    place(&p);
    a = oct_arena_new(p.f->ctx);
    assert_ok(p.f->ctx, oct_blocks_find(p.m, 2, a, &b));
    check_blocks(p.m, &b, 2);
    assert_true(b.n >= 4);
    oct_arena_free(a);
    finish(&p);
}

static void detectors_are_cut(void **state)
{
    static const char *const files[] = {"yolov8n.onnx", "yolox_nano_416.onnx", "picodet_s_416.onnx",
                                        "nanodet_m_416.onnx"};
    const char *dir = shared_dir("blocks");
    fixture *f = *state;

    if (!dir) skip();
    for (size_t i = 0; i < OCT_COUNT(files); i++) {
        char path[512];
        oct_graph *g = NULL, *n = NULL;
        oct_quantize_options o;
        oct_qmap *m = NULL;
        oct_arena *a = oct_arena_new(f->ctx);
        oct_blocks b;

        (void)snprintf(path, sizeof(path), "%s/data/models/%s", dir, files[i]);
        oct_quantize_options_init(&o);
        assert_ok(f->ctx, oct_onnx_load(f->ctx, path, &g));
        assert_ok(f->ctx, oct_quantize_normalise(g, &n));
        assert_ok(f->ctx, oct_place(n, oct_target_at(0), &o, &m));
        assert_ok(f->ctx, oct_blocks_find(m, 4, a, &b));
        check_blocks(m, &b, 4);
        assert_true(b.n > 10 && b.n < 80);
        oct_qmap_free(m);
        oct_arena_free(a);
        oct_graph_free(n);
        oct_graph_free(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(residuals_stay_together, setup, teardown),
        cmocka_unit_test_setup_teardown(long_chains_are_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(detectors_are_cut, setup, teardown),
    };

    return run_test_group(tests);
}
