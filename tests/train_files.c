/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of training, for comparing with other programs.
 * usage: train_files events DIR PICTURE WIDTH HEIGHT    scalars and a picture; prints the file's
 * name train_files copy IN.safetensors OUT.safetensors
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tensor/safetensors.h"
#include "train/events.h"

#define N_STEPS 10

static oct_status write_events(oct_ctx *ctx, char **args)
{
    oct_events *e = NULL;
    oct_file *picture = NULL;
    oct_status st;

    OCT_TRY(oct_file_map(ctx, args[1], &picture));
    st = oct_events_open(ctx, args[0], &e);
    if (!st) puts(oct_events_path(e));
    for (int step = 0; !st && step < N_STEPS; step++) {
        st = oct_events_scalar(e, "loss/total", 1000 * step, 1.0 / (step + 1));
        if (!st) st = oct_events_scalar(e, "rate", 1000 * step, -0.25 * step);
    }
    if (!st)
        st = oct_events_picture(e, "batch", 3, atoi(args[2]), atoi(args[3]), 3,
                                oct_file_data(picture), oct_file_size(picture));
    oct_events_close(e);
    oct_file_unref(picture);
    return st;
}

/* Through tensors where octet has the type, so that those are what is compared. */
static oct_status copy_all(oct_ctx *ctx, const oct_safetensors *s, const char *path)
{
    const int32_t n = oct_safetensors_count(s), n_notes = oct_safetensors_n_notes(s);
    oct_safetensors_entry *entry = oct_calloc(ctx, (size_t)n + 1, sizeof(*entry));
    oct_safetensors_text *note = oct_calloc(ctx, (size_t)n_notes + 1, sizeof(*note));
    oct_tensor **t = oct_calloc(ctx, (size_t)n + 1, sizeof(*t));
    oct_status st = entry && note && t ? OCT_OK : OCT_ERR_MEMORY;

    for (int32_t i = 0; !st && i < n; i++) {
        st = oct_safetensors_tensor(s, i, &t[i]);
        if (st) break;
        entry[i] = (oct_safetensors_entry){oct_safetensors_name(s, i), t[i]->type, t[i]->data};
    }
    for (int32_t i = 0; !st && i < n_notes; i++) {
        note[i].key = oct_safetensors_note_key(s, i);
        note[i].text = oct_safetensors_note(s, note[i].key);
    }
    if (!st) st = oct_safetensors_save(ctx, path, entry, n, note, n_notes);
    for (int32_t i = 0; t && i < n; i++)
        oct_tensor_unref(t[i]);
    oct_free(ctx, t);
    oct_free(ctx, note);
    oct_free(ctx, entry);
    return st;
}

static oct_status copy_tensors(oct_ctx *ctx, char **args)
{
    oct_safetensors *s = NULL;
    oct_status st;

    OCT_TRY(oct_safetensors_open(ctx, args[0], &s));
    st = copy_all(ctx, s, args[1]);
    oct_safetensors_close(s);
    return st;
}

int main(int argc, char **argv)
{
    oct_ctx *ctx = oct_ctx_new(NULL);
    oct_status st = OCT_ERR_ARG;

    if (!ctx) return 1;
    if (argc == 6 && !strcmp(argv[1], "events"))
        st = write_events(ctx, argv + 2);
    else if (argc == 4 && !strcmp(argv[1], "copy"))
        st = copy_tensors(ctx, argv + 2);
    else
        fprintf(stderr, "usage: train_files events|copy ...\n");
    if (st) fprintf(stderr, "%s\n", oct_ctx_error(ctx));
    oct_ctx_free(ctx);
    return st ? 1 : 0;
}
