'''About it.'''
a = dict(x=-1e-3, y=[1, (2,), {}], z={'k': r'a\d', 3: "b\u00e9"}, **dict(u=True)); b = 0.02 / 8 + 3 * 4 // 5
work = work_dir
c = 'x' \
    "y" + 'z'
nncf_config = dict(compression=dict(algorithm='magnitude_sparsity', params=dict(schedule='multistep',
    multistep_sparsity_levels=[.1, .2], multistep_steps=[3])), log_dir=None)
