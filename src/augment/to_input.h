/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit pictures to the numbers a network wants, and back to look at them. */
#ifndef OCT_AUGMENT_TO_INPUT_H
#define OCT_AUGMENT_TO_INPUT_H

#include <octet/data.h>

#include "base/status.h"

/* The numbers of each level, for the channels in the network's order. */
typedef struct oct_to_input {
    oct_preprocess p;
    int n_channels;
    float value[3][256];
} oct_to_input;

void oct_to_input_init(oct_to_input *t, const oct_preprocess *p);
size_t oct_to_input_size(const oct_to_input *t); /* floats of one picture */

/* rgb: width * height * 3 bytes. Gives what oct_preprocess_run() gives for such a picture. */
void oct_to_input_run(const oct_to_input *t, const uint8_t *rgb, float *to);

/* The nearest levels; grey becomes three equal ones. */
void oct_to_input_back(const oct_to_input *t, const float *from, uint8_t *rgb);

#endif
