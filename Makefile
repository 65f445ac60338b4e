# SPDX-License-Identifier: Apache-2.0
# The commands people type. Meson does the work; this file sets it up and installs what is missing.

BUILD ?= build
# Where to install; once given it is remembered. /usr/local at first.
PREFIX ?=
DESTDIR ?=
THREADS ?= 2
FUZZ_SECONDS ?= 60

# Optimised, asserts off, symbols kept for profilers.
RELEASE = -Doptimization=3 -Ddebug=true -Db_ndebug=true
MESON_FLAGS ?=

.PHONY: all test test-unit abi demo accuracy agreement promise bench-peers check-losses check-peers format format-check coverage fuzz \
	configure install uninstall dist deb check-deb clean help wheel test-python

all: configure
	@ninja -C $(BUILD)

configure:
	@tools/configure $(BUILD) "$(PREFIX)" $(RELEASE) $(MESON_FLAGS)

test: all
	@meson test -C $(BUILD) --print-errorlogs

test-unit: all
	@meson test -C $(BUILD) --print-errorlogs --suite unit --suite check

# Records what the public headers promise to programs; the test 'abi' compares with it.
abi: packages-ci
	@tools/check-abi --update include tests/abi/liboctet.abi

packages-%:
	@tools/install-packages build test $*

# Without the tests, so that a first look is quick.
demo: configure
	@ninja -C $(BUILD) octet tools/picture_grid
	@QAT=$(QAT) tools/demo $(BUILD)

PEERS = .venv-peers
PEERS_PYTHON = $(PEERS)/bin/python

$(PEERS)/ready: tests/peers/requirements.txt
	@tools/install-packages peers
	@python3 -m venv $(PEERS)
	@$(PEERS)/bin/pip install -q --disable-pip-version-check -r $<
	@touch $@

# PyTorch is large: in an environment of its own, made on request. check-peers uses it if it is there.
LOSS_PEERS = .venv-losses
LOSS_PEERS_PYTHON = $(if $(wildcard $(LOSS_PEERS)/ready),$(LOSS_PEERS),$(PEERS))/bin/python

$(LOSS_PEERS)/ready: tests/peers/requirements-losses.txt
	@tools/install-packages peers
	@python3 -m venv $(LOSS_PEERS)
	@$(LOSS_PEERS)/bin/pip install -q --disable-pip-version-check -r $<
	@$(LOSS_PEERS)/bin/pip install -q --disable-pip-version-check --no-deps super-gradients==3.7.1
	@touch $@

check-losses: all $(LOSS_PEERS)/ready
	@$(LOSS_PEERS)/bin/python tests/peers/check_losses.py $(BUILD)/tests/loss_values
	@$(LOSS_PEERS)/bin/python tests/peers/check_yolox_loss.py $(BUILD)/tests/loss_values $(BUILD)/octet

