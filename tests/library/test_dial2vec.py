"""dial2vec: what it equals, what does not change it, what it learns from.

How all dialogues are laid out and cut.
"""

import numpy as np
import pytest
import torch
from talks import dialogue
from torch import nn
from transformers import AutoModel, AutoTokenizer

from hf_dialemb.dialogue import ROLES, Dialogue
from hf_dialemb.errors import InputError
from hf_dialemb.methods.dial2vec import (
    Dial2VecConfig,
    Dial2VecExamples,
    Dial2VecModel,
    collate,
    speaker_representations,
)
from hf_dialemb.methods.encoding import encode
from hf_dialemb.methods.layout import Truncation, tokenize
from hf_dialemb.modeling.modeling_dial2vec import DialogueTokens


def make(backbone, **settings):
    """Build a model whose tables of turns and roles are not zero."""
    model, tokenizer = Dial2VecModel.from_backbone(backbone, **settings)
    torch.nn.init.normal_(model.turn_embeddings.weight)
    torch.nn.init.normal_(model.role_embeddings.weight)
    return model, tokenizer


def rendered(model, tokenizer, dialogues):
    messages = [dialogue.to_messages() for dialogue in dialogues]
    batch = tokenizer.apply_chat_template(
        messages, return_dict=True, return_tensors="pt", padding=True
    )
    with torch.inference_mode():
        return model(**batch)


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "distilbert", "modernbert"])
def test_an_untrained_model_equals_its_backbone(tiny_backbones, family, sample_dialogues):
    texts = ["i need a hotel in the north", "for how many nights?"]
    plain = AutoModel.from_pretrained(tiny_backbones[family]).eval()
    words = AutoTokenizer.from_pretrained(tiny_backbones[family])
    spoken = [
        token for text in texts for token in words(text, add_special_tokens=False)["input_ids"]
    ]
    with torch.inference_mode():
        ids = torch.tensor([[words.cls_token_id, *spoken, words.sep_token_id]])
        expected = plain(ids).last_hidden_state.mean(1).numpy()
    untrained = Dial2VecModel.from_backbone(tiny_backbones[family], pooling="mean")
    assert np.abs(encode(*untrained, [dialogue(*texts)]) - expected).max() < 1e-5
    model, tokenizer = make(tiny_backbones[family])
    explicit = encode(model, tokenizer, sample_dialogues[:6])
    actual = rendered(model, tokenizer, sample_dialogues[:6]).pooler_output.numpy()
    assert np.abs(actual - explicit).max() < 1e-5 * np.abs(explicit).max()


@pytest.mark.parametrize("pooling", ["interlocutor", "mean"])
def test_the_centre_is_taken_off(tiny_bert, sample_dialogues, pooling):
    model, tokenizer = make(tiny_bert, pooling=pooling)
    before = rendered(model, tokenizer, sample_dialogues[:3])
    model.center.copy_(torch.arange(16.0))
    after = rendered(model, tokenizer, sample_dialogues[:3])
    assert torch.allclose(
        before.pooler_output - after.pooler_output, torch.arange(16.0).expand(3, 16), atol=1e-5
    )
    assert torch.equal(before.role_embeddings, after.role_embeddings)


def test_a_dialogue_is_the_sum_of_its_speakers(tiny_bert, sample_dialogues):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, num_roles=3)
    output = rendered(model, tokenizer, sample_dialogues[:3])
    assert torch.allclose(output.role_embeddings.sum(1), output.pooler_output)
    assert torch.equal(
        output.role_embeddings[:, 2], torch.zeros(3, 16)
    )  # nobody spoke as the third


def reference_representations(hidden, mask, role_ids, turn_ids, num_roles, window):
    """Compute equations 1 to 3 as the paper writes them.

    N x n matrices, one dialogue and speaker at a time.
    """
    own = torch.zeros(hidden.shape[0], num_roles, hidden.shape[2], dtype=hidden.dtype)
    cross = torch.zeros_like(own)
    for b in range(hidden.shape[0]):
        near = (turn_ids[b][:, None] - turn_ids[b][None, :]).abs() <= window
        for role in range(num_roles):
            a = ((role_ids[b] == role) & mask[b].bool()).to(hidden.dtype)
            rest = ((role_ids[b] != role) & mask[b].bool()).to(hidden.dtype)
            ea, eb = hidden[b] * a[:, None], hidden[b] * rest[:, None]  # (L, D)
            w = (ea @ eb.T) * near  # (L, L) rows: own tokens, columns: the others' tokens
            own[b, role] = ea.sum(0) / a.sum().clamp(min=1)
            # the sum over the others' positions; the mean differs by a factor
            cross[b, role] = (w.T @ ea).sum(0)
    return own, cross


