/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a report as JSON; what is not known is left out. */
#include "report/data.h"

#include <string.h>

#include "report/json.h"

enum { MAX_BINS = 128 }; /* more than a histogram has pixels for on a phone */

/* --- figures --- */

static void put_pair(oct_str *out, const char *key, double before, double after)
{
    if (before < 0 || after < 0) return;
    oct_json_open(out, key, '[');
    oct_json_num(out, NULL, before);
    oct_json_num(out, NULL, after);
    oct_json_close(out, ']');
}

static void put_score(oct_str *out, const char *name, double before, double after)
{
    if (before < 0 || after < 0) return;
    oct_json_open(out, NULL, '[');
    oct_json_text(out, NULL, name);
    oct_json_num(out, NULL, before);
    oct_json_num(out, NULL, after);
    oct_json_close(out, ']');
}

static void put_accuracy(oct_str *out, const oct_report *r)
{
    const oct_eval_result *a = r->float_accuracy, *b = r->int8_accuracy;

    if (!a || !b) return;
    oct_json_open(out, "accuracy", '{');
    oct_json_text(out, "set", r->accuracy_set);
    oct_json_open(out, "rows", '[');
    if (r->is_classifier) {
        put_score(out, "top-1", a->top1, b->top1);
        put_score(out, "top-5", a->top5, b->top5);
    } else {
        put_score(out, "AP", a->box.ap, b->box.ap);
        put_score(out, "AP at IoU 0.50", a->box.ap50, b->box.ap50);
        put_score(out, "AP at IoU 0.75", a->box.ap75, b->box.ap75);
        put_score(out, "AP, small", a->box.ap_small, b->box.ap_small);
        put_score(out, "AP, medium", a->box.ap_medium, b->box.ap_medium);
        put_score(out, "AP, large", a->box.ap_large, b->box.ap_large);
        put_score(out, "AR, 100 boxes", a->box.ar100, b->box.ar100);
    }
    oct_json_close(out, ']');
    oct_json_close(out, '}');
}

static void put_summary(oct_str *out, const oct_quantize_summary *s)
{
    if (!s) return;
    oct_json_open(out, "summary", '{');
    oct_json_int(out, "layers", s->layers_total);
    oct_json_int(out, "integer", s->layers_quantized);
    oct_json_num(out, "macs", s->macs_quantized_share);
    oct_json_num(out, "weights", s->weights_quantized_share);
    oct_json_int(out, "images", s->images);
    oct_json_text(out, "tail", s->tail);
    oct_json_text(out, "bestFor", s->best_for);
    oct_json_close(out, '}');
}

/* --- analysis --- */

static void put_error(oct_str *out, const char *key, const oct_error *e)
{
    if (!(e->noise >= 0)) return;
    oct_json_open(out, key, '[');
    oct_json_num(out, NULL, e->noise);
    oct_json_num(out, NULL, e->cosine);
    oct_json_num(out, NULL, e->mse);
    oct_json_num(out, NULL, e->kl);
    oct_json_close(out, ']');
}

static void put_layers(oct_str *out, const oct_analysis *a, const oct_links *links)
{
    oct_analyzed_layer l = {.struct_size = sizeof(l)};

    oct_json_open(out, "layers", '[');
    for (int32_t i = 0; a && oct_analysis_layer(a, i, &l); i++) {
        oct_json_open(out, NULL, '{');
        oct_json_text(out, "name", l.name);
        oct_json_text(out, "op", l.op);
        if (l.reason) oct_json_text(out, "reason", l.reason);
        if (l.in_tail) oct_json_int(out, "tail", 1);
        if (l.weight_bits) oct_json_int(out, "weightBits", l.weight_bits);
        if (l.input_bits) oct_json_int(out, "inputBits", l.input_bits);
        if (l.macs) oct_json_int(out, "macs", l.macs);
        if (l.params) oct_json_int(out, "params", l.params);
        if (l.weight_noise >= 0) oct_json_num(out, "weightNoise", l.weight_noise);
        put_error(out, "alone", &l.alone);
        put_error(out, "all", &l.all);
        oct_links_put(links, l.name, out);
        oct_json_close(out, '}');
    }
    oct_json_close(out, ']');
}

/* Neighbouring bins together, until they are few. */
static void put_histogram(oct_str *out, const oct_analyzed_point *p)
{
    const int32_t join = (p->n_bins + MAX_BINS - 1) / MAX_BINS;

    if (!p->histogram || p->n_bins < 1) return;
    oct_json_open(out, "bins", '[');
    for (int32_t i = 0; i < p->n_bins; i += join) {
        int64_t sum = 0;

        for (int32_t k = i; k < OCT_MIN(i + join, p->n_bins); k++)
            sum += p->histogram[k];
        oct_json_int(out, NULL, sum);
    }
    oct_json_close(out, ']');
    oct_json_num(out, "binWidth",
                 (p->histogram_high - p->histogram_low) / (double)p->n_bins * (double)join);
    oct_json_num(out, "binLow", p->histogram_low);
    oct_json_num(out, "binHigh", p->histogram_high);
}

