/* SPDX-License-Identifier: Apache-2.0 */
/* The twelve numbers of COCO's own example, which its tools publish. */
#include "test.h"

static const char *shared;

static void oracle_is_met(void **state)
{
    static const double want[12] = {.505, .697, .573, .586, .519, .501,
                                    .387, .594, .595, .640, .566, .564};
    fixture *f = *state;
    char annotations[4096], results[4096];
    oct_dataset_options o;
    oct_dataset *d = NULL;
    oct_box_eval *e = NULL;
    oct_box_metrics m;
    double got[12];

    (void)snprintf(annotations, sizeof(annotations),
                   "%s/data/coco/oracle/instances_val2014_100_gt.json", shared);
    (void)snprintf(results, sizeof(results),
                   "%s/data/coco/oracle/instances_val2014_fakebbox100_results.json", shared);
    oct_dataset_options_init(&o);
    o.annotations = annotations;
    assert_ok(f->ctx, oct_dataset_open(f->ctx, &o, &d));
    assert_int_equal(oct_dataset_size(d), 100);
    assert_ok(f->ctx, oct_box_eval_new(f->ctx, d, &e));
    assert_ok(f->ctx, oct_box_eval_see_file(e, results));
    assert_ok(f->ctx, oct_box_eval_finish(e, 1, &m));
    memcpy(got, &m, sizeof(got)); /* in COCO's order */
    for (int i = 0; i < 12; i++)
        if (fabs(got[i] - want[i]) > 0.0005)
            fail_msg("number %d: %.6f, want %.3f", i, got[i], want[i]);
    oct_box_eval_free(e);
    oct_dataset_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(oracle_is_met, setup, teardown),
    };

    if (!(shared = shared_dir("test_eval_oracle"))) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
