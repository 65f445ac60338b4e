/* SPDX-License-Identifier: Apache-2.0 */
/* All results of octet analyze, as JSON. */
#include <stdlib.h>

#include "cli/command/analyze.h"
#include "cli/term/json.h"

static void measure(cli_json *to, const char *key, double v, bool is_known)
{
    if (is_known)
        cli_json_num(to, key, v);
    else
        cli_json_null(to, key);
}

static cli_json *error_json(const oct_error *e)
{
    cli_json *j = cli_json_object();
    const bool known = e->noise >= 0;

    measure(j, "noise", e->noise, known);
    measure(j, "cosine", e->cosine, known);
    measure(j, "mse", e->mse, known);
    measure(j, "kl", e->kl, known);
    return j;
}

static cli_json *layer_json(const oct_analyzed_layer *l)
{
    cli_json *j = cli_json_object();

    cli_json_str(j, "name", l->name);
    cli_json_str(j, "operator", l->op);
    cli_json_str(j, "float_reason", l->reason);
    cli_json_bool(j, "in_tail", l->in_tail != 0);
    cli_json_int(j, "weight_bits", l->weight_bits);
    cli_json_int(j, "input_bits", l->input_bits);
    cli_json_int(j, "macs", l->macs);
    cli_json_int(j, "params", l->params);
    measure(j, "weight_noise", l->weight_noise, l->weight_noise >= 0);
    cli_json_add(j, "alone", error_json(&l->alone));
    cli_json_add(j, "all", error_json(&l->all));
    return j;
}

static cli_json *point_json(const oct_analyzed_point *p)
{
    cli_json *j = cli_json_object(), *bins = cli_json_array();

    cli_json_str(j, "value", p->value);
    cli_json_str(j, "layer", p->layer);
    cli_json_str(j, "type", p->type);
    cli_json_int(j, "scales", p->n_scales);
    cli_json_num(j, "scale", p->scale);
    cli_json_num(j, "zero", p->zero);
    cli_json_num(j, "min", p->min);
    cli_json_num(j, "max", p->max);
    cli_json_num(j, "low", p->low);
    cli_json_num(j, "high", p->high);
    cli_json_num(j, "clipped", p->clipped);
    cli_json_int(j, "levels", p->levels);
    cli_json_int(j, "used", p->used);
    cli_json_num(j, "kurtosis", p->kurtosis);
    cli_json_num(j, "spread", p->spread);
    cli_json_num(j, "noise", p->noise);
    cli_json_num(j, "histogram_low", p->histogram_low);
    cli_json_num(j, "histogram_high", p->histogram_high);
    for (int32_t i = 0; i < p->n_bins; i++)
        cli_json_int(bins, NULL, p->histogram[i]);
    cli_json_add(j, "histogram", bins);
    return j;
}

static void add_advice(cli_json *to, const oct_analysis *r)
{
    cli_json *list = cli_json_array();
    oct_advice a = {.struct_size = sizeof(a)};

    for (int32_t i = 0; oct_analysis_advice(r, i, &a); i++) {
        cli_json *j = cli_json_object();

        cli_json_str(j, "text", a.text);
        cli_json_str(j, "option", a.option);
        cli_json_str(j, "layer", a.layer);
        measure(j, "gain", a.gain, a.gain >= 0);
        cli_json_add(list, NULL, j);
    }
    cli_json_add(to, "advice", list);
}

static void add_outputs(cli_json *to, const oct_analysis *r)
{
    cli_json *list = cli_json_array();
    const char *name = NULL;
    oct_error e;

    for (int32_t i = 0; oct_analysis_output(r, i, &name, &e); i++) {
        cli_json *j = cli_json_object();

        cli_json_str(j, "name", name);
        cli_json_add(j, "error", error_json(&e));
        cli_json_add(list, NULL, j);
    }
    cli_json_add(to, "outputs", list);
}

oct_status cli_analyze_print_json(cli *c, const cli_analyze_view *v)
{
    cli_json *j = cli_json_object(), *layers = cli_json_array(), *points = cli_json_array();
    oct_analyzed_point p = {.struct_size = sizeof(p)};
    int32_t n;
    cli_analyze_row *rows = cli_analyze_sort(v, &n);
    oct_status st;

    cli_json_str(j, "model", v->model);
    cli_json_str(j, "quantized", v->quantized);
    cli_json_int(j, "images", oct_analysis_images(v->result));
    cli_json_round(j, "layerwise_seconds", oct_analysis_layerwise_seconds(v->result), 4);
    add_outputs(j, v->result);
    for (int32_t i = 0; i < n; i++)
        cli_json_add(layers, NULL, layer_json(&rows[i].layer));
    cli_json_add(j, "layers", layers);
    for (int32_t i = 0; oct_analysis_point(v->result, i, &p); i++)
        cli_json_add(points, NULL, point_json(&p));
    cli_json_add(j, "points", points);
    add_advice(j, v->result);
    st = cli_json_print(c, j);
    cli_json_free(j);
    free(rows);
    return st;
}
