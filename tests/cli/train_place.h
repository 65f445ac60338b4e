/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of training commands share: a few pictures of shapes, and what is printed by epoch. */
#ifndef OCT_TESTS_CLI_TRAIN_PLACE_H
#define OCT_TESTS_CLI_TRAIN_PLACE_H

#include "cli/quantize_net.h"

#define DATA "--images s/train --annotations s/train.json --labels s/names.txt "

static inline int setup_data(void **state)
{
    place *p;

    if (place_setup(state)) return -1;
    p = *state;
    return octet(p, "synth --out s --split train --count 6 --size 128 --seed 3");
}

/* Line i of the output, as JSON. */
static inline json_t *line(place *p, int i)
{
    const char *text = p->last.out;
    json_t *j;

    for (; i > 0 && text; i--)
        text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
    assert_non_null(text);
    j = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
    assert_non_null(j);
    return j;
}

#endif
