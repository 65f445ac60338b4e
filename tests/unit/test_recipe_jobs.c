/* SPDX-License-Identifier: Apache-2.0 */
/* Compression jobs of NNCF and MMDetection: what each key becomes, and what is refused. */
#include "tests/test.h"

#include <octet/recipe.h>

#include "recipe/recipe.h"

typedef struct state {
    oct_ctx *ctx;
    oct_recipe *r;
} state;

static int recipe_setup(void **out)
{
    state *s = calloc(1, sizeof(*s));

    if (!s || !(s->ctx = oct_ctx_new(NULL)) || oct_recipe_new(s->ctx, &s->r)) return -1;
    *out = s;
    return 0;
}

static int recipe_teardown(void **out)
{
    state *s = *out;

    oct_recipe_free(s->r);
    oct_ctx_free(s->ctx);
    free(s);
    return 0;
}

static oct_status load(state *s, const char *name, const char *text)
{
    return oct_recipe_load_memory(s->r, name, text, strlen(text));
}

static bool has_note(const oct_recipe *r, const char *part)
{
    for (int32_t i = 0; oct_recipe_note(r, i); i++)
        if (strstr(oct_recipe_note(r, i), part)) return true;
    for (int32_t i = 0; oct_recipe_note(r, i); i++)
        print_error("note: %s\n", oct_recipe_note(r, i));
    return false;
}

/* The lines of a recipe that decide its numbers must be these, in this order. */
static void must_say(state *s, const char *lines)
{
    const char *text = NULL;

    assert_ok(s->ctx, oct_recipe_lines(s->r, &text));
    assert_string_equal(text, lines);
}

static void filter_pruning_has_every_key(void **out)
{
    state *s = *out;

    assert_ok(
        s->ctx,
        load(s, "j.json",
             "{\"input_info\": [{\"sample_size\": [4, 3, 300, 300], \"type\": \"float\"}],\n"
             " \"batch_size\": 4, \"epochs\": 30,\n"
             " \"optimizer\": {\"type\": \"Adam\", \"base_lr\": 1e-3},\n"
             " \"ignored_scopes\": [\"Net/Sequential[head]/Conv[1]/conv2d_0\"],\n"
             " \"compression\": {\"algorithm\": \"filter_pruning\", \"pruning_init\": 0.1,\n"
             "  \"initializer\": {\"batchnorm_adaptation\": {\"num_bn_adaptation_samples\": "
             "200}},\n"
             "  \"ignored_scopes\": \"{re}.*aux.*\", \"target_scopes\": [\"layer.1\"],\n"
             "  \"params\": {\"schedule\": \"exponential_with_bias\", "
             "\"pruning_flops_target\": 0.4,\n"
             "   \"num_init_steps\": 3, \"pruning_steps\": 10, \"filter_importance\": "
             "\"geometric_median\",\n"
             "   \"interlayer_ranking_type\": \"unweighted_ranking\", \"all_weights\": true,\n"
             "   \"prune_first_conv\": true, \"prune_downsample_convs\": false, "
             "\"prune_batch_norms\": true,\n"
             "   \"legr_params\": {\"generations\": 400}, \"save_ranking_coeffs_path\": "
             "\"x\"}}}\n"));
    must_say(s, "sample_size: '4x3x300x300'\n"
                "ignored_scope.names: [head.1]\n"
                "train.epochs: 30\n"
                "train.batch: 4\n"
                "train.optimizer: adam\n"
                "train.rate: 0.001\n"
                "qat.bn_adapt: 200\n"
                "prune.flops_target: 0.4\n"
                "prune.importance: geometric_median\n"
                "prune.global: true\n"
                "prune.keep: '(?:.*aux.*)|(?:^|[/.])head[/.]1(?:[/.]|$)'\n"
                "prune.only: '(?:^|[/.])layer[/.]1(?:[/.]|$)'\n"
                "prune.keep_first: false\n"
                "prune.keep_strided: true\n"
                "prune.schedule: exponential_with_bias\n"
                "prune.epochs: 10\n"
                "prune.start: 3\n"
                "prune.initial: 0.1\n"
                "compress: prune\n");
    assert_true(has_note(s->r, "left out: params.legr_params (of learned_ranking)"));
}

