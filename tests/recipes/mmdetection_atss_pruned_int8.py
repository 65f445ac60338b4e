_base_ = './mmdetection_base.py'

input_size = 448
total_epochs = 3
data = dict(samples_per_gpu=2)
optimizer = dict(type='SGD', lr=0.00025, momentum=0.9, weight_decay=0.0005)
work_dir = './output/atss'
load_from = '../snapshots/atss.pth'

nncf_config = dict(
    input_info={'sample_size': [1, 3, input_size, input_size]},
    compression=[
        dict(
            algorithm='filter_pruning',
            pruning_init=0.05,
            params=dict(
                schedule='exponential',
                filter_importance='geometric_median',
                pruning_flops_target=0.3,
                pruning_steps=2,
                prune_first_conv=True,
                prune_downsample_convs=True),
            ignored_scopes=['{re}.*cls_pred.*']),
        dict(algorithm='quantization', initializer=dict(range=dict(num_init_samples=16))),
    ],
    log_dir=work_dir)
