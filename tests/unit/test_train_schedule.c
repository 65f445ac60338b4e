/* SPDX-License-Identifier: Apache-2.0 */
/* Learning rates by step, against the formulas of the projects that have them. */
#include "optim/ema.h"
#include "optim/schedule.h"
#include "tests/test.h"

#define PI 3.14159265358979323846

static oct_rates at(const oct_schedule *s, int64_t step)
{
    oct_rates r;

    oct_schedule_at(s, step, &r);
    return r;
}

static void assert_rate(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12 * fmax(fabs(want), 1e-6)))
        fail_msg("%.17g, want %.17g", got, want);
}

static oct_schedule preset(const char *name, int64_t steps_per_epoch, double epochs)
{
    oct_schedule s = oct_train_preset_find(name)->schedule;

    s.steps_per_epoch = steps_per_epoch;
    s.epochs = epochs;
    return s;
}

static void plain_schedules(void **state)
{
    fixture *f = *state;
    oct_schedule s;

    oct_schedule_init(&s);
    s.steps_per_epoch = 10;
    s.epochs = 10;
    assert_ok(f->ctx, oct_schedule_check(f->ctx, &s));
    assert_rate(at(&s, 0).lr, 0.01);
    assert_rate(at(&s, 1000).lr, 0.01);
    assert_true(at(&s, 5).momentum < 0);

    s.decay = OCT_DECAY_STEP;
    s.milestone[0] = 3;
    s.milestone[1] = 4.5;
    s.n_milestones = 2;
    assert_rate(at(&s, 29).lr, 0.01);
    assert_rate(at(&s, 30).lr, 0.001);
    assert_rate(at(&s, 44).lr, 0.001);
    assert_rate(at(&s, 45).lr, 0.0001);

    s.decay = OCT_DECAY_COSINE;
    s.final_ratio = 0.2;
    assert_rate(at(&s, 0).lr, 0.01);
    assert_rate(at(&s, 50).lr, 0.006);
    assert_rate(at(&s, 100).lr, 0.002);
    assert_rate(at(&s, 500).lr, 0.002); /* longer than planned */
    s.by_epoch = true;
    assert_rate(at(&s, 59).lr, 0.006);

    s.decay = OCT_DECAY_LINEAR;
    assert_rate(at(&s, 25).lr, 0.01 * (0.8 * 0.8 + 0.2));
    s.by_epoch = false;
    assert_rate(at(&s, 25).lr, 0.01 * (0.75 * 0.8 + 0.2));
}

static void warm_up(void **state)
{
    fixture *f = *state;
    oct_schedule s;

    oct_schedule_init(&s);
    s.steps_per_epoch = 10;
    s.epochs = 10;
    s.warmup = OCT_WARMUP_LINEAR;
    s.warmup_steps = 4;
    s.warmup_start = 0.002;
    assert_ok(f->ctx, oct_schedule_check(f->ctx, &s));
    for (int i = 0; i < 5; i++)
        assert_rate(at(&s, i).lr, 0.002 + 0.002 * i);
    s.warmup_closed = true; /* four steps, from the first rate to the last */
    assert_rate(at(&s, 0).lr, 0.002);
    assert_rate(at(&s, 3).lr, 0.01);
    s.warmup_steps = 1; /* nothing between */
    assert_rate(at(&s, 0).lr, 0.002);
    assert_rate(at(&s, 1).lr, 0.01);
    s.warmup_closed = false;
    s.warmup_steps = 0;
    s.warmup_epochs = 2;
    s.warmup_start = 0;
    s.warmup_ratio = 0.5;
    assert_rate(at(&s, 10).lr, 0.0075);
    s.warmup_most_epochs = 1;
    assert_rate(at(&s, 5).lr, 0.0075);
    assert_rate(at(&s, 10).lr, 0.01);
    s.warmup = OCT_WARMUP_NONE;
    assert_rate(at(&s, 0).lr, 0.01);
    /* Longer than the training: it never falls. */
    s.warmup = OCT_WARMUP_LINEAR;
    s.decay = OCT_DECAY_COSINE;
    s.after_warmup = true;
    s.warmup_most_epochs = 0;
    s.warmup_ratio = 0;
    s.warmup_epochs = 20;
    assert_rate(at(&s, 99).lr, 0.01 * 99 / 200);
}

static void ultralytics(void **state)
{
    const oct_schedule s = preset("ultralytics", 50, 100);

    (void)state;
    for (int64_t step = 0; step < 5000; step += 7) {
        const double epoch = (double)(step / 50);
        const double lf = fmax(1 - epoch / 100, 0) * (1 - 0.01) + 0.01;
        const double x = fmin((double)step / 150, 1);
        const oct_rates r = at(&s, step);

        assert_rate(r.lr, x * 0.01 * lf);
        assert_rate(r.bias_lr, 0.1 + x * (0.01 * lf - 0.1));
        assert_rate(r.momentum, 0.8 + x * (0.937 - 0.8));
    }
    const oct_schedule tiny = preset("ultralytics", 10, 100); /* at least 100 steps */

    assert_rate(at(&tiny, 50).momentum, 0.8 + 0.5 * (0.937 - 0.8));
}

