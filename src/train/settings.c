/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a training job: see settings.h. */
#include "train/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

enum { DEFAULT_EPOCHS = 50, DEFAULT_BATCH = 8 };

/* --- finding rows by name --- */

typedef const char *(*name_fn)(int32_t i);

/* "; did you mean 'x'?", or what there is. */
static oct_status unknown(oct_ctx *ctx, const char *what, const char *name, name_fn at)
{
    oct_nearest near = {name, 4, NULL};
    char all[512] = "";
    size_t len = 0;

    for (int32_t i = 0; at(i); i++) {
        const int n = snprintf(all + len, sizeof(all) - len, "%s%s", i ? ", " : "", at(i));

        if (n > 0 && (size_t)n < sizeof(all) - len) len += (size_t)n;
        oct_nearest_try(&near, at(i));
    }
    if (near.name)
        return oct_fail(ctx, OCT_ERR_ARG, "there is no %s '%.60s'; did you mean '%s'?", what, name,
                        near.name);
    return oct_fail(ctx, OCT_ERR_ARG, "there is no %s '%.60s', but %s", what, name, all);
}

const char *oct_train_preset_name(int32_t i)
{
    const oct_train_preset *p = oct_train_preset_at(i);

    return p ? p->name : NULL;
}

const char *oct_loss_name(int32_t i)
{
    const oct_loss_row *row = oct_loss_at(i);

    return row ? row->name : NULL;
}

const char *oct_optimizer_name(int32_t i)
{
    const oct_optimizer_row *row = oct_optimizer_at(i);

    return row ? row->name : NULL;
}

const char *oct_schedule_name(int32_t i)
{
    for (int32_t k = 0; k <= i; k++)
        if (!oct_decay_words[k].name) return NULL;
    return i >= 0 ? oct_decay_words[i].name : NULL;
}

const char *oct_ema_name(int32_t i)
{
    const oct_ema_row *row = i > 0 ? oct_ema_at(i - 1) : NULL;

    return i == 0 ? "none" : row ? row->name : NULL;
}

const char *oct_augment_name(int32_t i)
{
    const oct_augment_preset *p = oct_augment_preset_at(i);

    return p ? p->name : NULL;
}

/* --- presets --- */

/* Which preset trains a family by default, or any quantized network; the last one is for all
 * others. */
static const struct {
    const char *family, *preset;
} preset_of[] = {
    {"yolov8", "ultralytics"},
    {"yolov5", "ultralytics"},
    {"yolox", "yolox"},
    {"yolo-nas", "yolo_nas"},
    {"nanodet", "nanodet"},
    {"picodet", "picodet"},
    {"qat", "qat"},
    {NULL, "yolo_nas"},
};

static oct_status find_preset(oct_ctx *ctx, const oct_train_options *o, const char *family,
                              const oct_train_preset **out)
{
    const char *name;
    size_t i = 0;

    if (o->preset) {
        *out = oct_train_preset_find(o->preset);
        return *out ? OCT_OK : unknown(ctx, "preset", o->preset, oct_train_preset_name);
    }
    if (o->quantize) family = "qat";
    while (preset_of[i].family && (!family || strcmp(preset_of[i].family, family) != 0))
        i++;
    name = preset_of[i].preset;
    /* Its rate is for weights that are good already, or for hundreds of epochs. */
    if ((o->from_scratch || o->prune || o->teacher) && strcmp(name, "yolo_nas") == 0)
        name = "scratch";
    *out = oct_train_preset_find(name);
    return OCT_OK;
}

static oct_status find_loss(oct_ctx *ctx, const oct_train_options *o, const char *family,
                            const oct_loss_row **out)
{
    if (o->loss) {
        *out = oct_loss_find(o->loss);
        return *out ? OCT_OK : unknown(ctx, "loss", o->loss, oct_loss_name);
    }
    for (int i = 0; oct_loss_at(i); i++)
        if (family && oct_loss_at(i)->family && strcmp(oct_loss_at(i)->family, family) == 0) {
            *out = oct_loss_at(i);
            return OCT_OK;
        }
    return oct_fail(ctx, OCT_ERR_ARG,
                    "no loss is known for networks of the family '%s': name one (--loss)",
                    family ? family : "unknown");
}

/* --- the parts --- */

static oct_status set_optimizer(oct_ctx *ctx, const oct_train_options *o, oct_train_settings *s)
{
    const char *name = o->optimizer ? o->optimizer : s->preset->optimizer;

    s->optimizer = oct_optimizer_find(name);
    if (!s->optimizer) return unknown(ctx, "optimizer", name, oct_optimizer_name);
    s->optimizer_options = s->preset->options;
    if (strcmp(name, s->preset->optimizer) != 0) oct_optimizer_options_init(&s->optimizer_options);
    if (o->momentum > 0) s->optimizer_options.momentum = s->optimizer_options.beta1 = o->momentum;
    return OCT_OK;
}

/* Rates of presets are for a batch of their own. */
static double per_batch(double value, double batch, const oct_train_settings *s)
{
    return batch > 0 ? value * s->batch * s->accumulate / batch : value;
}

