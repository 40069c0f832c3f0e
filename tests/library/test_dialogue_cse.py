"""DialogueCSE: the matrices that it never makes, and its examples."""

import torch
from talks import dialogue
from torch.nn.functional import cosine_similarity

from hf_dialemb.methods.dialogue_cse import (
    METHOD,
    DialogueCSEConfig,
    DialogueCSEModel,
    ResponseInContext,
    collate,
)
from hf_dialemb.methods.layout import Truncation, tokenize_utterances

EXAMPLES = [
    ResponseInContext(
        ("a room for two please", "for which nights?", "from friday on"),
        ("yes book it",),
        "a hotel is free",
        ("the train leaves at nine", "what food do you want", "goodbye"),
    ),
    ResponseInContext(
        (),
        ("is it cheap?", "it is", "fine then"),
        "i found a taxi",
        ("hello", "ok", "no it is not"),
    ),
    ResponseInContext(
        ("hello",),
        (),
        "how can i help you today",
        ("which day", "bye now", "in the north of the town"),
    ),
]


def make(backbone: str, **settings: object):
    torch.manual_seed(1)
    model, tokenizer = DialogueCSEModel.from_backbone(backbone, **{"num_negatives": 3, **settings})
    return model.double(), tokenizer


def batch_of(model, tokenizer, examples=EXAMPLES):
    return collate(list(examples), tokenizer, model.config, Truncation())


def tokens_of(model, tokenizer, text: str) -> torch.Tensor:
    """The token vectors of a text alone, (L, D)."""
    batch = tokenize_utterances([text], tokenizer, model.config.max_tokens, Truncation())
    return model.encoder(**batch).last_hidden_state[0]


def reference_similarities(model, tokenizer, example: ResponseInContext) -> torch.Tensor:
    """Section 4 as it is printed, one utterance, one turn and one matrix after the other."""
    cosines = []
    for candidate in (example.response, *example.negatives):
        response = tokens_of(model, tokenizer, candidate)  # (L, D)
        refined = []
        for text in (*example.previous, *example.following):
            # (n, L); the width is 16
            matching = tokens_of(model, tokenizer, text) @ response.T * 0.25
            refined.append((matching @ response).mean(0))
        cosines.append(cosine_similarity(response.mean(0), torch.stack(refined).mean(0), dim=0))
    return torch.stack(cosines)


def test_similarities_equal_the_papers_matrices(tiny_bert):
    model, tokenizer = make(tiny_bert)
    output = model(**batch_of(model, tokenizer))
    expected = torch.stack([reference_similarities(model, tokenizer, entry) for entry in EXAMPLES])
    assert output.similarities.shape == (3, 4, 1)
    assert (output.similarities.squeeze(-1) - expected).abs().max() < 1e-10
    loss = -torch.log_softmax(expected / 0.1, dim=1)[:, 0].mean()
    assert abs(output.loss.item() - loss.item()) < 1e-10
    assert expected.std() > 1e-3  # the figures tell candidates apart
    assert len(model.heads) == 0


def test_company_padding_and_absent_turns_change_no_result(tiny_bert):
    model, tokenizer = make(tiny_bert)
    batch = batch_of(model, tokenizer)
    output = model(**batch)
    alone = [model(**batch_of(model, tokenizer, [entry])) for entry in EXAMPLES]
    padded = model(
        **{name: torch.nn.functional.pad(tensor, (0, 9)) for name, tensor in batch.items()}
    )
    for name in ("similarities", "pooler_output"):
        for other in (torch.cat([entry[name] for entry in alone]), padded[name]):
            assert torch.allclose(output[name], other, atol=1e-10)
    assert torch.allclose(
        output.pooler_output[0], tokens_of(model, tokenizer, EXAMPLES[0].response).mean(0)
    )
    absent = batch["attention_mask"].sum(-1) == 0
    assert absent[:, :6].sum(1).tolist() == [2, 3, 5]
    batch["input_ids"][absent] = tokenizer.mask_token_id
    assert torch.equal(model(**batch).similarities, output.similarities)


def made(dialogues, **settings):
    return METHOD.examples(dialogues, DialogueCSEConfig(**settings), seed=0)


def test_a_window_holds_the_nearest_turns_those_of_one_go_joined():
    dialogues = [dialogue("u0", "a1", "u2", "a3", "u4", "a5"), dialogue("x", "y")]
    examples = made(dialogues, context_turns=2, num_negatives=1)
    assert [spoken.text for spoken in examples.items] == [
        "u0",
        "a1",
        "u2",
        "a3",
        "u4",
        "a5",
        "x",
        "y",
    ]
    assert examples.example(0, 3) == (("a1", "u2"), ("u4", "a5"), "a3", ("y",))
    assert examples.example(0, 0) == ((), ("a1", "u2"), "u0", ("x",))
    assert examples.length(0) == 1
    assert examples.notes == []
    joined = dialogue(
        "hi", "hello", "yes?", "a room", roles=("user", "assistant", "assistant", "user")
    )
    actual = made([joined, dialogue("x", "y")], num_negatives=1).example(0, 1)
    assert actual == (("hi",), ("a room",), "hello yes?", ("y",))


def test_negatives_have_the_responses_role_and_another_dialogue(sample_dialogues):
    examples = made(sample_dialogues)
    for index in range(0, len(examples), 7):
        spoken, example = examples.items[index], examples.example(0, index)
        others = [
            turn
            for place, entry in enumerate(sample_dialogues)
            if place != spoken.dialogue
            for turn in entry.turns
        ]
        assert example.response == spoken.text
        assert example.previous or example.following
        assert len(example.negatives) == 9
        assert {*example.negatives} <= {
            turn.content for turn in others if turn.role == spoken.role
        } - {spoken.text}
    dialogues = [dialogue("hello", f"number {n}") for n in range(400)] + [dialogue("rare", "bye")]
    assert made(dialogues, num_negatives=2).example(0, 0).negatives == ("rare", "rare")