# PT2=all: all networks of torchvision and timm that are known to be read, not only the quick ones.
check-peers: all $(PEERS)/ready
	@status=0; \
	$(PEERS_PYTHON) tests/peers/check_coco.py $(BUILD)/octet $(QUICK) || status=1; \
	$(PEERS_PYTHON) tests/peers/check_models.py $(BUILD)/octet || status=1; \
	$(PEERS_PYTHON) tests/peers/check_qdq.py $(BUILD)/octet || status=1; \
	$(PEERS_PYTHON) tests/peers/check_qoperator.py $(BUILD)/octet || status=1; \
	$(PEERS_PYTHON) tests/peers/check_operators.py $(BUILD)/octet || status=1; \
	$(PEERS_PYTHON) tests/peers/check_qat.py $(BUILD)/octet || status=1; \
	$(PEERS_PYTHON) tests/peers/check_pruned.py $(BUILD)/octet || status=1; \
	$(PEERS_PYTHON) tests/peers/check_preprocess.py $(BUILD)/tests/preprocess || status=1; \
	$(PEERS_PYTHON) tests/peers/check_safetensors.py $(BUILD)/tests/train_files || status=1; \
	$(LOSS_PEERS_PYTHON) tests/peers/check_losses.py $(BUILD)/tests/loss_values || status=1; \
	$(LOSS_PEERS_PYTHON) tests/peers/check_yolox_loss.py $(BUILD)/tests/loss_values \
		$(BUILD)/octet || status=1; \
	$(LOSS_PEERS_PYTHON) tests/peers/check_pt2.py $(BUILD)/octet $(if $(PT2),--$(PT2)) || status=1; \
	$(PEERS_PYTHON) tests/peers/check_simplify.py $(BUILD)/octet || status=1; \
	$(PEERS_PYTHON) tests/peers/check_tensorboard.py $(BUILD)/tests/train_files || status=1; \
	$(PEERS_PYTHON) tests/peers/check_quantized.py $(BUILD)/octet $(QUICK) || status=1; \
	$(PEERS_PYTHON) tests/peers/check_openvino.py $(BUILD)/octet $(QUICK) || status=1; \
	$(PEERS_PYTHON) tests/peers/check_attach.py $(BUILD)/octet || status=1; \
	$(PEERS_PYTHON) tests/peers/check_random.py $(BUILD)/tests/random_graphs \
		--count $(if $(QUICK),100,2500) || status=1; \
	exit $$status

# BENCH=train: steps of training beside PyTorch instead.
ifeq ($(BENCH),train)
bench-peers: all $(LOSS_PEERS)/ready
	@ninja -C $(BUILD) tests/bench_train >/dev/null
	@$(LOSS_PEERS)/bin/python tests/peers/bench_train.py $(BUILD)/tests/bench_train \
		--threads $(THREADS) --json $(BUILD)/bench-train.json
else
bench-peers: all $(PEERS)/ready
	@$(PEERS_PYTHON) tests/peers/bench_peers.py $(BUILD)/octet --threads $(THREADS) \
		--json $(BUILD)/bench-peers.json --figures docs/figures.tsv
	@$(PEERS_PYTHON) tests/peers/bench_quantize.py $(BUILD)/octet --threads $(THREADS) \
		--json $(BUILD)/bench-quantize.json
endif

# ACCURACY: further options, as in ACCURACY='--targets ort --speed'. Figures of the whole set of pictures
# go to docs/figures.tsv, and from there into the pages.
accuracy: all $(PEERS)/ready
	@$(PEERS_PYTHON) tests/peers/accuracy.py $(BUILD)/octet --threads $(THREADS) \
		--json $(BUILD)/accuracy.json --figures docs/figures.tsv $(QUICK) $(ACCURACY)
	@tools/figures --fill

# What --max-drop .002 costs each detector on each target: hours. PROMISE: further options, as --targets ort.
promise: all $(PEERS)/ready
	@$(PEERS_PYTHON) tests/peers/promise.py $(BUILD)/octet --threads $(THREADS) \
		--json $(BUILD)/promise.json $(PROMISE)

# OTHERS: builds of octet with another setting, as in OTHERS=build-other/octet. AGREEMENT: further options.
agreement: all $(PEERS)/ready
	@$(PEERS_PYTHON) tests/peers/agreement.py $(BUILD)/octet $(OTHERS) --threads $(THREADS) $(AGREEMENT)

# The Python package: what builds it and what tests it are in environments of their own.
WHEEL = .venv-wheel
WHEEL_TEST = .venv-python

$(WHEEL)/ready: python/requirements.txt
	@tools/install-packages build python
	@python3 -m venv $(WHEEL)
	@$(WHEEL)/bin/python -m pip install -q --disable-pip-version-check -r $<
	@touch $@

$(WHEEL_TEST)/ready: python/tests/requirements.txt
	@tools/install-packages python
	@python3 -m venv $(WHEEL_TEST)
	@$(WHEEL_TEST)/bin/python -m pip install -q --disable-pip-version-check -r $<
	@touch $@

