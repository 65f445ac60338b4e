/* SPDX-License-Identifier: Apache-2.0 */
/* Training as JSON: loss and its parts, rates and accuracy of epochs; the networks it led to. */
#include <string.h>

#include "base/sized.h"
#include "report/data.h"
#include "report/json.h"

enum { MAX_PARTS = OCT_COUNT(((oct_report_epoch *)0)->parts) };

static int count_parts(const oct_report *r)
{
    int n = 0;

    while (r->loss_parts && n < MAX_PARTS && r->loss_parts[n])
        n++;
    return n;
}

/* [epoch, loss, rate, accuracy, other accuracy, seconds, parts..] */
static void put_epoch(oct_str *out, const oct_report_epoch *e, int n_parts)
{
    oct_json_open(out, NULL, '[');
    oct_json_int(out, NULL, e->epoch);
    oct_json_num(out, NULL, e->loss);
    oct_json_num(out, NULL, e->rate);
    oct_json_num(out, NULL, e->accuracy);
    oct_json_num(out, NULL, e->other_accuracy);
    oct_json_num(out, NULL, e->seconds);
    for (int i = 0; i < n_parts; i++)
        oct_json_num(out, NULL, e->parts[i]);
    oct_json_close(out, ']');
}

static void put_networks(oct_str *out, const oct_report *r)
{
    oct_json_open(out, "networks", '[');
    for (int32_t i = 0; r->networks && i < r->n_networks; i++) {
        oct_report_network n = {.accuracy = -1, .other_accuracy = -1};

        oct_sized_element(&n, r->networks, r->network_size, i, sizeof(n));
        oct_json_open(out, NULL, '{');
        oct_json_text(out, "name", n.name);
        oct_json_text(out, "file", n.file);
        if (n.accuracy >= 0) oct_json_num(out, "accuracy", n.accuracy);
        if (n.other_accuracy >= 0) oct_json_num(out, "other", n.other_accuracy);
        oct_json_num(out, "bytes", (double)n.bytes);
        oct_json_num(out, "ms", n.ms);
        oct_json_close(out, '}');
    }
    oct_json_close(out, ']');
}

void oct_report_put_epochs(oct_str *out, const oct_report *r)
{
    const int n_parts = count_parts(r);

    if (!r->epochs || r->n_epochs < 1) return;
    oct_json_open(out, "training", '{');
    oct_json_int(out, "planned", r->epochs_planned);
    oct_json_int(out, "best", r->best_epoch);
    oct_json_int(out, "classifier", r->is_classifier ? 1 : 0);
    oct_json_open(out, "parts", '[');
    for (int i = 0; i < n_parts; i++)
        oct_json_text(out, NULL, r->loss_parts[i]);
    oct_json_close(out, ']');
    oct_json_open(out, "epochs", '[');
    for (int32_t i = 0; i < r->n_epochs; i++) {
        oct_report_epoch e = {.accuracy = -1, .other_accuracy = -1};

        memcpy(&e, (const char *)r->epochs + (size_t)i * r->epoch_size,
               OCT_MIN(r->epoch_size, sizeof(e)));
        put_epoch(out, &e, n_parts);
    }
    oct_json_close(out, ']');
    put_networks(out, r);
    oct_json_close(out, '}');
}
