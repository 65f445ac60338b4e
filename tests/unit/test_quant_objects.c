/* SPDX-License-Identifier: Apache-2.0 */
/* Where pictures show objects: what places count when blocks learn. */
#include "quant/learn/objects.h"

#include <math.h>

#include "tests/unit/detect_net.h"

enum { SIDE = 64, CLASSES = 5, CELLS = 84, PICTURES = 2, MAP = 8 };

/* Finds the same box in every picture: 40..56 by 8..24, with a score of .9. */
static void make_detector(fixture *f)
{
    const float box[] = {48, 16, 16, 16};
    float *x;

    (void)picture_input(f, 1, SIDE, SIDE);
    (void)output(f, "out", 3, (int64_t[]){1, 4 + CLASSES, CELLS}, 0, &x);
    for (int i = 0; i < 4; i++)
        x[i * CELLS + 7] = box[i];
    x[(4 + 3) * CELLS + 7] = .9f;
}

static oct_objects find(fixture *f, const char *family, oct_arena *a)
{
    const int64_t n = PICTURES * 3 * SIDE * SIDE;
    uint16_t **inputs = oct_arena_array(a, (size_t)f->g->n_value_ids + 1, sizeof(*inputs));
    oct_objects s;

    inputs[f->g->inputs[0]->id] = oct_arena_array(a, (size_t)n, sizeof(**inputs));
    assert_non_null(inputs[f->g->inputs[0]->id]);
    assert_ok(f->ctx, oct_objects_find(f->g, family, inputs, PICTURES, a, &s));
    return s;
}

static void places_in_boxes_count_more(void **state)
{
    fixture *f = *state;
    const oct_type type = oct_type_make(OCT_DTYPE_F32, 4, (int64_t[]){1, 3, MAP, MAP});
    oct_arena *a = oct_arena_new(f->ctx);
    oct_objects s;
    float counts[MAP * MAP];

    make_detector(f);
    s = find(f, "yolov8", a);
    assert_non_null(s.cells);
    for (int64_t p = 0; p < PICTURES; p++) {
        const float in = oct_objects_at(&s, p, 2, 6, MAP, MAP);
        const float out = oct_objects_at(&s, p, 7, 0, MAP, MAP);
        double sum = 0;

        assert_true(out > 0 && fabsf(in - out - .9f) < 1e-5f);
        assert_int_equal(oct_objects_places(&type), MAP * MAP);
        oct_objects_spread(&s, p, &type, counts);
        for (int i = 0; i < MAP * MAP; i++)
            sum += (double)counts[i];
        assert_true(fabs(sum / (MAP * MAP) - 1) < 1e-5);
        assert_true(fabsf(counts[2 * MAP + 6] / counts[7 * MAP] - in / out) < 1e-4f);
    }
    oct_arena_free(a);
}

/* All places of other networks count the same. */
static void classifiers_have_no_objects(void **state)
{
    fixture *f = *state;
    oct_arena *a = oct_arena_new(f->ctx);
    oct_objects s;

    (void)picture_input(f, 1, SIDE, SIDE);
    (void)output(f, "logits", 2, (int64_t[]){1, 1000}, 0, NULL);
    s = find(f, NULL, a);
    assert_null(s.cells);
    assert_true(oct_objects_at(&s, 1, 2, 6, MAP, MAP) == 1);
    oct_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(places_in_boxes_count_more, setup, teardown),
        cmocka_unit_test_setup_teardown(classifiers_have_no_objects, setup, teardown),
    };

    return run_test_group(tests);
}
