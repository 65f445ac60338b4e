/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * Running networks: a plan is compiled once, and run by any number of threads.
 *
 * A plan is read-only after it is made. A run belongs to one thread; several runs may share a
 * plan, each with its own activations.
 */
#ifndef OCTET_PLAN_H
#define OCTET_PLAN_H

#include <octet/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct oct_plan oct_plan;
typedef struct oct_run oct_run;

/** How a graph is compiled. */

typedef struct oct_plan_options {
    size_t struct_size;  /**< set by oct_plan_options_init() */
    int32_t n_threads;   /**< of each run; 0: the context's (default) */
    int32_t plain;       /**< 1: plain kernels only, nothing fused (default 0) */
    int32_t as_is;       /**< 1: take the graph as it is, without simplifying it (default 0) */
    int32_t keep_all;    /**< 1: keep every named value, for hooks on inner values (default 0) */
    int64_t default_dim; /**< for a symbolic dimension with no bound size (default 1) */
    const char *keep;    /**< PCRE: keep only the values whose name matches; NULL: none */
    int32_t simulate;    /**< 1: compute quantized parts in float with fake quantization
                              (default 0: integers) */
} oct_plan_options;

OCT_API void oct_plan_options_init_sized(oct_plan_options *o, size_t struct_size);

static inline void oct_plan_options_init(oct_plan_options *o)
{
    oct_plan_options_init_sized(o, sizeof(*o));
}

/**
 * Compiles a graph for the shapes its inputs have (see oct_graph_set_input_shape()). The graph is
 * not changed and may be freed afterwards; its context must outlive the plan. `options` may be
 * NULL.
 */
OCT_API oct_status oct_plan_new(const oct_graph *g, const oct_plan_options *options,
                                oct_plan **out);
OCT_API void oct_plan_free(oct_plan *p); /**< accepts NULL; its runs must be freed before */

OCT_API int32_t oct_plan_n_inputs(const oct_plan *p);
OCT_API int32_t oct_plan_n_outputs(const oct_plan *p);
OCT_API const char *oct_plan_input_name(const oct_plan *p, int32_t i);
OCT_API const char *oct_plan_output_name(const oct_plan *p, int32_t i);
OCT_API size_t oct_plan_activation_size(const oct_plan *p); /**< bytes of one run's block */
OCT_API size_t oct_plan_input_size(const oct_plan *p);      /**< bytes of its inputs, beside it */
OCT_API int64_t oct_plan_macs(const oct_plan *p);

/** What an input or output of a plan is. */
typedef struct oct_io_info {
    size_t struct_size; /**< set by the caller: sizeof(oct_io_info) */
    const char *name;   /**< borrowed from the plan, as dims */
    int32_t dtype;      /**< oct_dtype */
    int32_t rank;       /**< -1: known only after a run */
    const int64_t *dims;
    size_t size; /**< bytes, dense; 0: known only after a run */
} oct_io_info;

/** Input or output i of a plan; returns 0 beyond the end. Any thread. */
OCT_API int32_t oct_plan_input_info(const oct_plan *p, int32_t i, oct_io_info *info);
OCT_API int32_t oct_plan_output_info(const oct_plan *p, int32_t i, oct_io_info *info);

/** The steps of a plan, in order: what the profiler reports on. Strings are the plan's. */
typedef struct oct_step_info {
    size_t struct_size;    /**< set by the caller: sizeof(oct_step_info) */
    const char *name;      /**< the node's name */
    const char *op;        /**< "Conv+SiLU", "reorder" */
    const char *kernel;    /**< the implementation: "brgconv:avx512_core", "plain" */
    int64_t macs;          /**< multiply-adds */
    int64_t bytes;         /**< read and written */
    int32_t is_plain;      /**< 1: a plain kernel, no fast one exists */
    int32_t is_reorder;    /**< 1: only moves data between layouts */
    int32_t is_integer;    /**< 1: works on codes of 8 bits */
    int32_t is_conversion; /**< 1: only converts between numbers and codes, or between codes */
    int64_t live_bytes;    /**< of activations that exist while it runs; 0: not known */
} oct_step_info;

OCT_API int32_t oct_plan_n_steps(const oct_plan *p);
OCT_API void oct_plan_step(const oct_plan *p, int32_t i, oct_step_info *info);

/**
 * Shape of operand or result k of step i: its rank, with the type and room for OCT_MAX_RANK dims
 * filled in (0 and nothing else: a number, or not given). -1: there are no more.
 */