def random_batch(num_roles: int, one_sided: bool = False, length: int = 40):
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(3, length, 7, generator=generator, dtype=torch.float64)
    turn_ids = torch.randint(0, 2, (3, length), generator=generator).cumsum(1)
    speaker = torch.randint(
        0, 1 if one_sided else num_roles, (3, int(turn_ids.max()) + 1), generator=generator
    )
    mask = torch.ones(3, length, dtype=torch.long)
    mask[1, length // 2 :] = 0
    mask[2, 3:] = 0
    return hidden, mask, speaker.gather(1, turn_ids), turn_ids


def assert_near(actual: torch.Tensor, expected: torch.Tensor, tolerance: float = 1e-10) -> None:
    assert (actual - expected).abs().max() / expected.abs().max().clamp(min=1) < tolerance


@pytest.mark.parametrize("num_roles", [2, 3, 4, 5])
@pytest.mark.parametrize("window", [0, 1, 2, 5, 10, 1000])
def test_the_interaction_equals_the_matrices_in_value_and_gradient(num_roles, window):
    hidden, *layout = random_batch(num_roles)
    weights = torch.randn(
        2, 3, num_roles, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(9)
    )
    leaves = [hidden.clone().requires_grad_() for _ in range(2)]
    actual = torch.stack(speaker_representations(leaves[0], *layout, num_roles, window)[:2])
    expected = torch.stack(reference_representations(leaves[1], *layout, num_roles, window))
    for values in (actual, expected):
        (values * weights).sum().backward()
    assert_near(actual, expected)
    assert_near(leaves[0].grad, leaves[1].grad)
    assert leaves[1].grad.abs().max() > 0.1  # the comparison is not one of zeros


def test_neither_padding_nor_turn_numbers_change_the_interaction():
    hidden, mask, role_ids, turn_ids = random_batch(2)
    whole = speaker_representations(hidden, mask, role_ids, turn_ids, 2, 3)
    short = speaker_representations(
        *(entry[1:2, :20] for entry in (hidden, mask, role_ids, turn_ids)), 2, 3
    )
    backwards = speaker_representations(hidden, mask, role_ids, turn_ids.max() - turn_ids, 2, 3)
    swapped = speaker_representations(hidden, mask, 1 - role_ids, turn_ids, 2, 3)
    for kind in (0, 1):
        assert_near(short[kind], whole[kind][1:2], 1e-12)
        assert_near(backwards[kind], whole[kind])
        assert torch.allclose(whole[kind], swapped[kind].flip(1), atol=1e-12)
    length = 200_000  # n x n in float32 would be 160 GB
    turn_ids = (torch.arange(length) // 20).unsqueeze(0)
    own, _, _ = speaker_representations(
        torch.ones(1, length, 2), torch.ones(1, length), turn_ids % 2, turn_ids, 2, 10
    )
    assert torch.allclose(own, torch.ones(1, 2, 2))


@pytest.mark.parametrize("num_roles", [2, 3, 5])
def test_the_loss_equals_the_papers_formula(tiny_bert, num_roles):
    speakers = {"red": 2, "blue": num_roles, "green": num_roles, "old": num_roles}
    dialogues = [
        dialogue(*(f"{word} {n}" for n in range(7)), roles=ROLES[:count])
        for word, count in speakers.items()
    ]
    model, tokenizer = make(tiny_bert, num_roles=num_roles, num_negatives=3, window=2)
    model.double()
    examples = Dial2VecExamples(dialogues, model.config, seed=0)
    batch = collate(
        [examples.example(0, i) for i in range(5)], tokenizer, model.config, Truncation()
    )
    assert batch["input_ids"].shape[:2] == (5, 4)
    output = model(**batch)
    expected = 0.0
    for b in range(5):
        ids, mask, role_ids, turn_ids = (
            batch[k][b] for k in ("input_ids", "attention_mask", "role_ids", "turn_ids")
        )
        hidden = model.encode_tokens(
            DialogueTokens(ids, mask, role_ids, turn_ids)
        ).last_hidden_state
        own, cross = reference_representations(hidden, mask, role_ids, turn_ids, num_roles, 2)
        similarity = torch.nn.functional.cosine_similarity(own, cross, dim=-1) / 0.2  # (N, R)
        present = own[0].abs().sum(-1) > 0  # who is absent does not count
        expected = expected - torch.log_softmax(similarity, 0)[0, present].sum() / 5
    assert abs(output.loss.item() - expected.item()) < 1e-9
    assert output.similarities.shape == (5, 4, num_roles)
    model.config.loss_scale = "official"
    assert abs(model(**batch).loss.item() - expected.item() / 4) < 1e-9  # of four samples


def drawn(dialogues, index=0, epoch=0, **settings):
    """Return the dialogue of an example, and its corruptions."""
    intact, *corrupted = Dial2VecExamples(dialogues, Dial2VecConfig(**settings), seed=0).example(
        epoch, index
    )
    return intact, corrupted


def test_negatives_replace_all_but_the_anchor_from_other_dialogues(sample_dialogues):
    examples = Dial2VecExamples(sample_dialogues, Dial2VecConfig(num_negatives=6), seed=0)
    assert len(examples) == 2 * len(sample_dialogues)  # one example per dialogue and anchor role
    for index in range(20):
        intact, *corrupted = examples.example(0, index)
        others = {
            (turn.role, turn.content)
            for entry in sample_dialogues
            if entry is not intact
            for turn in entry.turns
        }
        for before, after in (
            pair for copy in corrupted for pair in zip(intact.turns, copy.turns, strict=True)
        ):
            assert after.role == before.role
            assert (
                after == before
                if before.role == ROLES[index % 2]
                else (after.role, after.content) in others
            )
    spoken = [dialogue(f"a{number}", f"b{number}") for number in range(3)]
    _, corrupted = drawn(spoken, num_negatives=40)
    assert {turn.content for copy in corrupted for turn in copy.turns} == {"a0", "b1", "b2"}


def test_one_speaker_one_dialogue_or_a_third_role_is_refused(sample_dialogues, tiny_bert):
    lonely = dialogue("hello", "anyone?", roles=("user",))
    for dialogues, sentence in (
        ([*sample_dialogues[:3], lonely], "one speaker"),
        (sample_dialogues[:1], "other dial"),
    ):
        with pytest.raises(InputError, match=sentence):
            Dial2VecExamples(dialogues, Dial2VecConfig(), seed=0)


def test_training_starts_from_a_checkpoint_with_its_tables(tiny_checkpoint, sample_dialogues):
    before, words = (
        AutoModel.from_pretrained(tiny_checkpoint),
        AutoTokenizer.from_pretrained(tiny_checkpoint),
    )
    model, tokenizer = Dial2VecModel.from_backbone(str(tiny_checkpoint))
    assert before.role_embeddings.weight.abs().sum() > 0
    for name, value in before.named_parameters():
        assert torch.equal(model.get_parameter(name), value), name
    ours = encode(model, tokenizer, sample_dialogues[:4]) + model.center.numpy()
    theirs = encode(before, words, sample_dialogues[:4]) + before.center.numpy()
    np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize(
    ("keep", "whole_turns", "words"),
    [
        ("start", True, "aaaaabbbbb"),
        ("end", True, "eeeeefffff"),
        ("start", False, "aaaaabbbbbccc"),
        ("end", False, "dddeeeeefffff"),
    ],
)
def test_whole_turns_or_tokens_stay_at_the_end_that_is_kept(tiny_bert, keep, whole_turns, words):
    model, tokenizer = Dial2VecModel.from_backbone(
        tiny_bert, max_tokens=15, keep=keep, whole_turns=whole_turns
    )
    count, spoken = Truncation(), [" ".join([letter] * 5) for letter in "abcdef"]
    batch = tokenize([dialogue(*spoken)], tokenizer, model.config, count)
    assert tokenizer.decode(batch["input_ids"][0], skip_special_tokens=True).split() == list(words)
    assert batch["turn_ids"].max() == len(set(words)) - 1
    assert str(count) == f"1 of 1 dialogues were truncated ({30 - len(words)} of 30 tokens dropped)"


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
@pytest.mark.parametrize(
    "layout", [{}, {"wrapped": False, "position_layout": "utterance", "turn_order": "descending"}]
)
@pytest.mark.parametrize("side", ["left", "right"])
def test_rendered_dialogues_are_cut_as_explicit_ones(tiny_bert, keep, whole_turns, layout, side):
    settings = {"max_tokens": 20, "keep": keep, "whole_turns": whole_turns, **layout}
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, **settings)
    for table in (model.turn_embeddings, model.role_embeddings):
        nn.init.normal_(table.weight)
    generator = np.random.default_rng(0)
    dialogues = [any_dialogue(generator, words) for words in (3, 6, 12, 40) for _ in range(25)]
    tokenizer.padding_side = side
    asked = {"return_dict": True, "return_tensors": "pt", "padding": True, "truncation": True}
    batch = tokenizer.apply_chat_template([entry.to_messages() for entry in dialogues], **asked)
    with torch.inference_mode():
        rendered = model(**batch)
        explicit = model(**tokenize(dialogues, tokenizer, model.config, Truncation()))
    torch.testing.assert_close(rendered.pooler_output, explicit.pooler_output, rtol=0, atol=1e-5)
    torch.testing.assert_close(
        rendered.role_embeddings, explicit.role_embeddings, rtol=0, atol=1e-5
    )
    assert (rendered.last_hidden_state.abs().sum(-1) > 0).sum(-1).max() == 20
