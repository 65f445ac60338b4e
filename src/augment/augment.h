/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of an augmentation: what is done to pictures before a network is trained on them.
 *
 * To add an augmentation: augment_<name>.c with its row, one line in augment.def, its numbers in
 * settings.def, one line in meson.build. Recipes, options and help can be made from the tables.
 */
#ifndef OCT_AUGMENT_AUGMENT_H
#define OCT_AUGMENT_AUGMENT_H

#include "base/status.h"

/* One double for each line of settings.def: a->mosaic, a->flip_lr .. */
typedef struct oct_augment {
#define OCT_AUGMENT_SETTING(name, value, least, most, help) double name;
#include "augment/settings.def"
#undef OCT_AUGMENT_SETTING
} oct_augment;

typedef struct oct_augment_setting {
    const char *name, *help;
    double value, least, most; /* value: the default, which changes nothing */
} oct_augment_setting;

const oct_augment_setting *oct_augment_setting_at(int i); /* NULL beyond the end */
int oct_augment_setting_find(const char *name);           /* -1: none */
double *oct_augment_number(oct_augment *a, int i);        /* of setting i */

/*
 * Sets one by name. Fails, with what is allowed, if there is no such name or the text is no number
 * in the setting's range. "Did you mean" is left to the caller, who has the names.
 */
oct_status oct_augment_set(oct_ctx *ctx, oct_augment *a, const char *name, const char *text);

/* Fails if a number is out of its range or a least one above its greatest; names it. */
oct_status oct_augment_check(oct_ctx *ctx, const oct_augment *a);

/* A set of numbers that has a name. */
typedef struct oct_augment_preset {
    const char *name, *help;
    const char *families; /* of detectors that are trained with it by default: " yolov8 yolov5 " */
    void (*set)(oct_augment *a); /* after the defaults */
} oct_augment_preset;

const oct_augment_preset *oct_augment_preset_at(int i); /* NULL beyond the end */
const oct_augment_preset *oct_augment_preset_find(const char *name);

/* The one for a family of detectors; "light" for those that no preset names, and for NULL. */
const oct_augment_preset *oct_augment_preset_of(const char *family);

/* All numbers of a preset; NULL: the defaults, which change nothing. */
void oct_augment_init(oct_augment *a, const oct_augment_preset *p);

#endif
