/* SPDX-License-Identifier: Apache-2.0 */
/* Where the picture goes if nothing else happens: as the network's preprocessing says. */
#include "augment/sample.h"

static oct_status arrange(oct_sample *s, oct_rng *r)
{
    (void)r;
    oct_scene_fit(&s->scene, s->p, s->im, s->index);
    return OCT_OK;
}

const oct_augment_row oct_augment_letterbox = {
    .name = "letterbox",
    .help = "brings pictures to the network's size as its preprocessing does; always done",
    .arrange = arrange,
};
