/* SPDX-License-Identifier: Apache-2.0 */
/* Accuracy as JSON: the figures, their noise, classes, precision by recall. */
#include "report/data.h"
#include "report/json.h"

enum { N_RECALLS = 101 }; /* of oct_box_eval_curve() */

static void put_score(oct_str *out, const char *name, double before, double after)
{
    if (before < 0 || after < 0) return;
    oct_json_open(out, NULL, '[');
    oct_json_text(out, NULL, name);
    oct_json_num(out, NULL, before);
    oct_json_num(out, NULL, after);
    oct_json_close(out, ']');
}

static void put_rows(oct_str *out, const oct_report *r)
{
    const oct_eval_result *a = r->float_accuracy, *b = r->int8_accuracy;

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
}

static void put_noise(oct_str *out, const oct_box_noise *n)
{
    if (!n || n->ap < 0 || n->other_ap < 0 || n->difference < 0) return;
    oct_json_open(out, "noise", '{');
    oct_json_num(out, "before", n->ap);
    oct_json_num(out, "after", n->other_ap);
    oct_json_num(out, "change", n->difference);
    oct_json_int(out, "images", n->images);
    oct_json_int(out, "resamples", n->resamples);
    oct_json_close(out, '}');
}

/* [name, boxes, AP, AP, AP50, AP50] of each class with boxes. */
static void put_classes(oct_str *out, const oct_box_eval *a, const oct_box_eval *b)
{
    const oct_dataset *truth = oct_box_eval_truth(a);

    oct_json_open(out, "classes", '[');
    for (int32_t i = 0; i < oct_dataset_n_categories(truth); i++) {
        double ap[2], ap50[2];

        oct_box_eval_category(a, i, &ap[0], &ap50[0]);
        oct_box_eval_category(b, i, &ap[1], &ap50[1]);
        if (ap[0] < 0 || ap[1] < 0) continue;
        oct_json_open(out, NULL, '[');
        oct_json_text(out, NULL, oct_dataset_category_name(truth, i));
        oct_json_int(out, NULL, oct_box_eval_labels(a, i));
        oct_json_num(out, NULL, ap[0]);
        oct_json_num(out, NULL, ap[1]);
        oct_json_num(out, NULL, ap50[0]);
        oct_json_num(out, NULL, ap50[1]);
        oct_json_close(out, ']');
    }
    oct_json_close(out, ']');
}

static void put_curve(oct_str *out, const double *curve)
{
    oct_json_open(out, NULL, '[');
    for (int i = 0; i < N_RECALLS; i++)
        oct_json_num(out, NULL, curve[i]);
    oct_json_close(out, ']');
}

/* Both networks' curves, the means of all classes. */
static void put_curves(oct_str *out, const char *key, const double *before, const double *after)
{
    if (!before || !after) return;
    oct_json_open(out, key, '[');
    put_curve(out, before);
    put_curve(out, after);
    oct_json_close(out, ']');
}

/* Without labels the float network is the truth: its figures are 1. */
static void put_repeat(oct_str *out, const oct_report *r)
{
    const oct_compare_result *c = r->repeat;
    const bool is_boxes = c->kind == OCT_COMPARED_BOXES;

    if (c->repeat < 0) return;
    oct_json_open(out, "accuracy", '{');
    oct_json_text(out, "set", r->accuracy_set);
    oct_json_open(out, "rows", '[');
    put_score(out, is_boxes ? "Detections repeated" : "Same best class", 1, c->repeat);
    if (is_boxes) put_score(out, "AP against them", c->ap >= 0 ? 1 : -1, c->ap);
    if (!is_boxes) put_score(out, "Shared among the best five", 1, c->top5);
    oct_json_close(out, ']');
    oct_json_close(out, '}');
}

void oct_report_put_accuracy(oct_str *out, const oct_report *r)
{
    const oct_box_eval *a = r->float_boxes, *b = r->int8_boxes;

    if (!r->float_accuracy || !r->int8_accuracy) {
        if (r->repeat) put_repeat(out, r);
        return;
    }
    oct_json_open(out, "accuracy", '{');
    oct_json_text(out, "set", r->accuracy_set);
    put_rows(out, r);
    if (!r->is_classifier) put_noise(out, r->noise);
    if (a && b && oct_box_eval_truth(a) == oct_box_eval_truth(b)) {
        put_classes(out, a, b);
        put_curves(out, "curve50", oct_box_eval_curve(a, -1), oct_box_eval_curve(b, -1));
        put_curves(out, "curve", oct_box_eval_mean_curve(a, -1), oct_box_eval_mean_curve(b, -1));
    }
    oct_json_close(out, '}');
}
