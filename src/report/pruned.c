/* SPDX-License-Identifier: Apache-2.0 */
/* Layers before and after pruning, as JSON. */
#include "report/data.h"
#include "report/json.h"

static void put_pair(oct_str *out, const char *key, int64_t before, int64_t after)
{
    oct_json_open(out, key, '[');
    oct_json_num(out, NULL, (double)before);
    oct_json_num(out, NULL, (double)after);
    oct_json_close(out, ']');
}

void oct_report_put_pruned(oct_str *out, const oct_report *r)
{
    oct_prune_totals t = {.struct_size = sizeof(t)};
    oct_prune_layer l = {.struct_size = sizeof(l)};

    if (!r->pruned) return;
    oct_prune_get_totals(r->pruned, &t);
    oct_json_open(out, "pruned", '{');
    put_pair(out, "macs", t.macs, t.macs_left);
    put_pair(out, "params", t.params, t.params_left);
    put_pair(out, "channels", t.channels, t.channels_left);
    oct_json_open(out, "layers", '[');
    for (int32_t i = 0; oct_prune_get_layer(r->pruned, i, &l); i++) {
        oct_json_open(out, NULL, '{');
        oct_json_text(out, "name", l.name);
        oct_json_text(out, "op", l.op);
        put_pair(out, "channels", l.channels, l.channels_left);
        put_pair(out, "macs", l.macs, l.macs_left);
        if (l.why) oct_json_text(out, "why", l.why);
        oct_json_close(out, '}');
    }
    oct_json_close(out, ']');
    oct_json_close(out, '}');
}