wheel: $(WHEEL)/ready
	@tools/wheel $(WHEEL)/bin/python $(BUILD)-wheel $(MESON_FLAGS)

# In a clean environment: the wheel, numpy and pytest; the program only to compare bytes with.
# PYTEST: further options, as in PYTEST='-k session'.
test-python: configure wheel $(WHEEL_TEST)/ready
	@ninja -C $(BUILD) octet
	@$(WHEEL_TEST)/bin/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall \
		$(BUILD)-wheel/dist/*.whl
	@OCTET_PROGRAM=$(abspath $(BUILD)/octet) OCTET_WHEEL=$$(ls $(CURDIR)/$(BUILD)-wheel/dist/*.whl) \
		OCTET_TORCH=$(if $(wildcard $(LOSS_PEERS)/ready),$(abspath $(LOSS_PEERS)/bin/python)) \
		PYTHONPATH= $(WHEEL_TEST)/bin/pytest -q -p no:cacheprovider $(PYTEST) python/tests

C_FILES = find examples include python src tests tools -name '*.c' -o -name '*.h'

format: packages-ci
	@$(C_FILES) | xargs clang-format -i

format-check: packages-ci
	@$(C_FILES) | xargs clang-format --dry-run -Werror

coverage: packages-ci
	@tools/coverage $(BUILD)-coverage

fuzz: packages-ci
	@tools/fuzz $(BUILD)-fuzz $(FUZZ_SECONDS)

install: all
	@tools/install-files $(BUILD) "$(DESTDIR)"

uninstall: configure
	@tools/install-files --remove $(BUILD) "$(DESTDIR)"

# The tarball of the last commit, Debian packages made from it, and a clean Debian that takes them.
dist:
	@tools/dist $(BUILD)-dist

deb:
	@tools/install-packages build test deb
	@tools/deb $(BUILD)-deb

check-deb: deb
	@tools/install-packages root
	@tools/check-deb $(BUILD)-deb $(if $(wildcard $(BUILD)/octet),$(BUILD))

clean:
	rm -rf $(BUILD) $(BUILD)-coverage $(BUILD)-fuzz $(BUILD)-dist $(BUILD)-deb $(BUILD)-wheel

help:
	@echo 'make              build $(BUILD)/octet'
	@echo 'make test         all tests (test-unit: the quick ones)'
	@echo 'make abi          record a change of the library that programs see (tests/abi)'
	@echo 'make demo         a trained detector quantized, scored, timed and shown; QAT=1: and trained for 4 bits'
	@echo 'make check-peers  answers against ONNX Runtime and onnxsim (needs ../shared)'
	@echo 'make check-losses losses of detectors against ultralytics and super-gradients (installs PyTorch)'
	@echo 'make bench-peers  speed against ONNX Runtime, OpenVINO and NNCF (needs ../shared)'
	@echo 'make accuracy     what INT8 costs each network on each target (needs ../shared)'
	@echo 'make promise      what a promised accuracy costs (needs ../shared)'
	@echo 'make agreement    how well INT8 repeats float, for builds with other settings (OTHERS)'
	@echo 'make coverage     line coverage of src/ by the tests'
	@echo 'make fuzz         each fuzz target for FUZZ_SECONDS ($(FUZZ_SECONDS)), random networks'
	@echo 'make format       clang-format on every C file'
	@echo 'make wheel        the Python package, in $(BUILD)-wheel/dist (test-python: tried in a clean environment)'
	@echo 'make install      to PREFIX (/usr/local at first); make uninstall takes it back'
	@echo 'make dist         $(BUILD)-dist/octet-VERSION.tar.xz, from the last commit'
	@echo 'make deb          Debian packages, in $(BUILD)-deb (check-deb: tried in a clean Debian)'
	@echo 'make clean'
