/* SPDX-License-Identifier: Apache-2.0 */
/* drop-dead: remove nodes and constants that no output needs. */
#include "pass/pass.h"
#include "pass/rewrite.h"

static bool is_dead(const oct_node *n)
{
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && (n->out[i]->n_users > 0 || n->out[i]->is_output)) return false;
    return true;
}

static oct_status run(oct_graph *g, int *n_changed)
{
    oct_graph *root = g->root;

    for (oct_node *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        if (!is_dead(n)) continue;
        oct_node_remove(n);
        ++*n_changed;
    }
    if (g != root) return OCT_OK; /* constants of bodies are in the root's table as well */
    for (int32_t i = 0; i < root->n_value_ids; i++) {
        oct_value *v = root->values[i];

        if (!v || !v->data || v->n_users > 0 || v->is_output || v->is_input) continue;
        OCT_TRY(oct_prune(v));
        ++*n_changed;
    }
    return OCT_OK;
}

const oct_pass oct_pass_drop_dead = {
    .name = "drop-dead",
    .help = "remove nodes and constants that no output needs",
    .run = run,
    .promise = OCT_PASS_BIT_EXACT,
    .in = OCT_IN_ALL,
};

oct_status oct_drop_dead(oct_graph *g)
{
    int n_changed;

    do {
        n_changed = 0;
        OCT_TRY(oct_pass_run(&oct_pass_drop_dead, g, &n_changed));
    } while (n_changed);
    return OCT_OK;
}
