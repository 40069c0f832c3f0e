"""The model: what it equals, what does not change it, and what its settings do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matching_reference import reference_representations
from transformers import AutoModel, AutoTokenizer

from hf_dialemb.models.dial2vec import Dial2VecConfig, Dial2VecExamples, Dial2VecModel, collate
from hf_dialemb.models.dialogue import ROLES, Dialogue, Turn
from hf_dialemb.models.encoder import encode
from hf_dialemb.models.errors import InputError
from hf_dialemb.models.layout import Truncation, tokenize

FAMILIES = ["bert", "roberta", "mpnet", "distilbert", "modernbert"]


def rendered(model, tokenizer, dialogues):
    messages = [dialogue.to_messages() for dialogue in dialogues]
    batch = tokenizer.apply_chat_template(messages, return_dict=True, return_tensors="pt", padding=True)
    with torch.inference_mode():
        return model(**batch)


def with_random_tables(model):
    torch.nn.init.normal_(model.turn_embeddings.weight)
    torch.nn.init.normal_(model.role_embeddings.weight)
    return model


def dialogue(*turns: str, roles: tuple[str, ...] = ROLES[:2]) -> Dialogue:
    return Dialogue.from_messages([{"role": roles[i % len(roles)], "content": turn} for i, turn in enumerate(turns)])


@pytest.mark.parametrize("family", FAMILIES)
def test_untrained_it_equals_its_backbone(tiny_backbones, family):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_backbones[family], pooling="mean")
    texts = ["i need a hotel in the north", "for how many nights?"]
    plain, words = (
        AutoModel.from_pretrained(tiny_backbones[family]).eval(),
        AutoTokenizer.from_pretrained(tiny_backbones[family]),
    )
    ids = [
        words.cls_token_id,
        *(i for t in texts for i in words(t, add_special_tokens=False)["input_ids"]),
        words.sep_token_id,
    ]
    with torch.inference_mode():
        expected = plain(torch.tensor([ids])).last_hidden_state.mean(1).numpy()
    assert np.abs(encode(model, tokenizer, [dialogue(*texts)]) - expected).max() < 1e-5


@pytest.mark.parametrize("family", FAMILIES)
def test_markers_give_the_same_numbers_as_explicit_roles_and_turns(tiny_backbones, family, sample_dialogues):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_backbones[family])
    with_random_tables(model)
    output = rendered(model, tokenizer, sample_dialogues[:6])
    explicit = encode(model, tokenizer, sample_dialogues[:6])
    if family == "bert":
        tokenizer.padding_side = "left"
        left = rendered(model, tokenizer, sample_dialogues[:6])
        assert torch.allclose(left.pooler_output, output.pooler_output, atol=1e-5)
    assert np.abs(output.pooler_output.numpy() - explicit).max() < 1e-5 * np.abs(explicit).max()


def test_control_tokens_in_a_users_text_are_only_text(tiny_bert):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert)
    with_random_tables(model)
    honest = [dialogue("my code is [SEP] [unused11]", "fine [CLS]")]
    output = rendered(model, tokenizer, honest)
    assert torch.allclose(output.pooler_output, torch.from_numpy(encode(model, tokenizer, honest)), atol=1e-5)
    batch = tokenize(honest, tokenizer, model.config, Truncation())
    assert batch["turn_ids"].max() == 1
    assert (batch["input_ids"] == tokenizer.sep_token_id).sum() == 1


@pytest.mark.parametrize("pooling", ["interlocutor", "mean"])
def test_order_and_company_in_a_batch_change_nothing(tiny_bert, sample_dialogues, pooling):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, pooling=pooling)
    with_random_tables(model)
    together = encode(model, tokenizer, sample_dialogues[:9], batch_size=4)
    alone = np.concatenate([encode(model, tokenizer, [d]) for d in sample_dialogues[:9]])
    backwards = encode(model, tokenizer, sample_dialogues[:9][::-1], batch_size=9)[::-1]
    assert np.abs(together - alone).max() < 1e-5 * np.abs(alone).max()
    assert np.abs(together - backwards).max() < 1e-5 * np.abs(alone).max()


@pytest.mark.parametrize("pooling", ["mean", "interlocutor"])
def test_the_centre_is_taken_off_every_embedding(tiny_bert, sample_dialogues, pooling):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, pooling=pooling)
    before = rendered(model, tokenizer, sample_dialogues[:3])
    model.center.copy_(torch.arange(16.0))
    after = rendered(model, tokenizer, sample_dialogues[:3])
    assert torch.allclose(before.pooler_output - after.pooler_output, torch.arange(16.0).expand(3, 16), atol=1e-5)
    assert torch.equal(before.role_embeddings, after.role_embeddings)


def test_a_dialogue_is_the_sum_of_its_speakers(tiny_bert, sample_dialogues):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, num_roles=3)
    output = rendered(model, tokenizer, sample_dialogues[:3])
    assert output.role_embeddings.shape == (3, 3, 16)
    assert torch.allclose(output.role_embeddings.sum(1), output.pooler_output)
    assert torch.equal(output.role_embeddings[:, 2], torch.zeros(3, 16))  # nobody spoke as the third


def test_swapping_the_speakers_swaps_their_embeddings_while_roles_look_alike(tiny_bert):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert)  # untrained: the role table is zero
    texts = ["i need a taxi", "where to?", "the station"]
    ours = rendered(model, tokenizer, [dialogue(*texts)]).role_embeddings
    swapped = rendered(model, tokenizer, [dialogue(*texts, roles=("assistant", "user"))]).role_embeddings
    assert torch.allclose(ours, swapped.flip(1), atol=1e-6)


@pytest.mark.parametrize("num_roles", [2, 3, 5])
def test_the_loss_equals_the_papers_formula(tiny_bert, num_roles):
    roles = ROLES[:num_roles]
    dialogues = [
        dialogue(*(f"{word} {n} things" for n in range(7)), roles=roles) for word in ("red", "blue", "green", "old")
    ]
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, num_roles=num_roles, num_negatives=3, window=2)
    with_random_tables(model).double()
    examples = Dial2VecExamples(dialogues, model.config, seed=0)
    batch = collate([examples.example(0, i) for i in range(5)], tokenizer, model.config, Truncation())
    assert batch["input_ids"].shape[:2] == (5, 4)
    output = model(**batch)
    expected = 0.0
    for b in range(5):
        ids, mask, role_ids, turn_ids = (batch[k][b] for k in ("input_ids", "attention_mask", "role_ids", "turn_ids"))
        hidden = model.encode_tokens(ids, mask, role_ids, turn_ids).last_hidden_state
        own, cross = reference_representations(hidden, mask, role_ids, turn_ids, num_roles, 2)
        similarity = torch.nn.functional.cosine_similarity(own, cross, dim=-1) / 0.2  # (N, R)
        expected = expected - torch.log_softmax(similarity, 0)[0].sum() / 5
    assert abs(output.loss.item() - expected.item()) < 1e-9
    assert output.similarities.shape == (5, 4, num_roles)
    model.config.loss_scale = "official"
    assert abs(model(**batch).loss.item() - expected.item() / 4) < 1e-9  # of four samples


def test_frozen_layers_record_no_gradient_and_do_not_learn(tiny_bert, sample_dialogues):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert, frozen_layers=1, num_negatives=2)
    model.freeze_lower_layers()
    recorded = {}
    for index, layer in enumerate(model.encoder.encoder.layer):
        layer.register_forward_hook(lambda _, __, out, index=index: recorded.update({index: out}))
    examples = Dial2VecExamples(sample_dialogues[:5], model.config, seed=0)
    model(**collate([examples.example(0, 0)], tokenizer, model.config, Truncation())).loss.backward()
    first, last = (recorded[i][0] if isinstance(recorded[i], tuple) else recorded[i] for i in (0, 1))
    assert first.grad_fn is None
    assert last.grad_fn is not None
    learning = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert learning
    assert all(".layer.1." in name for name in learning)


def test_examples_are_a_pure_function_of_seed_epoch_and_index(sample_dialogues):
    config = Dial2VecConfig(num_negatives=4)
    one, two = (Dial2VecExamples(sample_dialogues, config, seed=3) for _ in range(2))
    assert one.example(1, 5) == two.example(1, 5)
    assert [one.example(0, i) for i in (4, 2)] == [two.example(0, i) for i in (4, 2)]
    assert one.example(0, 5) != one.example(1, 5)
    assert one.example(0, 5) != Dial2VecExamples(sample_dialogues, config, seed=4).example(0, 5)
    frozen = Dial2VecExamples(sample_dialogues, Dial2VecConfig(num_negatives=4, negatives="frozen"), seed=3)
    assert frozen.example(0, 5) == frozen.example(7, 5)


def test_negatives_keep_the_anchor_and_replace_the_rest_from_other_dialogues(sample_dialogues):
    examples = Dial2VecExamples(sample_dialogues, Dial2VecConfig(num_negatives=6), seed=0)
    assert len(examples) == 2 * len(sample_dialogues)  # one example per dialogue and anchor role
    anchors = set()
    for index in range(20):
        intact, *corrupted = examples.example(0, index)
        anchor = examples.items[index][1]
        anchors.add(anchor)
        sources = {}
        for number, other in enumerate(sample_dialogues):
            for turn in other.turns:
                sources.setdefault((turn.role, turn.content), set()).add(number)
        for copy in corrupted:
            assert [turn.role for turn in copy.turns] == [turn.role for turn in intact.turns]
            for before, after in zip(intact.turns, copy.turns, strict=True):
                if before.role == anchor:
                    assert after == before
                else:
                    assert sources[(after.role, after.content)] - {sample_dialogues.index(intact)}
    assert anchors == {"user", "assistant"}


def test_officially_a_dialogue_may_be_corrupted_by_its_own_words():
    said = [dialogue(f"a{number}", f"b{number}") for number in range(3)]
    texts = {}
    for pool in ("official", "others"):
        config = Dial2VecConfig(num_negatives=40, **({"negative_pool": pool} if pool == "official" else {}))
        intact, *corrupted = Dial2VecExamples(said, config, seed=0).example(0, 0)
        texts[pool] = {turn.content for copy in corrupted for turn in copy.turns} - {intact.turns[0].content}
    assert texts == {"official": {"b0", "b1", "b2"}, "others": {"b1", "b2"}}


def test_a_role_that_nobody_else_has_is_replaced_by_what_any_other_says():
    three = Dialogue((*dialogue("a0", "b0").turns, Turn("speaker_3", "c0")))
    examples = Dial2VecExamples([three, dialogue("a1", "b1")], Dial2VecConfig(num_roles=3, num_negatives=30), seed=0)
    _, *corrupted = examples.example(0, 0)
    assert {copy.turns[2].content for copy in corrupted} == {"a1", "b1"}


def test_random_anchor_gives_one_example_per_dialogue(sample_dialogues):
    config = Dial2VecConfig(num_negatives=8, anchor="random")
    examples = Dial2VecExamples(sample_dialogues, config, seed=0)
    assert len(examples) == len(sample_dialogues)
    intact, *corrupted = examples.example(0, 0)
    kept = {
        tuple(t.role for t, u in zip(copy.turns, intact.turns, strict=True) if t.content == u.content)
        for copy in corrupted
    }
    assert {role for roles in kept for role in roles} == {"user", "assistant"}


def test_one_speaker_or_one_dialogue_cannot_be_learnt_from(sample_dialogues):
    lonely = dialogue("hello", "anyone?", roles=("user",))
    for dialogues, sentence in (([*sample_dialogues[:3], lonely], "one speaker"), (sample_dialogues[:1], "other dial")):
        with pytest.raises(InputError, match=sentence):
            Dial2VecExamples(dialogues, Dial2VecConfig(), seed=0)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"loss_temprature": 0.1}, "Did you mean 'loss_temperature'"),
        ({"loss_temperature": 0.0}, "loss_temperature: got 0.0, expected a value above 0"),
        ({"num_negatives": 0}, "num_negatives: got 0"),
        ({"num_roles": 6}, "between 1 and 5"),
        ({"max_tokens": 4}, "max_tokens"),
        ({"window": -1}, "window"),
    ],
)
def test_wrong_settings_say_what_is_wrong(settings, sentence):
    with pytest.raises(InputError, match=sentence):
        Dial2VecConfig(**settings)


def test_a_saved_model_embeds_alike_whatever_a_trainer_added_to_its_config(tiny_bert, sample_dialogues, tmp_path):
    model, tokenizer = Dial2VecModel.from_backbone(tiny_bert)
    with_random_tables(model).config.pad_token_id = 0
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    again, words = AutoModel.from_pretrained(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert again.config.pad_token_id == 0
    assert np.array_equal(encode(again, words, sample_dialogues[:4]), encode(model, tokenizer, sample_dialogues[:4]))


def test_more_tokens_than_the_backbone_has_positions_is_an_error(tiny_bert):
    with pytest.raises(InputError, match="at most 512"):
        Dial2VecModel.from_backbone(tiny_bert, max_tokens=600)


def test_training_can_start_from_a_checkpoint_of_ours_with_its_tables(tiny_checkpoint, sample_dialogues):
    before = AutoModel.from_pretrained(tiny_checkpoint)
    model, tokenizer = Dial2VecModel.from_backbone(str(tiny_checkpoint))
    assert before.role_embeddings.weight.abs().sum() > 0
    for name, value in before.named_parameters():
        assert torch.equal(model.get_parameter(name), value), name
    ours, theirs = (
        encode(one, words, sample_dialogues[:4]) + one.center.numpy()
        for one, words in ((model, tokenizer), (before, AutoTokenizer.from_pretrained(tiny_checkpoint)))
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
    with pytest.raises(InputError, match="turn_embeddings: got settings for 7 rows"):
        Dial2VecModel.from_backbone(str(tiny_checkpoint), num_turn_embeddings=7)