static void defaults_are_nncf_s(void **out)
{
    state *s = *out;

    assert_ok(s->ctx, load(s, "j.json",
                           "{\"compression\": [{\"algorithm\": \"filter_pruning\"},"
                           "{\"algorithm\": \"quantization\"}]}"));
    must_say(s, "prune.channels: 0.5\nprune.importance: l2\nprune.keep_first: true\n"
                "prune.keep_strided: true\nprune.schedule: exponential\nprune.epochs: "
                "100\ncompress: 'prune,quantize'\n");
}

static void sparsity_has_schedules(void **out)
{
    state *s = *out;

    assert_ok(s->ctx,
              load(s, "c.py",
                   "nncf_config = dict(compression=[dict(algorithm='magnitude_sparsity',\n"
                   "  sparsity_init=0.05, params=dict(schedule='multistep',\n"
                   "  multistep_sparsity_levels=[0.3, 0.5, 0.7], multistep_steps=[40, 80],\n"
                   "  sparsity_level_setting_mode='local'))])\n"));
    must_say(s, "sparsity.initial: 0.05\nsparsity.levels: '0:0.3,40:0.5,80:0.7'\n"
                "sparsity.local: true\ncompress: sparsity\n");
    oct_recipe_free(s->r);
    assert_ok(s->ctx, oct_recipe_new(s->ctx, &s->r));
    assert_ok(s->ctx, load(s, "j.json",
                           "{\"compression\": {\"algorithm\": \"magnitude_sparsity\", \"params\": "
                           "{\"sparsity_target\": 0.6, \"sparsity_target_epoch\": 5, \"power\": "
                           "2, \"sparsity_freeze_epoch\": 9}}}"));
    must_say(s, "sparsity.level: '0.6'\nsparsity.schedule: polynomial\nsparsity.epochs: 5\n"
                "sparsity.power: 2\ncompress: sparsity\n");
    oct_recipe_free(s->r);
    assert_ok(s->ctx, oct_recipe_new(s->ctx, &s->r));
    assert_ok(s->ctx, load(s, "j.json", "{\"compression\": {\"algorithm\": \"const_sparsity\"}}"));
    must_say(s, "sparsity.zeros: true\ncompress: sparsity\n");
}

static void accuracy_ends_training(void **out)
{
    state *s = *out;

    assert_ok(s->ctx,
              load(s, "j.json",
                   "{\"compression\": {\"algorithm\": \"quantization\"},\n"
                   "\"accuracy_aware_training\": {\"mode\": \"early_exit\", \"params\": "
                   "{\"maximal_absolute_accuracy_degradation\": 1.0, \"maximal_total_epochs\": "
                   "7}}}"));
    must_say(s, "train.epochs: 7\ntrain.max_drop: 0.01\ncompress: quantize\n");
}

/* The config of MMDetection as it is: what trains is taken over, its classes are not. */
static void mmdetection_is_read(void **out)
{
    state *s = *out;
    oct_recipe_train_job job = {.struct_size = sizeof(job)};

    assert_ok(s->ctx,
              load(s, "c.py",
                   "model = dict(type='SSD', backbone=dict(depth=16))\n"
                   "data_root = 'data/coco/'\n"
                   "data = dict(samples_per_gpu=8, workers_per_gpu=3,\n"
                   "    train=dict(type='RepeatDataset', times=5, dataset=dict(\n"
                   "        ann_file=data_root + 'train.json', img_prefix=data_root + 'train/')),\n"
                   "    val=dict(ann_file=data_root + 'val.json', img_prefix=data_root + 'val/'))\n"
                   "optimizer = dict(type='SGD', lr=0.02 / 8, momentum=0.9, weight_decay=5e-4)\n"
                   "optimizer_config = dict(grad_clip=dict(max_norm=35, norm_type=2))\n"
                   "lr_config = dict(policy='CosineAnnealing', min_lr=0)\n"
                   "total_epochs = 24\nseed = 5\nload_from = 'net.onnx'\n"
                   "resume_from = 'w/last.safetensors'\nwork_dir = './w'\n"
                   "nncf_config = dict(input_info=dict(sample_size=[1, 3, 300, 300]),\n"
                   "    compression=dict(algorithm='quantization', initializer=dict(\n"
                   "        range=dict(num_init_steps=10),\n"
                   "        batchnorm_adaptation=dict(num_bn_adaptation_steps=30))),\n"
                   "    log_dir=work_dir)\n"
                   "nncf_compress_postprocessing = True\n"));
    must_say(s, "sample_size: '1x3x300x300'\ndata.subset_size: 80\ntail: off\nseed: 5\n"
                "train.epochs: 24\ntrain.batch: 8\ntrain.optimizer: sgd\ntrain.rate: 0.0025\n"
                "train.momentum: 0.9\ntrain.weight_decay: 0.0005\ntrain.schedule: cosine\n"
                "train.clip_norm: 35\ntrain.loader_threads: 3\nqat.bn_adapt: 240\n"
                "compress: quantize\n");
    oct_recipe_get_train_job(s->r, &job);
    assert_string_equal(job.images[0], "data/coco/train/");
    assert_string_equal(job.annotations, "data/coco/train.json");
    assert_string_equal(job.eval_images, "data/coco/val/");
    assert_string_equal(job.resume, "w/last.safetensors");
    assert_string_equal(job.checkpoints, "./w");
    assert_string_equal(job.tensorboard, "./w");
    assert_true(has_note(s->r, "left out: model, data_root (of no meaning here)"));
    /* Without nncf_config nothing is compressed. */
    oct_recipe_free(s->r);
    assert_ok(s->ctx, oct_recipe_new(s->ctx, &s->r));
    assert_ok(s->ctx,
              load(s, "c.py", "total_epochs = 2\nnncf_config = dict()\nload_from = None\n"));
    must_say(s, "train.epochs: 2\n");
}

