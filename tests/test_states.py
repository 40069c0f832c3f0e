"""Folders of runs and of flows, whatever is done to them in whatever order: stopped, damaged, gone on with."""

import shutil
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from training_runs import assert_same, train, weights_of

import hf_dialemb
from hf_dialemb.apps.merge import merge
from hf_dialemb.cli import main
from hf_dialemb.corpora import write_jsonl
from hf_dialemb.flow import report
from hf_dialemb.models.errors import InputError
from hf_dialemb.runs.folder import RunFolder
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


class Folders(RuleBasedStateMachine):
    """Each example has a new folder."""

    @initialize()
    def start(self):
        self.root = type(self).root / str(len(list(type(self).root.iterdir())))
        self.root.mkdir()

    @invariant()
    def nothing_is_left_over(self):
        if hasattr(self, "root"):
            assert [path for path in self.root.rglob(".*") if path.name != ".lance"] == []


class RunMachine(Folders):
    """A run's folder: complete it is what a run without stops writes."""

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


class FlowMachine(Folders):
    """A flow's folder: after a run that went to its end it is what that run alone writes."""

    @rule(clusters=st.sampled_from([2, 3]), calls=st.integers(0, 40))
    def run(self, clusters, calls):
        output, done = self.root / "flow", []
        with StopsAt(Path, "replace", calls):
            done.append(type(self).flow(output, clusters))
        if done == [0]:
            wanted = type(self).expected[clusters]
            assert {name: (output / name).read_bytes() for name in wanted} == wanted


def machine_of(kind, root, **given):
    return type(kind.__name__, (kind,), {"root": root, **given})


def test_a_run_stopped_damaged_and_gone_on_with_ends_in_the_same_weights(tmp_path, tiny_bert):
    recipe = {"method": "dse", "backbone": tiny_bert, "max_tokens": 16, "encoding_tokens": 16, "max_steps": 3}
    recipe |= {"save_steps": 1, "per_device_train_batch_size": 4, "max_dialogues": 8, "learning_rate": 1e-3}
    train(tmp_path / "whole", **recipe)
    (tmp_path / "examples").mkdir()
    expected = weights_of(tmp_path / "whole")
    machine = machine_of(RunMachine, tmp_path / "examples", recipe=recipe, expected=expected)
    run_state_machine_as_test(machine, settings=settings(max_examples=5, stateful_step_count=6, deadline=None))


def test_a_flow_stopped_and_run_again_with_other_settings_is_of_the_last_run(
    tmp_path, sample_dialogues, monkeypatch, capsys
):
    monkeypatch.setattr(report, "draw_graph", lambda *_: ([], ""))  # pictures take most of the time
    monkeypatch.setattr(report, "_dendrograms", lambda *_: ())
    write_jsonl(sample_dialogues[:6], tmp_path / "calls.jsonl")

    def flow(output, clusters):
        words = ["--model", "dialogue-static", "--clusters", clusters, "--output", output]
        return main(["flow", str(tmp_path / "calls.jsonl"), *map(str, words)])

    expected = {}
    for clusters in (2, 3):
        assert flow(tmp_path / str(clusters), clusters) == 0
        files = (tmp_path / str(clusters)).iterdir()
        expected[clusters] = {file.name: file.read_bytes() for file in files if file.suffix in (".json", ".md", ".csv")}
    (tmp_path / "examples").mkdir()
    machine = machine_of(FlowMachine, tmp_path / "examples", flow=staticmethod(flow), expected=expected)
    run_state_machine_as_test(machine, settings=settings(max_examples=5, stateful_step_count=5, deadline=None))
