/* SPDX-License-Identifier: Apache-2.0 */
/* Accuracy of octet quantize: before and after, and under a promise (--max-drop and its like). */
#include <math.h>
#include <string.h>

#include "cli/command/quantize.h"
#include "cli/command/score.h"
#include "cli/term/table.h"

/* --- before and after --- */

static oct_status evaluate(const cli_quantize_work *w, const oct_graph *g, oct_eval_result *result,
                           oct_box_eval **eval)
{
    cli *c = w->c;
    oct_eval_options o;
    oct_status st;

    oct_eval_options_init(&o);
    o.family = w->options->family;
    o.preprocess = w->options->preprocess;
    o.names = w->names;
    o.loader_threads = oct_ctx_threads(c->ctx);
    result->struct_size = sizeof(*result);
    c->model = g == w->g ? w->settings->model : w->settings->output;
    c->progress_of = g == w->g ? "float" : "INT8";
    st = oct_eval_run(g, w->truth, &o, result, eval);
    cli_progress_end(c);
    c->progress_of = NULL;
    return st;
}

/* What is promised with labels was measured by the search. */
oct_status cli_quantize_accuracy(const cli_quantize_work *w, const oct_quantized *q,
                                 cli_quantize_report *r)
{
    oct_status st = OCT_OK;

    if (!w->truth || !w->settings->eval) return OCT_OK;
    if (!r->has_accuracy) {
        st = evaluate(w, w->g, &r->before, &r->boxes[0]);
        if (!st) st = evaluate(w, oct_quantized_graph(q), &r->after, &r->boxes[1]);
    }
    if (st) return st;
    r->is_classifier = r->boxes[0] == NULL;
    if (!r->is_classifier) st = cli_score_noise(r->boxes[0], r->boxes[1], &r->noise);
    r->has_accuracy = !st;
    if (!st && oct_quantized_unaligned(q)) {
        oct_box_eval *boxes = NULL;

        st = evaluate(w, oct_quantized_unaligned(q), &r->unaligned, &boxes);
        r->has_unaligned = !st;
        oct_box_eval_free(boxes);
    }
    return st;
}

/* --- promises --- */

bool cli_promise_wanted(const oct_recipe_job *s)
{
    return s->max_drop > 0 || s->min_repeat > 0 || s->max_noise > 0;
}

oct_status cli_promise_check(cli *c, const oct_recipe_job *s)
{
    const int n = (s->max_drop > 0) + (s->min_repeat > 0) + (s->max_noise > 0);

    if (n > 1)
        return cli_fail(c, OCT_ERR_ARG,
                        "give one of --max-drop, --min-repeat and --max-noise: a file keeps one "
                        "promise");
    if (s->max_drop > 0 && !s->eval)
        return cli_fail(c, OCT_ERR_ARG,
                        "option --max-drop needs labels: --annotations FILE (and --eval-images "
                        "DIR); without any, --min-repeat 0.98 promises to repeat the float "
                        "network's own detections");
    if (s->drop_type && !(s->max_drop > 0))
        return cli_fail(c, OCT_ERR_ARG, "option --drop-type needs --max-drop");
    return OCT_OK;
}

/* What the search's callbacks share. */
typedef struct promise {
    const cli_quantize_work *w;
    cli_quantize_report *r;
    oct_eval_result last;
    oct_box_eval *last_boxes;
    const char *name; /* of what is measured */
} promise;

/* The last network that was kept is the one whose figures are reported. */
static oct_status measure_labels(void *user, const oct_graph *g, double *score)
{
    promise *p = user;
    const bool is_float = g == p->w->g;
    oct_eval_result *to = is_float ? &p->r->before : &p->last;
    oct_box_eval **boxes = is_float ? &p->r->boxes[0] : &p->last_boxes;
    oct_status st;

    oct_box_eval_free(*boxes);
    *boxes = NULL;
    if ((st = evaluate(p->w, g, to, boxes))) return st;
    *score = *boxes ? to->box.ap : to->top1;
    if (is_float) p->name = *boxes ? "AP" : "top-1";
    return *score >= 0 ? OCT_OK
                       : cli_fail(p->w->c, OCT_ERR_ARG, "there is nothing to score: no labels");
}

