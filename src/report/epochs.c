/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs of training as JSON: the loss and its parts, rates, accuracy. */
#include <string.h>

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
    oct_json_close(out, '}');
}