static oct_status set_schedule(oct_ctx *ctx, const oct_train_options *o, oct_train_settings *s)
{
    const oct_train_preset *p = s->preset;

    s->schedule = p->schedule;
    s->schedule.epochs = s->epochs;
    s->schedule.lr = o->rate > 0 ? o->rate : per_batch(p->schedule.lr, p->lr_batch, s);
    if (o->schedule) {
        const oct_schedule_word *w = oct_schedule_word_find(oct_decay_words, o->schedule);

        if (!w) return unknown(ctx, "schedule", o->schedule, oct_schedule_name);
        s->schedule.decay = (oct_decay_kind)w->kind;
        s->schedule.horizon = s->schedule.constant_end = 0;
    }
    if (o->momentum > 0) s->schedule.momentum = o->momentum;
    if (o->final_rate != 0) s->schedule.final_ratio = OCT_MAX(o->final_rate, 0);
    if (o->warmup_epochs < 0) s->schedule.warmup = OCT_WARMUP_NONE;
    if (o->warmup_epochs > 0) {
        if (s->schedule.warmup == OCT_WARMUP_NONE) s->schedule.warmup = OCT_WARMUP_LINEAR;
        s->schedule.warmup_steps = 0;
        s->schedule.warmup_epochs = o->warmup_epochs;
        s->schedule.warmup_most_epochs = 0;
    }
    s->decay = o->weight_decay > 0   ? o->weight_decay
               : o->weight_decay < 0 ? 0
                                     : per_batch(p->decay, p->decay_batch, s);
    s->decay_all = o->decay_all || (p->decay_all && o->weight_decay == 0);
    s->clip = o->clip_norm > 0 ? o->clip_norm : o->clip_norm < 0 ? 0 : p->clip;
    return OCT_OK;
}

static oct_status set_ema(oct_ctx *ctx, const oct_train_options *o, oct_train_settings *s)
{
    const char *name = o->ema ? o->ema : s->preset->ema;

    if (!name || strcmp(name, "none") == 0) return OCT_OK;
    s->ema = oct_ema_find(name);
    return s->ema ? OCT_OK : unknown(ctx, "average", name, oct_ema_name);
}

static oct_status set_augment(oct_ctx *ctx, const oct_train_options *o, const char *family,
                              oct_train_settings *s)
{
    const char *want = o->augment ? o->augment : s->preset->augment;
    const oct_augment_preset *p =
        want ? oct_augment_preset_find(want) : oct_augment_preset_of(family);
    char name[64];

    if (!p) return unknown(ctx, "augmentation", want, oct_augment_name);
    s->augment_name = p->name;
    oct_augment_init(&s->augment, p);
    for (int32_t i = 0; i < o->n_augment_settings; i++) {
        const char *text = o->augment_settings[i], *eq = strchr(text, '=');

        if (!eq || (size_t)(eq - text) >= sizeof(name))
            return oct_fail(ctx, OCT_ERR_ARG, "augmentation: '%.80s' is not NAME=VALUE", text);
        memcpy(name, text, (size_t)(eq - text));
        name[eq - text] = 0;
        OCT_TRY(oct_augment_set(ctx, &s->augment, name, eq + 1));
    }
    return oct_augment_check(ctx, &s->augment);
}

/* "2G", "1.5G", "800M", "500k": 10^9, 10^6, 10^3 bytes. */
static oct_status set_memory(oct_ctx *ctx, const char *text, size_t *out)
{
    static const struct {
        char letter;
        double bytes;
    } units[] = {{'k', 1e3}, {'K', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}};
    char *end = NULL;
    double n;

    if (!text) return OCT_OK;
    n = strtod(text, &end);
    for (size_t i = 0; end != text && i < OCT_COUNT(units); i++)
        if (*end == units[i].letter) {
            n *= units[i].bytes;
            end++;
            break;
        }
    if (end != text && *end == 'B') end++;
    if (end == text || *end || !(n >= 1) || n > 1e15)
        return oct_fail(ctx, OCT_ERR_ARG, "'%.40s' is no size of memory: write 2G or 800M", text);
    *out = (size_t)n;
    return OCT_OK;
}

static void set_qat(const oct_train_options *o, oct_train_settings *s)
{
    const oct_train_preset *p = s->preset;

    s->fix_scales = o->fix_scales || (p->fix_scales && o->scale_rate <= 0);
    s->scale_rate = o->scale_rate > 0 ? o->scale_rate : p->scale_rate > 0 ? p->scale_rate : 1;
    s->freeze_scales = o->freeze_scales > 0   ? o->freeze_scales
                       : p->freeze_scales > 0 ? p->freeze_scales
                                              : 1;
}

static oct_status set_precision(oct_ctx *ctx, const char *name, bool *is_bf16)
{
    *is_bf16 = name && strcmp(name, "bf16") == 0;
    if (!name || *is_bf16 || strcmp(name, "f32") == 0) return OCT_OK;
    return oct_fail(ctx, OCT_ERR_ARG, "there is no precision '%.40s' of training, but f32, bf16",
                    name);
}

oct_status oct_train_settings_resolve(oct_ctx *ctx, const oct_train_options *o, const char *family,
                                      oct_train_settings *out)
{
    oct_train_settings *s = out;

    *s = (oct_train_settings){
        .accumulate = o->accumulate > 0 ? o->accumulate : 1,
        .norm_momentum = o->norm_momentum,
    };
    OCT_TRY(find_preset(ctx, o, family, &s->preset));
    s->epochs = o->epochs > 0       ? o->epochs
                : s->preset->is_qat ? (int32_t)s->preset->epochs
                                    : DEFAULT_EPOCHS;
    s->batch = o->batch > 0 ? o->batch : s->preset->batch > 0 ? s->preset->batch : DEFAULT_BATCH;
    set_qat(o, s);
    OCT_TRY(find_loss(ctx, o, family, &s->loss));
    OCT_TRY(set_optimizer(ctx, o, s));
    OCT_TRY(set_schedule(ctx, o, s));
    OCT_TRY(set_ema(ctx, o, s));
    OCT_TRY(set_memory(ctx, o->memory, &s->memory));
    OCT_TRY(set_precision(ctx, o->precision, &s->is_bf16));
    return set_augment(ctx, o, family, s);
}
