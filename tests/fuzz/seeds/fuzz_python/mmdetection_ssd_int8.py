
optimizer = dict(type='SGD', lr=2e-5, momentum=0.9, weight_decay=5e-4)
total_epochs = 2

work_dir = './output'
load_from = 'http://models.example.org/ssd300_coco.pth'

find_unused_parameters = True

nncf_config = dict(
    input_info=dict(
        "sample_size": [1, 3, 1000, 600]
    ),
    compression=dict(
        algorithm='quantization',
        initializer=dict(
            range=dict(
                num_init_steps=10
            ),
            batchnorm_adaptation=dict(
                num_bn_adaptation_steps=30,
            )
        )
    ),
    log_dir=work_dir
)
nncf_compress_postprocessing = False
