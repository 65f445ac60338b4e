/* SPDX-License-Identifier: Apache-2.0 */
/* Trace files. */
#include "cli/term/trace.h"

#include <stdlib.h>

#include "cli/term/json.h"

enum { PID = 1, TID = 1 };

void cli_trace_add(cli_trace *t, int32_t step, int32_t run, int64_t start_ns, int64_t end_ns)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 4096;
        t->events = cli_realloc(t->events, t->cap, sizeof(*t->events));
    }
    t->events[t->n++] = (cli_event){step, run, start_ns, end_ns};
}

void cli_trace_fini(cli_trace *t)
{
    free(t->events);
}

static cli_json *metadata(const char *what, const char *name)
{
    cli_json *j = cli_json_object(), *args = cli_json_object();

    cli_json_str(args, "name", name);
    cli_json_str(j, "ph", "M");
    cli_json_str(j, "name", what);
    cli_json_int(j, "pid", PID);
    cli_json_int(j, "tid", TID);
    cli_json_int(j, "ts", 0);
    cli_json_add(j, "args", args);
    return j;
}

/* Shapes and types of what a step reads, by the names that PyTorch's profiler has for them. */
static void shapes_json(cli_json *args, const oct_plan *plan, int32_t step, int32_t is_result)
{
    cli_json *all = cli_json_array(), *types = cli_json_array();
    int64_t dims[OCT_MAX_RANK];

    for (int32_t k = 0;; k++) {
        oct_dtype dtype = OCT_DTYPE_NONE;
        const int32_t rank = oct_plan_step_dims(plan, step, is_result, k, &dtype, dims);
        cli_json *shape;

        if (rank < 0) break;
        shape = cli_json_array();
        for (int32_t d = 0; d < rank; d++)
            cli_json_int(shape, NULL, dims[d]);
        cli_json_add(all, NULL, shape);
        cli_json_str(types, NULL, dtype == OCT_DTYPE_NONE ? "" : oct_dtype_name(dtype));
    }
    cli_json_add(args, is_result ? "Output Dims" : "Input Dims", all);
    cli_json_add(args, is_result ? "Output type" : "Input type", types);
}

/* Times count from the first event, in microseconds. */
static cli_json *event_json(const cli_event *e, const oct_plan *plan, int64_t zero_ns, int64_t id)
{
    cli_json *j = cli_json_object(), *args = cli_json_object();
    oct_step_info info = {.struct_size = sizeof(info)};

    cli_json_str(j, "ph", "X");
    if (e->step < 0) {
        /* TensorBoard finds the steps of a program, and loading, by these names and category. */
        char *name =
            e->step == -1
                ? cli_format("ProfilerStep#%d", (int)e->run)
                : cli_format("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");

        cli_json_str(j, "cat", "user_annotation");
        cli_json_str(j, "name", name);
        free(name);
    } else {
        oct_plan_step(plan, e->step, &info);
        cli_json_str(j, "cat", "cpu_op");
        cli_json_str(j, "name", *info.name ? info.name : info.op);
        cli_json_str(args, "operator", info.op);
        cli_json_str(args, "kernel", info.kernel);
        cli_json_int(args, "macs", info.macs);
        cli_json_int(args, "bytes", info.bytes);
        cli_json_int(args, "live_bytes", info.live_bytes);
        cli_json_int(args, "External id", id);
        shapes_json(args, plan, e->step, 0);
        shapes_json(args, plan, e->step, 1);
    }
    cli_json_int(j, "pid", PID);
    cli_json_int(j, "tid", TID);
    cli_json_round(j, "ts", (double)(e->start_ns - zero_ns) * 1e-3, 3);
    cli_json_round(j, "dur", (double)(e->end_ns - e->start_ns) * 1e-3, 3);
    cli_json_add(j, "args", args);
    return j;
}

/*
 * Memory of activations as the step begins, as PyTorch's profiler writes it: what came, or went,
 * since the step before, and how much there is. TensorBoard and Perfetto draw it.
 */
static cli_json *memory_json(const cli_event *e, int64_t live, int64_t change, int64_t zero_ns)
{
    cli_json *j = cli_json_object(), *args = cli_json_object();

    cli_json_int(args, "Total Allocated", live);
    cli_json_int(args, "Bytes", change);
    cli_json_int(args, "Addr", e->step);
    cli_json_int(args, "Device Type", 0);
    cli_json_int(args, "Device Id", -1);
    cli_json_str(j, "ph", "i");
    cli_json_str(j, "s", "t");
    cli_json_str(j, "cat", "cpu_instant_event");
    cli_json_str(j, "name", "[memory]");
    cli_json_int(j, "pid", PID);
    cli_json_int(j, "tid", TID);
    cli_json_round(j, "ts", (double)(e->start_ns - zero_ns) * 1e-3, 3);
    cli_json_add(j, "args", args);
    return j;
}

static void add_memory(cli_json *events, const cli_trace *t, const oct_plan *plan, int64_t zero_ns)
{
    int64_t before = 0;

    for (size_t i = 0; i < t->n; i++) {
        oct_step_info info = {.struct_size = sizeof(info)};

        if (t->events[i].step < 0) continue;
        oct_plan_step(plan, t->events[i].step, &info);
        if (info.live_bytes == before) continue;
        cli_json_add(
            events, NULL,
            memory_json(&t->events[i], info.live_bytes, info.live_bytes - before, zero_ns));
        before = info.live_bytes;
    }
}

oct_status cli_trace_save(cli *c, const cli_trace *t, const oct_plan *plan, const char *model,
                          const char *path)
{
    cli_json *j = cli_json_object(), *events = cli_json_array();
    int64_t zero = INT64_MAX;
    oct_status st;

    for (size_t i = 0; i < t->n; i++)
        if (t->events[i].start_ns < zero) zero = t->events[i].start_ns;
    cli_json_add(events, NULL, metadata("process_name", model));
    cli_json_add(events, NULL, metadata("thread_name", "octet"));
    for (size_t i = 0; i < t->n; i++)
        cli_json_add(events, NULL, event_json(&t->events[i], plan, zero, (int64_t)i + 1));
    add_memory(events, t, plan, zero);
    cli_json_str(j, "made_by", "octet"); /* cli_is_own() looks for it */
    cli_json_int(j, "schemaVersion", 1);
    cli_json_add(j, "deviceProperties", cli_json_array());
    cli_json_str(j, "displayTimeUnit", "ms");
    cli_json_add(j, "traceEvents", events);
    st = cli_json_save(c, j, path);
    cli_json_free(j);
    return st;
}
