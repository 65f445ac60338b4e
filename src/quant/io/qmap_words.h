/* SPDX-License-Identifier: Apache-2.0 */
/* The keywords of a qmap file, for writing and reading. */
#ifndef OCT_QUANT_IO_QMAP_WORDS_H
#define OCT_QUANT_IO_QMAP_WORDS_H

#include "quant/qmap.h"

#define OCT_QMAP_VERSION 1

/* Ends with NULL; the index is the number of the enum. */
static inline const char *const *oct_qmap_roles(void)
{
    static const char *const words[] = {
        [OCT_QROLE_NONE] = "none", [OCT_QROLE_ACT] = "activation",    [OCT_QROLE_WEIGHT] = "weight",
        [OCT_QROLE_BIAS] = "bias", [OCT_QROLE_AS_INPUT] = "as-input", NULL,
    };

    return words;
}

static inline const char *const *oct_qmap_float_reasons(void)
{
    static const char *const words[] = {
        [OCT_FLOAT_NONE] = "none",
        [OCT_FLOAT_TAIL] = "tail",
        [OCT_FLOAT_IGNORED] = "ignored",
        [OCT_FLOAT_MODEL_TYPE] = "model-type",
        [OCT_FLOAT_TARGET] = "target",
        [OCT_FLOAT_WEIGHTS] = "weights",
        [OCT_FLOAT_DIVISOR] = "divisor",
        [OCT_FLOAT_INPUT] = "input",
        [OCT_FLOAT_CONSUMER] = "consumer",
        [OCT_FLOAT_OUTPUT] = "output",
        [OCT_FLOAT_ERROR] = "error",
        [OCT_FLOAT_SLOWER] = "slower",
        [OCT_FLOAT_DYNAMIC] = "dynamic",
        [OCT_FLOAT_OTHER] = "other",
        NULL,
    };

    return words;
}

static inline const char *const *oct_qmap_roundings(void)
{
    static const char *const words[] = {
        [OCT_QROUND_HALF_EVEN] = "half-even",
        [OCT_QROUND_HALF_AWAY] = "half-away",
        [OCT_QROUND_HALF_UP] = "half-up",
        [OCT_QROUND_COUNT] = NULL,
    };

    return words;
}

#endif