static void say_step(const cli *c, const char *name, const oct_control_step *s)
{
    char bytes[CLI_UNIT_SIZE], what[160] = "as it is";

    if (s->move != OCT_CONTROL_START)
        (void)snprintf(what, sizeof(what), "%s %.80s%s",
                       s->move == OCT_CONTROL_RESTORE ? "float" : "back to integers",
                       s->layer ? s->layer : "?", s->changed > 1 ? " and others" : "");
    cli_note(c, "%s: %s %.4g, %s; %d layer%s float for it, %.1f%% of the MACs integer, weights %s",
             what, name, s->score, s->holds ? "kept" : "not kept", (int)s->restored,
             s->restored == 1 ? "" : "s", s->macs_quantized_share * 100,
             cli_bytes((double)s->weight_bytes, bytes));
}

static void on_step(void *user, const oct_control_step *s)
{
    promise *p = user;

    cli_progress_end(p->w->c);
    say_step(p->w->c, p->name, s);
    if (!s->is_kept || !p->last.struct_size) return;
    oct_box_eval_free(p->r->boxes[1]);
    p->r->boxes[1] = p->last_boxes;
    p->r->after = p->last;
    p->last_boxes = NULL;
}

static oct_status search(promise *p, oct_control_options *o, oct_quantized **out)
{
    const cli_quantize_work *w = p->w;
    oct_status st;

    o->name = p->name;
    o->on_step = on_step;
    o->on_step_user = p;
    o->ranking_images = w->settings->ranking_subset_size;
    o->max_scores = w->settings->max_num_iterations;
    st = oct_quantize_controlled(w->g, w->images, w->options, o, out, &p->r->control);
    cli_progress_end(w->c);
    return st;
}

/* Without labels: against what the float network finds. */
static oct_status keep_repeat(promise *p, oct_control_options *o, oct_quantized **out)
{
    const cli_quantize_work *w = p->w;
    oct_comparison *of = NULL;
    oct_compare_options co;
    oct_status st;

    oct_compare_options_init(&co);
    co.family = w->options->family;
    co.preprocess = w->options->preprocess;
    if ((st = oct_comparison_new(w->g, w->truth ? w->truth : w->images, &co, &of))) return st;
    o->promise = w->settings->min_repeat > 0 ? OCT_PROMISE_LEAST : OCT_PROMISE_MOST;
    o->limit = w->settings->min_repeat > 0 ? w->settings->min_repeat : w->settings->max_noise;
    o->measure = w->settings->min_repeat > 0 ? oct_measure_repeat : oct_measure_noise;
    o->user = of;
    p->name = w->settings->min_repeat > 0 ? "repeat" : "noise";
    st = search(p, o, out);
    oct_comparison_free(of);
    return st;
}

static oct_status keep_accuracy(promise *p, oct_control_options *o, oct_quantized **out)
{
    const oct_recipe_job *s = p->w->settings;
    oct_status st;

    o->promise = s->drop_type && strcmp(s->drop_type, "relative") == 0 ? OCT_PROMISE_RELATIVE_DROP
                                                                       : OCT_PROMISE_DROP;
    o->limit = s->max_drop;
    o->measure = measure_labels;
    o->user = p;
    p->name = p->w->is_classifier ? "top-1" : "AP";
    st = search(p, o, out);
    p->r->has_accuracy = !st;
    oct_box_eval_free(p->last_boxes);
    return st;
}

oct_status cli_promise_quantize(const cli_quantize_work *w, cli_quantize_report *r,
                                oct_quantized **out)
{
    promise p = {.w = w, .r = r};
    oct_control_options o;

    oct_control_options_init(&o);
    return w->settings->max_drop > 0 ? keep_accuracy(&p, &o, out) : keep_repeat(&p, &o, out);
}