static void what_octet_cannot_do_is_named(void **out)
{
#define PRUNING(params)                                                                            \
    "nncf_config = dict(compression=dict(algorithm='filter_pruning', params=dict(" params ")))\n"
#define SPARSITY(params)                                                                           \
    "nncf_config = dict(compression=dict(algorithm='magnitude_sparsity', params=dict(" params      \
    ")))\n"
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"nncf_config = dict(compression=[dict(algorithm='quantization'),\n"
         "  dict(algorithm='binarization')])\n",
         "c.py:2:18: octet has no compression algorithm 'binarization'"},
        {"nncf_config = dict(compression=dict(algorithm='knowledge_distillation'))\n",
         "'knowledge_distillation'"},
        {"nncf_config = dict(compression=dict(algorithm='rb_sparsity'))\n", "'rb_sparsity'"},
        {PRUNING("interlayer_ranking_type='learned_ranking'"), "'learned_ranking'"},
        {PRUNING("prune_batch_norms=False"), "prune_batch_norms cannot be false"},
        {PRUNING("pruning_target=.5, pruning_flops_target=.4"), "not both"},
        {PRUNING("prunning_target=.5"), "'params' has no key 'prunning_target'"},
        {PRUNING("filter_importance='L3'"), "wants one of l1, l2"},
        {PRUNING("schedule='fast'"), "wants one of exponential"},
        {SPARSITY("schedule='adaptive'"), "octet has no sparsity schedule 'adaptive'"},
        {SPARSITY("schedule='multistep', multistep_sparsity_levels=[.1], multistep_steps=[1]"),
         "one more than"},
        {SPARSITY("weight_importance='abs'"), "octet has no weight_importance 'abs'"},
        {SPARSITY("concave=False"), "octet has no concave 'false'"},
        {"nncf_config = dict(compression=dict(algorithm='quantization',\n"
         "  initializer=dict(precision=dict(type='hawq'))))\n",
         "c.py:2:30: initializer.precision (hawq): octet does not search for bits"},
        {"nncf_config = dict(compression=dict(algorithm='quantization'),\n"
         "  accuracy_aware_training=dict(mode='adaptive_compression_level'))\n",
         "octet has no accuracy_aware_training in the mode 'adaptive_compression_level'"},
        {"resume_from = 'latest.pth'\n", "which is no checkpoint of octet's"},
        {"optimizer = dict(type='Lion')\n", "not 'lion'"},
        {"_base_ = 'x.py'\n", "needs the folder of the file"},
    };
    state *s = *out;

    for (size_t i = 0; i < OCT_COUNT(cases); i++) {
        const oct_status st = load(s, "c.py", cases[i].text);

        if (!st || !strstr(oct_ctx_error(s->ctx), cases[i].error))
            fail_msg("case %zu: %d '%s', want '%s'", i, (int)st, oct_ctx_error(s->ctx),
                     cases[i].error);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, recipe_setup, recipe_teardown)
    const struct CMUnitTest tests[] = {
        TEST(filter_pruning_has_every_key), TEST(defaults_are_nncf_s),
        TEST(sparsity_has_schedules),       TEST(accuracy_ends_training),
        TEST(mmdetection_is_read),          TEST(what_octet_cannot_do_is_named),
    };

    return run_test_group(tests);
}
