/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions for passes. */
#include <string.h>

#include <octet/graph.h>

#include "pass/pass.h"

void oct_simplify_options_init_sized(oct_simplify_options *o, size_t struct_size)
{
    memset(o, 0, struct_size);
    o->struct_size = struct_size;
}

oct_status oct_graph_simplify(oct_graph *g, const oct_simplify_options *options)
{
    OCT_ENTER(g->ctx);
    oct_simplify_options o;

    oct_simplify_options_init(&o);
    if (options && options->struct_size)
        memcpy(&o, options, OCT_MIN(options->struct_size, sizeof(o)));
    return oct_pipeline_run(g, "simplify", o.only, o.skip);
}

const char *oct_pass_name(int32_t i)
{
    const oct_pass *p = oct_pass_at(i);

    return p ? p->name : NULL;
}

const char *oct_pass_help(const char *name)
{
    const oct_pass *p = oct_pass_find(name);

    return p ? p->help : NULL;
}

const char *oct_pass_promise(const char *name)
{
    static const char *const words[] = {"bit-exact", "close", "lossy"};
    const oct_pass *p = oct_pass_find(name);

    return p ? words[p->promise] : NULL;
}