/* --- the summary --- */

void cli_promise_print(const cli_quantize_report *r, int column)
{
    oct_control_summary s = {.struct_size = sizeof(s)};
    char text[256];

    if (!r->control) return;
    oct_control_get_summary(r->control, &s);
    cli_fact(stdout, column, "promise", "%s",
             oct_graph_promise_text(oct_quantized_graph(r->q), text, sizeof(text)));
    cli_fact(stdout, column, "", "without it %.4g; %d networks measured in %.0f s", s.first_score,
             (int)s.scores, s.seconds);
    for (int32_t i = 0; i < s.restored; i++)
        cli_fact(stdout, column, i ? "" : "restored", "%s", oct_control_restored(r->control, i));
}

oct_status cli_promise_verdict(const cli_quantize_report *r)
{
    oct_control_summary s = {.struct_size = sizeof(s)};

    if (!r->control) return OCT_OK;
    oct_control_get_summary(r->control, &s);
    if (s.holds) return OCT_OK;
    return cli_fail(r->c, OCT_ERR_STATE,
                    "the promise cannot be kept: %.4g is the best of %d networks, %.4g was asked "
                    "for; %s is that network",
                    s.score, (int)s.scores, s.need, r->output);
}

static cli_json *steps_json(const oct_control *c)
{
    static const char *const moves[] = {"start", "restore", "give back"};
    cli_json *list = cli_json_array();
    oct_control_step s = {.struct_size = sizeof(s)};

    for (int32_t i = 0; oct_control_step_at(c, i, &s); i++) {
        cli_json *k = cli_json_object();

        cli_json_str(k, "move", moves[s.move]);
        cli_json_str(k, "layer", s.layer);
        cli_json_int(k, "changed", s.changed);
        cli_json_int(k, "restored", s.restored);
        cli_json_num(k, "score", s.score);
        cli_json_bool(k, "holds", s.holds);
        cli_json_bool(k, "kept", s.is_kept);
        cli_json_num(k, "macs_quantized_share", s.macs_quantized_share);
        cli_json_int(k, "weight_bytes", s.weight_bytes);
        cli_json_add(list, NULL, k);
    }
    return list;
}

void cli_promise_json(cli_json *j, const cli_quantize_report *r)
{
    oct_control_summary s = {.struct_size = sizeof(s)};
    cli_json *to, *names;

    if (!r->control) {
        cli_json_null(j, "promise");
        return;
    }
    oct_control_get_summary(r->control, &s);
    to = cli_json_object();
    names = cli_json_array();
    cli_promise_file_json(to, oct_quantized_graph(r->q));
    cli_json_num(to, "first", s.first_score);
    for (int32_t i = 0; i < s.restored; i++)
        cli_json_str(names, NULL, oct_control_restored(r->control, i));
    cli_json_add(to, "layers", names);
    cli_json_int(to, "scores", s.scores);
    cli_json_round(to, "seconds", s.seconds, 2);
    cli_json_add(to, "steps", steps_json(r->control));
    cli_json_add(j, "promise", to);
}

void cli_promise_file_json(cli_json *j, const oct_graph *g)
{
    static const char *const kinds[] = {"drop", "relative drop", "least", "most"};
    oct_promise p = {.struct_size = sizeof(p)};

    if (!oct_graph_promise(g, &p)) return;
    cli_json_str(j, "kind", kinds[p.kind]);
    cli_json_num(j, "limit", p.limit);
    cli_json_str(j, "measure", p.measure);
    cli_json_num(j, "float", p.float_score);
    cli_json_num(j, "score", p.score);
    cli_json_num(j, "need", p.need);
    cli_json_bool(j, "held", p.held);
    cli_json_int(j, "restored", p.restored);
}
