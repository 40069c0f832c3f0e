"""Truncation, turn numbering and roles of dialogues; PLATO's layout is compared with PLATO in test_convert_plato."""

import numpy as np
import pytest
import torch
from talks import dialogue
from torch import nn

from hf_dialemb.models.dial2vec import Dial2VecModel
from hf_dialemb.models.dialogue import Dialogue
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.layout import Truncation, tokenize

LONG = dialogue(*(" ".join([letter] * 5) for letter in "abcdef"))


@pytest.mark.parametrize(
    ("keep", "whole_turns", "words"),
    [("start", True, "aaaaabbbbb"), ("end", True, "eeeeefffff"), ("start", False, "aaaaabbbbbccc"),
     ("end", False, "dddeeeeefffff")],
)  # fmt: skip
def test_whole_turns_or_tokens_stay_at_the_end_that_is_kept(tiny_bert, keep, whole_turns, words):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, max_tokens=15, keep=keep, whole_turns=whole_turns)
    count = Truncation()
    batch = tokenize([LONG], tokenizer, model.config, count)
    assert tokenizer.decode(batch["input_ids"][0], skip_special_tokens=True).split() == list(words)
    assert batch["turn_ids"].max() == len(set(words)) - 1
    assert str(count) == f"1 of 1 dialogues were truncated ({30 - len(words)} of 30 tokens dropped)"


def test_a_single_turn_beyond_the_limit_is_cut_and_what_fits_or_has_no_token_is_counted(tiny_bert, sample_dialogues):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, max_tokens=10)
    batch = tokenize([dialogue("a " * 50)], tokenizer, model.config, Truncation())
    assert batch["input_ids"].shape == (1, 10)
    model.config.max_tokens, count = 512, Truncation()
    tokenize(sample_dialogues[:5], tokenizer, model.config, count)
    assert (count.dialogues, count.truncated, count.dropped_tokens) == (5, 0, 0)
    tokenize([dialogue("\u200b")], tokenizer, model.config, count)
    assert (count.empty, count.dialogues) == (1, 6)
    assert str(count).endswith("; 1 gave no token")


def any_dialogue(generator, words: int) -> Dialogue:
    """Two speakers in any order, turns of any length, among them such as no token stands for."""
    turns = []
    for _ in range(generator.integers(1, 9)):
        length = int(generator.integers(0, words))
        content = " ".join(generator.choice(list("abcdefghij"), length)) or "\u200b"
        turns.append({"role": str(generator.choice(["user", "assistant"])), "content": content})
    return Dialogue.from_messages(turns)


@pytest.mark.parametrize("keep", ["start", "end"])
@pytest.mark.parametrize("whole_turns", [True, False])
@pytest.mark.parametrize("layout", [{}, {"wrapped": False, "position_layout": "utterance", "turn_order": "descending"}])
@pytest.mark.parametrize("side", ["left", "right"])
def test_rendered_dialogues_are_cut_as_dialogues_are(tiny_bert, keep, whole_turns, layout, side):
    settings = {"max_tokens": 20, "keep": keep, "whole_turns": whole_turns, **layout}
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, **settings)
    for table in (model.turn_embeddings, model.role_embeddings):
        nn.init.normal_(table.weight)
    generator = np.random.default_rng(0)
    dialogues = [any_dialogue(generator, words) for words in (3, 6, 12, 40) for _ in range(25)]
    tokenizer.padding_side = side
    asked = {"return_dict": True, "return_tensors": "pt", "padding": True, "truncation": True}
    batch = tokenizer.apply_chat_template([each.to_messages() for each in dialogues], **asked)
    with torch.inference_mode():
        rendered = model(**batch)
        explicit = model(**tokenize(dialogues, tokenizer, model.config, Truncation()))
    torch.testing.assert_close(rendered.pooler_output, explicit.pooler_output, rtol=0, atol=1e-5)
    torch.testing.assert_close(rendered.role_embeddings, explicit.role_embeddings, rtol=0, atol=1e-5)
    assert (rendered.last_hidden_state.abs().sum(-1) > 0).sum(-1).max() == 20


def test_a_role_beyond_the_models_is_an_error(tiny_bert):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert)
    third = Dialogue.from_messages([{"role": "speaker_3", "content": "hello"}])
    with pytest.raises(InputError, match="speaker_3"):
        tokenize([third], tokenizer, model.config, Truncation())


def test_official_role_alignment_repeats_the_programs_error(tiny_bert):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, max_turns=3, wrapped=False)
    six = dialogue(*"abcdef")  # the last three turns are those of assistant, user, assistant
    assert tokenize([six], tokenizer, model.config, Truncation())["role_ids"].tolist() == [[1, 0, 1]]
    model.config.role_alignment = "official"
    assert tokenize([six], tokenizer, model.config, Truncation())["role_ids"].tolist() == [[0, 1, 0]]
