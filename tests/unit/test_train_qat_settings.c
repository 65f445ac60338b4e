/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of quantization-aware training: presets. */
#include "tests/unit/exec_net.h"
#include "train/settings.h"

static oct_train_settings resolve(fixture *f, oct_train_options *o)
{
    static oct_quantize_options q;
    oct_train_settings s;

    oct_quantize_options_init(&q);
    o->quantize = &q;
    assert_ok(f->ctx, oct_train_settings_resolve(f->ctx, o, "yolo-nas", &s));
    return s;
}

static void presets_are_defaults(void **state)
{
    fixture *f = *state;
    oct_train_options o;
    oct_train_settings s;

    oct_train_options_init(&o);
    s = resolve(f, &o);
    assert_string_equal(s.preset->name, "qat");
    assert_string_equal(s.augment_name, "light");
    assert_int_equal(s.epochs, 10);
    assert_true(s.freeze_scales == .5 && s.scale_rate == 20 && !s.fix_scales);
    o.preset = "super_gradients";
    s = resolve(f, &o);
    assert_int_equal(s.epochs, 30);
    assert_int_equal(s.batch, 4);
    assert_true(s.fix_scales && s.schedule.lr == 2e-6 && !s.ema);
    o.scale_rate = 1; /* learn_amax */
    assert_false(resolve(f, &o).fix_scales);
    o.preset = "quark";
    s = resolve(f, &o);
    assert_int_equal(s.epochs, 1);
    assert_true(s.schedule.lr == 2e-7 && s.freeze_scales == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(presets_are_defaults, setup, teardown),
    };

    return run_test_group(tests);
}
