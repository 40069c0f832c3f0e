"""Folders of runs, whatever is done to them in whatever order: stopped, damaged, gone on with."""

import shutil

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from training_runs import assert_same, train, weights_of

import hf_dialemb
from hf_dialemb.errors import InputError
from hf_dialemb.runs.folder import RunFolder
from hf_dialemb.training.merge import merge
from hf_dialemb.training.trainer import DialogueTrainer

pytestmark = pytest.mark.slow


class StopsAt:
    """Lets a function of a class be called so often, and then interrupts."""

    def __init__(self, owner, name, calls):
        self.owner, self.name, self.calls, self.whole = owner, name, calls, getattr(owner, name)

    def __enter__(self):
        def counted(*words, **options):
            self.calls -= 1
            if self.calls < 0:
                raise KeyboardInterrupt
            return self.whole(*words, **options)

        setattr(self.owner, self.name, counted)

    def __exit__(self, kind, *error):
        setattr(self.owner, self.name, self.whole)
        return kind is KeyboardInterrupt


class RunMachine(RuleBasedStateMachine):
    """A run's folder, which each example has anew: complete it is what a run without stops writes."""

    @initialize()
    def start(self):
        self.root = type(self).root / str(len(list(type(self).root.iterdir())))
        self.root.mkdir()

    @invariant()
    def nothing_is_left_over(self):
        if hasattr(self, "root"):
            assert list(self.root.rglob(".*")) == []

    @rule(calls=st.integers(0, 5))
    def train(self, calls):
        with StopsAt(DialogueTrainer, "training_step", calls):
            train(self.root / "run", **type(self).recipe)
        assert calls < 3 or RunFolder(self.root / "run").complete

    @rule()
    def damage(self):
        for checkpoint in RunFolder(self.root / "run").checkpoints()[-1:]:
            (checkpoint / "model.safetensors").write_bytes(b"cut")

    @rule()
    def train_otherwise(self):
        if RunFolder(self.root / "run").checkpoints():
            with pytest.raises(InputError, match="another seed"):
                train(self.root / "run", **type(self).recipe, seed=7)

    @rule()
    def merge(self):
        shutil.rmtree(self.root / "merged", ignore_errors=True)
        if RunFolder(self.root / "run").complete:
            merged = merge(type(self).recipe["backbone"], {self.root / "run": 0.5}, output_dir=self.root / "merged")
            assert hf_dialemb.load_encoder(str(merged.path)).encode_utterances(["Hi"]).shape == (1, 16)

    @invariant()
    def what_is_complete_is_right(self):
        if hasattr(self, "root") and RunFolder(self.root / "run").complete:
            assert_same(weights_of(self.root / "run"), type(self).expected)


def test_a_run_stopped_damaged_and_gone_on_with_ends_in_the_same_weights(tmp_path, tiny_bert):
    recipe = {"method": "dse", "backbone": tiny_bert, "max_tokens": 16, "encoding_tokens": 16, "max_steps": 3}
    recipe |= {"save_steps": 1, "per_device_train_batch_size": 4, "max_dialogues": 8, "learning_rate": 1e-3}
    train(tmp_path / "whole", **recipe)
    (tmp_path / "examples").mkdir()
    expected = weights_of(tmp_path / "whole")
    given = {"root": tmp_path / "examples", "recipe": recipe, "expected": expected}
    machine = type("Machine", (RunMachine,), given)
    run_state_machine_as_test(machine, settings=settings(max_examples=5, stateful_step_count=6, deadline=None))
