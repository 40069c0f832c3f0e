"""Settings that are checked before training, and the dialogues that training reads."""

import pytest
from made_up_corpora import needs
from talks import dialogue
from training_runs import settings_in, train
from transformers import AutoTokenizer, GPT2Config, GPT2Model

from hf_dialemb import Dial2VecModel, Dialogue, InputError, load_encoder
from hf_dialemb.data import write_jsonl
from hf_dialemb.methods import get_method
from hf_dialemb.methods.encoding import encode
from hf_dialemb.training.arguments import make_settings, read_words
from hf_dialemb.training.dialogues import dev_dialogues, training_dialogues
from hf_dialemb.training.settings import RunArguments


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"seed": -1}, "seed: got -1, expected a value between 0 and 4294967295"),
        ({"learning_rate": "-1e-5"}, "learning_rate: got -1e-05, expected a value above 0"),
        ({"learning_rate": float("nan")}, "learning_rate: got nan, expected a value above 0"),
        ({"learning_rate": "abc"}, "learning_rate.*: invalid float value: 'abc'"),
        ({"seed": 1.5}, "seed: invalid int value: '1.5'"),
        ({"bf16": 3}, "bf16: .* got 3 but expected one of .*true/false"),
        ({"warmup_steps": -3}, "warmup_steps .*; correct the setting"),
        (
            {"lr_scheduler_kwargs": "{bad"},
            "Expecting property name enclosed in double quotes.*; correct the setting",
        ),
        (
            {"resume_from_checkpoint": "there"},
            "resume_from_checkpoint: got there, but a run resumes from its own last",
        ),
        (
            {"dev_split": "dev", "checkpoint_selection": "contrastive_loss", "save_strategy": "no"},
            "but save_strategy is neither",
        ),
        ({"checkpoint_selection": "contrastive_loss"}, "needs a dev_split"),
        (
            {"checkpoint_selection": "best"},
            "checkpoint_selection.*: invalid choice: 'best' .*'last', 'contrastive_loss'",
        ),
        (
            {"patience": 3},
            "patience: got 3, but no signal to wait for, as checkpoint_selection is last",
        ),
        ({"max_dialogues": 1}, "max_dialogues: got 1, expected a value at least 2"),
        (
            {"method": "multi_granularity"},
            "train them one by one, then combine them with dialemb papers ensemble",
        ),
        ({"method": "dsee"}, "Did you mean 'dse'"),
        (
            {"method": "dse", "negative_weights": 7},
            "negative_weights.*: invalid choice: '7' .*'hard', 'printed', 'plain'",
        ),
        (
            {"method": "dse", "per_device_train_batch_size": 1},
            "per_device_train_batch_size: got 1, expected a value",
        ),
        (
            {"method": "dse", "center": 1.0},
            "center: got a setting that is for methods of dialogues, but dse is one of utterances",
        ),
        (
            {"method": "dual_encoder", "backbone": "x"},
            "backbone: got a setting that is not for dual_encoder, which has no backbone",
        ),
        ({"batch_size": 8}, "'per_device_train_batch_size'"),
        ({"resum": True}, "'resume'"),
    ],
)
def test_an_impossible_setting_is_refused(values, sentence):
    with pytest.raises(InputError, match=sentence) as refused:
        make_settings({"use_cpu": True, "output_dir": "run", "corpus": "missing.jsonl"} | values)
    assert "\n" not in str(refused.value)


def test_python_yaml_and_words_fill_the_same_settings(tmp_path):
    values = {
        "method": "dse",
        "loss_temperature": 0.5,
        "learning_rate": 1e-3,
        "bf16": False,
        "max_steps": 7,
        "corpus": ["a.jsonl", "b.jsonl"],
        "lr_scheduler_kwargs": {"power": 2},
        "dev_split": None,
        "lr_scheduler_type": "polynomial",
    }
    (tmp_path / "mine.yaml").write_text(
        "method: dse\nloss_temperature: 0.5\nlearning_rate: 1e-3\nbf16: false\nmax_steps: 7\n"
        "corpus: [a.jsonl, b.jsonl]\nlr_scheduler_kwargs: {power: 2}\nlr_scheduler_type: "
        "polynomial\n"
    )
    words = [
        "a.jsonl",
        "b.jsonl",
        "--method",
        "dse",
        "--loss_temperature=0.5",
        "--learning-rate",
        "1e-3",
        "--bf16",
        "false",
        "--max_steps",
        "7",
        "--lr_scheduler_kwargs",
        '{"power": 2}',
        "--dev_split",
        "none",
        "--lr_scheduler_type",
        "polynomial",
    ]
    made = [make_settings({**values, "use_cpu": True}), make_settings({}, tmp_path / "mine.yaml")]
    made += [
        make_settings(read_words(words)),
        make_settings({"max_steps": 7}, tmp_path / "mine.yaml"),
    ]
    assert all(settings.fingerprint() == made[0].fingerprint() for settings in made)
    words = ["--output", "x", "--resume"]
    assert make_settings(read_words(words)).run.resume


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- a\n- b", "expected lines of 'field: value'"),
        ("{}", "got nothing, expected lines of 'field: value'"),
        ("\n", "got nothing"),
        ("a: [", "not YAML"),
        ("7: 8", "Unknown setting '7'"),
        (None, r"Unknown recipe 'dial2vec_minlm'\. Did you mean 'dial2vec_minilm'\?"),
    ],
)
def test_a_wrong_recipe_is_refused(tmp_path, text, sentence):
    file = tmp_path / "mine.yaml"
    file.write_text(text or "")
    with pytest.raises(InputError, match=sentence) as refused:
        make_settings({"use_cpu": True}, "dial2vec_minlm" if text is None else file)
    assert "\n" not in str(refused.value)


