/* SPDX-License-Identifier: Apache-2.0 */
/* Trials of a search, as JSON. */
#include "base/sized.h"
#include "report/data.h"
#include "report/json.h"

void oct_report_put_trials(oct_str *out, const oct_report *r)
{
    if (!r->trials) return;
    oct_json_open(out, "tuning", '{');
    oct_json_text(out, "score", r->score_name ? r->score_name : "score");
    oct_json_open(out, "trials", '[');
    for (int32_t i = 0; i < r->n_trials; i++) {
        oct_report_trial t;

        oct_sized_element(&t, r->trials, r->trial_size, i, sizeof(t));
        oct_json_open(out, NULL, '{');
        oct_json_int(out, "id", t.id);
        oct_json_int(out, "round", t.round);
        oct_json_int(out, "images", t.images);
        oct_json_text(out, "settings", t.settings);
        oct_json_num(out, "score", t.score);
        oct_json_num(out, "ms", t.ms);
        oct_json_num(out, "bytes", (double)t.bytes);
        oct_json_int(out, "float", t.is_float);
        oct_json_int(out, "front", t.is_front);
        oct_json_int(out, "best", t.is_best);
        oct_json_close(out, '}');
    }
    oct_json_close(out, ']');
    oct_json_close(out, '}');
}