OCT_API int32_t oct_plan_step_dims(const oct_plan *p, int32_t i, int32_t is_result, int32_t k,
                                   oct_dtype *dtype, int64_t *dims);

/**
 * One run's state: activations and outputs. Of one thread, that of `ctx`, which need not be the
 * plan's context; errors go to `ctx`. The plan must outlive it.
 */
OCT_API oct_status oct_run_new(oct_ctx *ctx, const oct_plan *p, oct_run **out);
OCT_API void oct_run_free(oct_run *r); /**< accepts NULL */

/**
 * The input's memory inside the run, dense, in the input's own layout: fill it in place. It lies
 * beside the activations, and no run changes it: what is to be run again need not be filled again.
 * Borrowed as long as the run lives. Memory bound to the input is unbound.
 */
OCT_API oct_status oct_run_input(oct_run *r, const char *name, void **data, size_t *size);

/**
 * Copies a tensor in; its shape and type must be those the plan was made for. Memory bound to the
 * input is unbound.
 */
OCT_API oct_status oct_run_set_input(oct_run *r, const char *name, const oct_tensor *t);

/**
 * Lets the input be read from the caller's memory, dense, in the network's own layout and type:
 * `size` bytes, as oct_plan_input_info() says. The memory must stay until it is unbound (`data`
 * NULL) or the run is freed, and must not change while oct_run_execute() works; between runs it
 * may. If `data` is aligned to 64 bytes nothing is copied; otherwise each run copies it once.
 * Binding another address costs about as much as making a small part of the run, the same one again
 * nothing. On the run's thread. After OCT_ERR_MEMORY the run can only be freed.
 */
OCT_API oct_status oct_run_bind_input(oct_run *r, const char *name, const void *data, size_t size);

/**
 * Has output i written to the caller's memory at the end of each run that succeeds, dense: a copy,
 * since outputs share memory with what is computed before them. `size` must be that of
 * oct_plan_output_info(); where that is known only after a run it is the room there is, and an
 * output that needs more is an error. `data` NULL unbinds. On the run's thread.
 */
OCT_API oct_status oct_run_bind_output(oct_run *r, int32_t i, void *data, size_t size);

/**
 * Runs. Allocates nothing, unless the network has shapes that depend on data. On the run's thread,
 * with the plan's number of threads.
 */
OCT_API oct_status oct_run_execute(oct_run *r);

/**
 * The only function of a run that any thread may call, also while another one executes it: with
 * `on` 1 oct_run_execute() ends before its next step with OCT_ERR_CANCELLED, and so does each later
 * one until `on` 0 takes it back. A step at work is finished first. Outputs of a cancelled run are
 * not to be read.
 */
OCT_API void oct_run_cancel(oct_run *r, int32_t on);

/** An output after oct_run_execute(), borrowed until the next run; dense, the network's layout. */
OCT_API oct_status oct_run_output(oct_run *r, int32_t i, const oct_tensor **out);

/**
 * Called after each step with a value kept by the options: seen in place, dense; borrowed during
 * the call, on the run's thread. What it returns ends the run unless it is OCT_OK.
 */
typedef oct_status (*oct_value_hook)(void *user, const char *name, const oct_tensor *value);

/** Called after each step with its times, on the run's thread. */
typedef void (*oct_step_hook)(void *user, int32_t step, int64_t start_ns, int64_t end_ns);

/** NULL takes a hook away; `user` must live as long as the hook is set. */
OCT_API void oct_run_set_value_hook(oct_run *r, oct_value_hook hook, void *user);
OCT_API void oct_run_set_step_hook(oct_run *r, oct_step_hook hook, void *user);

/** What the kernels of this process run on. Strings are borrowed for ever. */
typedef struct oct_machine_info {
    size_t struct_size;      /**< set by the caller: sizeof(oct_machine_info) */
    const char *float_set;   /**< instruction set of the float loops: "avx512", "avx2", "base" */
    const char *int8_set;    /**< of the integer loops: "avx512_vnni", "avx2", .. */
    int32_t int8_by_16_bits; /**< 1: no dot product of bytes; pairs of 16 bits instead, exact too */
    int32_t cores;           /**< physical cores this process may use */
    uint64_t memory_bytes;   /**< memory it may use */
    int32_t onednn_major, onednn_minor, onednn_patch; /**< version at run time */
    int32_t one_thread_loops; /**< 1: built without OpenMP: octet's own loops use one thread */
} oct_machine_info;

OCT_API void oct_machine(oct_machine_info *info);

#ifdef __cplusplus
}
#endif

#endif