def test_a_training_that_goes_astray_says_so_and_saves_nothing(
    tiny_bert, tmp_path, sample_dialogues
):
    write_jsonl(sample_dialogues[:20], tmp_path / "calls.jsonl")
    steps = {
        "max_steps": 3,
        "save_strategy": "no",
        "per_device_train_batch_size": 4,
        "num_negatives": 1,
        "bf16": False,
    }
    leap = {"learning_rate": 1e30, "lr_scheduler_type": "constant", "max_grad_norm": 0}
    with pytest.raises(
        InputError, match=r"the training went astray: .* start over \(--resume false\) with a lower"
    ):
        train(
            tmp_path / "run", backbone=tiny_bert, corpus=tmp_path / "calls.jsonl", **steps, **leap
        )
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_dialogues_that_all_say_the_same_are_refused(sample_dialogues):
    run, same = RunArguments(corpus=[]), sample_dialogues[:1] * 250
    with pytest.raises(InputError, match="got 250 that all say the same, expected different ones"):
        training_dialogues(run, get_method(run.method), 0, print, same)


def test_a_tokenizer_pads_with_its_last_token_and_refuses_no_text(
    tiny_bert, tmp_path, sample_dialogues, tiny_checkpoint
):
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    GPT2Model(
        GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2)
    ).save_pretrained(tmp_path)
    tokenizer.eos_token, tokenizer.pad_token = "[SEP]", None
    tokenizer.save_pretrained(tmp_path)
    model, ours = Dial2VecModel.from_backbone(str(tmp_path))
    assert ours.pad_token == "[SEP]"
    together, alone = (encode(model, ours, sample_dialogues[:count]) for count in (4, 1))
    assert together[:1] == pytest.approx(alone, rel=1e-5, abs=1e-6)
    tokenizer.eos_token = None
    tokenizer.save_pretrained(tmp_path)
    for load in (Dial2VecModel.from_backbone, load_encoder):
        with pytest.raises(InputError, match="has no padding token"):
            load(str(tmp_path))


def learnt_from(**settings: object) -> tuple[list[Dialogue], list[str]]:
    lines: list[str] = []
    run = settings_in(
        "run", **{"method": "dse", "exclude": "none", "train_split": "train", **settings}
    ).run
    return training_dialogues(run, get_method("dse"), 0, lines.append), lines


@pytest.mark.parametrize(("least", "kept"), [(None, [2, 3, 4, 5]), (4, [4, 5])])
def test_dialogues_of_fewer_turns_are_left_out_and_counted(tmp_path, least, kept):
    write_jsonl(
        [dialogue(*["so it is then"] * count) for count in range(1, 6)], tmp_path / "calls.jsonl"
    )
    found, lines = learnt_from(corpus=tmp_path / "calls.jsonl", min_turns=least)
    assert [len(dialogue.turns) for dialogue in found] == kept
    assert lines == [f"Left out {5 - len(kept)} dialogues of fewer than {least or 2} turns"]


def dev_of(**settings):
    run = settings_in(
        "run", **{"backbone": "none", "dev_split": "dev", "train_split": "train", **settings}
    ).run
    return dev_dialogues(run, get_method("dial2vec"), print)


@needs("woz2")
def test_dev_dialogues_are_drawn_from_all_and_need_labels_for_purity(tmp_path, sample_dialogues):
    everything = dev_of(max_dev_dialogues=10_000)
    some = dev_of(max_dev_dialogues=20)
    assert some == dev_of(max_dev_dialogues=20, seed=7)
    places = [everything.index(dialogue) for dialogue in some]
    assert len(places) == 20
    assert places != list(range(20))
    # Corpora without a dev split do not choose.
    assert everything == dev_of(
        corpus=["sample/train", "star_small/train", "woz2/all"], max_dev_dialogues=10_000
    )


@pytest.mark.parametrize("corpora", [["sample/all"], ["sample/dev", "sample/train"]])
def test_dev_dialogues_are_not_learnt_from(corpora):
    with pytest.raises(
        InputError, match=f"expected a split of {' or '.join(corpora)} that is not learnt from"
    ):
        dev_of(corpus=corpora)
