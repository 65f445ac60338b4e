/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin with one operator, `Soften` of the domain "example": y = x / (1 + |x| * strength).
 *
 *     cc -shared -fPIC soften.c -o libsoften.so $(pkg-config --cflags octet)
 *     octet run MODEL --plugin ./libsoften.so --input x.npy
 */
#include <math.h>

#include <octet/octet.h>

OCT_PLUGIN_ABI_DEFINE

static oct_status shape(void *user, oct_op_call *call)
{
    (void)user;
    if (call->in_type[0].dtype != OCT_DTYPE_F32 && call->in_type[0].dtype != OCT_DTYPE_NONE) {
        call->error = "takes float32 only";
        return OCT_ERR_TYPE;
    }
    call->out_type[0] = call->in_type[0];
    return OCT_OK;
}

static oct_status run(void *user, oct_op_call *call)
{
    const float strength = oct_node_attr_f32(call->node, "strength", 1);
    const float *x = oct_tensor_data(call->in[0]);
    float *y = oct_tensor_mutable(call->out[0]);

    (void)user;
    for (int64_t i = 0, n = oct_tensor_len(call->in[0]); i < n; i++)
        y[i] = x[i] / (1 + fabsf(x[i]) * strength);
    return OCT_OK;
}

oct_status octet_plugin_init(oct_ctx *ctx)
{
    static const oct_op_def soften = {.struct_size = sizeof(soften),
                                      .domain = "example",
                                      .name = "Soften",
                                      .min_in = 1,
                                      .max_in = 1,
                                      .min_out = 1,
                                      .max_out = 1,
                                      .shape = shape,
                                      .run = run};

    return oct_register_op(ctx, &soften);
}
