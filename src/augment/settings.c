/* SPDX-License-Identifier: Apache-2.0 */
/* The table of settings: finding, setting and checking numbers by name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "augment/augment.h"

static const oct_augment_setting settings[] = {
#define OCT_AUGMENT_SETTING(name, value, least, most, help) {#name, help, value, least, most},
#include "augment/settings.def"
#undef OCT_AUGMENT_SETTING
};

static const size_t offsets[] = {
#define OCT_AUGMENT_SETTING(name, value, least, most, help) offsetof(oct_augment, name),
#include "augment/settings.def"
#undef OCT_AUGMENT_SETTING
};

const oct_augment_setting *oct_augment_setting_at(int i)
{
    return i >= 0 && (size_t)i < OCT_COUNT(settings) ? &settings[i] : NULL;
}

int oct_augment_setting_find(const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(settings); i++)
        if (strcmp(settings[i].name, name) == 0) return (int)i;
    return -1;
}

double *oct_augment_number(oct_augment *a, int i)
{
    return (double *)(void *)((char *)a + offsets[i]);
}

static double number_at(const oct_augment *a, int i)
{
    double v;

    memcpy(&v, (const char *)a + offsets[i], sizeof(v));
    return v;
}

oct_status oct_augment_set(oct_ctx *ctx, oct_augment *a, const char *name, const char *text)
{
    const int i = oct_augment_setting_find(name);
    const oct_augment_setting *s = oct_augment_setting_at(i);
    char *end = NULL;
    double v;

    if (!s) return oct_fail(ctx, OCT_ERR_ARG, "augment: there is no setting '%.60s'", name);
    errno = 0;
    v = strtod(text, &end);
    if (end == text || *end || errno || !(v >= s->least && v <= s->most))
        return oct_fail(ctx, OCT_ERR_ARG, "augment: %s is '%.60s', must be a number from %g to %g",
                        name, text, s->least, s->most);
    *oct_augment_number(a, i) = v;
    return OCT_OK;
}

/* "scale_min" must not be above "scale_max". */
static oct_status check_pair(oct_ctx *ctx, const oct_augment *a, int i)
{
    const char *name = settings[i].name;
    const size_t len = strlen(name);
    char max[64];
    int k;

    if (len < 4 || len >= sizeof(max) || strcmp(name + len - 4, "_min") != 0) return OCT_OK;
    memcpy(max, name, len + 1);
    memcpy(max + len - 4, "_max", 4);
    k = oct_augment_setting_find(max);
    if (k < 0 || number_at(a, i) <= number_at(a, k)) return OCT_OK;
    return oct_fail(ctx, OCT_ERR_ARG, "augment: %s is %g, more than %s, which is %g", name,
                    number_at(a, i), max, number_at(a, k));
}

oct_status oct_augment_check(oct_ctx *ctx, const oct_augment *a)
{
    for (int i = 0; i < (int)OCT_COUNT(settings); i++) {
        const double v = number_at(a, i);

        if (!(v >= settings[i].least && v <= settings[i].most))
            return oct_fail(ctx, OCT_ERR_ARG, "augment: %s is %g, must be from %g to %g",
                            settings[i].name, v, settings[i].least, settings[i].most);
        OCT_TRY(check_pair(ctx, a, i));
    }
    return OCT_OK;
}