static void put_points(oct_str *out, const oct_analysis *a)
{
    oct_analyzed_point p = {.struct_size = sizeof(p)};

    oct_json_open(out, "points", '[');
    for (int32_t i = 0; a && oct_analysis_point(a, i, &p); i++) {
        oct_json_open(out, NULL, '{');
        oct_json_text(out, "value", p.value);
        oct_json_text(out, "layer", p.layer);
        oct_json_text(out, "type", p.type);
        oct_json_int(out, "scales", p.n_scales);
        oct_json_num(out, "scale", p.scale);
        oct_json_num(out, "zero", p.zero);
        oct_json_num(out, "min", p.min);
        oct_json_num(out, "max", p.max);
        oct_json_num(out, "low", p.low);
        oct_json_num(out, "high", p.high);
        oct_json_num(out, "clipped", p.clipped);
        oct_json_int(out, "levels", p.levels);
        oct_json_int(out, "used", p.used);
        oct_json_num(out, "kurtosis", p.kurtosis);
        oct_json_num(out, "spread", p.spread);
        oct_json_num(out, "noise", p.noise);
        put_histogram(out, &p);
        oct_json_close(out, '}');
    }
    oct_json_close(out, ']');
}

static void put_advice(oct_str *out, const oct_analysis *a)
{
    oct_advice v = {.struct_size = sizeof(v)};
    oct_error e = {0};
    const char *name;

    oct_json_open(out, "advice", '[');
    for (int32_t i = 0; a && oct_analysis_advice(a, i, &v); i++) {
        oct_json_open(out, NULL, '{');
        oct_json_text(out, "text", v.text);
        if (v.option && *v.option) oct_json_text(out, "option", v.option);
        if (v.layer) oct_json_text(out, "layer", v.layer);
        if (v.gain >= 0) oct_json_num(out, "gain", v.gain);
        oct_json_close(out, '}');
    }
    oct_json_close(out, ']');
    oct_json_open(out, "outputs", '[');
    for (int32_t i = 0; a && oct_analysis_output(a, i, &name, &e); i++) {
        oct_json_open(out, NULL, '{');
        oct_json_text(out, "name", name);
        put_error(out, "error", &e);
        oct_json_close(out, '}');
    }
    oct_json_close(out, ']');
    if (a) oct_json_int(out, "analyzedImages", oct_analysis_images(a));
}

/* --- the rest --- */

static void put_times(oct_str *out, const oct_report *r)
{
    oct_json_open(out, "times", '[');
    for (int32_t i = 0; r->times && i < r->n_times; i++) {
        const oct_report_time *t = &r->times[i];

        oct_json_open(out, NULL, '[');
        oct_json_text(out, NULL, t->layer);
        oct_json_num(out, NULL, t->float_ms);
        oct_json_num(out, NULL, t->int8_ms);
        oct_json_close(out, ']');
    }
    oct_json_close(out, ']');
}

static void put_image(oct_str *out, const char *key, const void *data, size_t size)
{
    const bool is_png = size > 4 && memcmp(data, "\x89PNG", 4) == 0;

    if (!data) return;
    oct_json_base64(out, key, is_png ? "data:image/png;base64," : "data:image/jpeg;base64,", data,
                    size);
}

static void put_pictures(oct_str *out, const oct_report *r)
{
    oct_json_open(out, "pictures", '[');
    for (int32_t i = 0; r->pictures && i < r->n_pictures; i++) {
        const oct_report_picture *p = &r->pictures[i];

        oct_json_open(out, NULL, '{');
        oct_json_text(out, "name", p->name);
        put_image(out, "float", p->float_data, p->float_size);
        put_image(out, "int8", p->int8_data, p->int8_size);
        oct_json_close(out, '}');
    }
    oct_json_close(out, ']');
}

void oct_report_data(const oct_report *r, const oct_links *links, const char *no_graph,
                     oct_str *out)
{
    oct_json_open(out, NULL, '{');
    oct_json_text(out, "title", r->title);
    oct_json_text(out, "floatPath", r->float_path);
    oct_json_text(out, "int8Path", r->int8_path);
    put_pair(out, "bytes", (double)r->float_bytes, (double)r->int8_bytes);
    put_pair(out, "ms", r->float_ms, r->int8_ms);
    if (r->threads > 0) oct_json_int(out, "threads", r->threads);
    put_accuracy(out, r);
    put_summary(out, r->summary);
    put_layers(out, r->analysis, links);
    put_points(out, r->analysis);
    put_advice(out, r->analysis);
    put_times(out, r);
    put_pictures(out, r);
    if (no_graph) oct_json_text(out, "noGraph", no_graph);
    oct_json_text(out, "recipe", r->recipe);
    oct_json_text(out, "command", r->command);
    oct_json_text(out, "machine", r->machine);
    oct_json_text(out, "versions", r->versions);
    oct_json_close(out, '}');
}
