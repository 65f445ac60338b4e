/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a report as JSON; what is not known is left out. */
#include "report/data.h"

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

/* --- all of it --- */

void oct_report_data(const oct_report *r, const oct_links *links, oct_str *out)
{
    oct_json_open(out, NULL, '{');
    oct_json_text(out, "title", r->title);
    oct_json_text(out, "floatPath", r->float_path);
    oct_json_text(out, "int8Path", r->int8_path);
    put_pair(out, "bytes", (double)r->float_bytes, (double)r->int8_bytes);
    put_pair(out, "ms", r->float_ms, r->int8_ms);
    put_pair(out, "p10", r->float_p10_ms, r->int8_p10_ms);
    put_pair(out, "p90", r->float_p90_ms, r->int8_p90_ms);
    if (r->threads > 0) oct_json_int(out, "threads", r->threads);
    if (r->runs > 0) oct_json_int(out, "runs", r->runs);
    if (r->cpus > 0) oct_json_int(out, "cpus", r->cpus);
    if (r->cpu_load >= 0) oct_json_num(out, "load", r->cpu_load);
    oct_report_put_accuracy(out, r);
    oct_report_put_epochs(out, r);
    oct_report_put_pruned(out, r);
    oct_report_put_trials(out, r);
    put_summary(out, r->summary);
    put_layers(out, r->analysis, links);
    put_points(out, r->analysis);
    put_advice(out, r->analysis);
    oct_report_put_times(out, r);
    oct_report_put_pictures(out, r);
    oct_report_put_graph(out, r, links);
    oct_json_text(out, "recipe", r->recipe);
    oct_json_text(out, "command", r->command);
    oct_json_text(out, "machine", r->machine);
    oct_json_text(out, "versions", r->versions);
    oct_json_close(out, '}');
}
