/* SPDX-License-Identifier: Apache-2.0 */
/* A teacher beside the labels: its predictions are one more part of a loss. */
#include <stdio.h>
#include <string.h>

#include "loss/distill.h"
#include "loss/loss_op.h"
#include "loss/raw.h"
#include "op/op.h"

/* An input of the graph that takes what v is in the teacher. */
static oct_value *teacher_of(oct_builder *b, const oct_value *v, const char *name)
{
    oct_value *t = oct_value_new(b->g, name, &v->type);

    if (!t)
        b->status = OCT_ERR_MEMORY;
    else if (!b->status)
        b->status = oct_graph_add_input(b->g, t);
    return t;
}

static oct_status attach_head(oct_graph *g, double weight, oct_loss_found *found, oct_value **loss)
{
    oct_builder b = {.g = g, .prefix = "distill"};
    oct_loss_pair *pairs = oct_arena_array(g->arena, 2, sizeof(*pairs));
    oct_node *n;

    if (!pairs) return OCT_ERR_MEMORY;
    pairs[0] = (oct_loss_pair){found->scores, teacher_of(&b, found->scores, "teacher/scores")};
    pairs[1] = (oct_loss_pair){found->boxes, teacher_of(&b, found->boxes, "teacher/boxes")};
    OCT_TRY(b.status);
    n = oct_emit_node(
        &b, &oct_op_distill_head_loss,
        (oct_value *[]){found->scores, found->boxes, pairs[0].teacher, pairs[1].teacher}, 4, 4);
    oct_emit_f32(&b, n, "weight", (float)(weight * (found->times > 0 ? found->times : 1)));
    *loss = oct_emitted(&b, n);
    found->pairs = pairs;
    found->n_pairs = 2;
    return b.status;
}

static oct_status attach_values(oct_graph *g, double weight, oct_loss_found *found,
                                oct_value **loss)
{
    oct_builder b = {.g = g, .prefix = "distill"};
    oct_loss_job job = {.g = g};
    oct_loss_found teacher = {0};

    oct_loss_defaults(&oct_loss_distill, &job);
    OCT_TRY(oct_loss_distill.attach(&job, &teacher));
    *loss = oct_emit(&b, &oct_op_mul, teacher.loss,
                     oct_scalar_of(&b, teacher.loss->type.dtype, weight), NULL);
    found->pairs = teacher.pairs;
    found->n_pairs = teacher.n_pairs;
    return b.status;
}

oct_status oct_distill_beside(const oct_loss_job *job, double weight, oct_loss_found *found)
{
    oct_builder b = {.g = job->g, .prefix = "distill"};
    oct_value *loss = NULL, *parts[2] = {found->parts};
    const size_t len = strlen(found->why);

    if (found->scores && found->boxes)
        OCT_TRY(attach_head(job->g, weight, found, &loss));
    else
        OCT_TRY(attach_values(job->g, weight, found, &loss));
    parts[1] = oct_emit(&b, &oct_op_reshape, loss, oct_ints(&b, (int64_t[]){1}, 1), NULL);
    found->loss = oct_emit(&b, &oct_op_add, found->loss, loss, NULL);
    found->parts = oct_raw_join(&b, parts, 2, 0);
    (void)snprintf(found->why + len, sizeof(found->why) - len, "; a teacher's beside the labels");
    return b.status;
}