static void yolox(void **state)
{
    const oct_schedule s = preset("yolox", 20, 300);
    const double total = 6000, warmup = 100, last = 300;

    (void)state;
    for (int64_t step = 0; step < 6000; step += 7) {
        const double it = (double)step;
        const double want =
            it <= warmup ? 0.01 * pow(it / warmup, 2)
            : it >= total - last
                ? 0.0005
                : 0.0005 + 0.5 * (0.01 - 0.0005) *
                               (1 + cos(PI * (it - warmup) / (total - warmup - last)));

        assert_rate(at(&s, step).lr, want);
        assert_true(at(&s, step).momentum == 0.9);
    }
}

static void yolo_nas(void **state)
{
    const oct_schedule s = preset("yolo_nas", 2000, 300), few = preset("yolo_nas", 30, 300);
    const double total = 600000 - 1000;

    (void)state;
    for (int64_t step = 0; step < 1000; step += 37)
        assert_rate(at(&s, step).lr, 1e-6 + (2e-4 - 1e-6) * (double)step / 999);
    for (int64_t step = 1000; step < 600000; step += 3331) {
        const double k = (double)(step - 1000);

        assert_rate(at(&s, step).lr, 2e-4 * (0.5 * (1 + cos(PI * k / (total + 1))) * 0.9 + 0.1));
    }
    assert_rate(at(&few, 29).lr, 2e-4); /* one epoch at most */
}

static void others(void **state)
{
    const oct_schedule nanodet = preset("nanodet", 100, 300);
    const oct_schedule pico = preset("picodet", 100, 300);
    const oct_schedule ppe = preset("pp_yoloe", 100, 300);

    (void)state;
    assert_rate(at(&nanodet, 40).lr, 1e-3 * (1 - (1 - 40.0 / 500) * (1 - 1e-4)));
    assert_rate(at(&nanodet, 15050).lr, 1e-3 * 0.525);
    assert_rate(at(&nanodet, 29999).lr, 5e-5 + (1e-3 - 5e-5) * 0.5 * (1 + cos(PI * 299 / 300)));
    assert_rate(at(&pico, 0).lr, 0.032);
    assert_rate(at(&pico, 150).lr, 0.32 * 0.55);
    assert_rate(at(&pico, 15150).lr, 0.16);
    assert_rate(at(&ppe, 250).lr, 0.005);
    assert_rate(at(&ppe, 29999).lr, 0.005 * (1 + cos(PI * (29999 - 500.0) / (36000 - 500))));
    assert_true(at(&ppe, 30000).lr > 5e-4); /* the cosine's end is not reached */
}

/* Every preset names rows that are there, and makes sense. */
static void presets_are_whole(void **state)
{
    fixture *f = *state;
    int n = 0;

    for (const oct_train_preset *p; (p = oct_train_preset_at(n)); n++) {
        const oct_schedule s = preset(p->name, 10, p->epochs);
        const oct_optimizer_row *row = oct_optimizer_find(p->optimizer);

        assert_ptr_equal(oct_train_preset_find(p->name), p);
        assert_ok(f->ctx, oct_schedule_check(f->ctx, &s));
        assert_non_null(row);
        assert_null(row->check(&p->options));
        assert_true(!p->ema || oct_ema_find(p->ema));
    }
    assert_true(n >= 6);
    assert_null(oct_train_preset_find("alexnet"));
}

static void words_and_refusals(void **state)
{
    fixture *f = *state;
    oct_schedule s;

    assert_int_equal(oct_schedule_word_find(oct_decay_words, "cosine")->kind, OCT_DECAY_COSINE);
    assert_int_equal(oct_schedule_word_find(oct_warmup_words, "quadratic")->kind,
                     OCT_WARMUP_QUADRATIC);
    assert_null(oct_schedule_word_find(oct_warmup_words, "cosine"));
    oct_schedule_init(&s);
    s.lr = NAN;
    assert_fails(f->ctx, oct_schedule_check(f->ctx, &s), OCT_ERR_ARG, "learning rate");
    oct_schedule_init(&s);
    s.n_milestones = 2;
    s.milestone[0] = 5;
    assert_fails(f->ctx, oct_schedule_check(f->ctx, &s), OCT_ERR_ARG, "ascending");
    oct_schedule_init(&s);
    s.warmup_momentum = 0.8;
    assert_fails(f->ctx, oct_schedule_check(f->ctx, &s), OCT_ERR_ARG, "momentum");
    oct_schedule_init(&s);
    s.epochs = INFINITY;
    assert_fails(f->ctx, oct_schedule_check(f->ctx, &s), OCT_ERR_ARG, "epochs");
    oct_schedule_init(&s);
    s.steps_per_epoch = 0;
    assert_fails(f->ctx, oct_schedule_check(f->ctx, &s), OCT_ERR_ARG, "at least one step");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plain_schedules, setup, teardown),
        cmocka_unit_test_setup_teardown(warm_up, setup, teardown),
        cmocka_unit_test_setup_teardown(ultralytics, setup, teardown),
        cmocka_unit_test_setup_teardown(yolox, setup, teardown),
        cmocka_unit_test_setup_teardown(yolo_nas, setup, teardown),
        cmocka_unit_test_setup_teardown(others, setup, teardown),
        cmocka_unit_test_setup_teardown(presets_are_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(words_and_refusals, setup, teardown),
    };

    return run_test_group(tests);
}
