"""What the released dial2vec program computes in a training step, restated in our own words.

Every sample is padded to 512 tokens, all samples of a batch go through the encoder at once with
materialised attention, and the interaction of the two speakers is computed with one L x L matrix
per sample. Only the upper layers learn.

Letters of shapes: B dialogues, N samples of a dialogue (the intact one first), L = 512 tokens, D
width.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, pad
from transformers import BertConfig, BertModel

LENGTH = 512


def features(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Turn our batch into the program's features, each (B, N, 512).

    Turns are numbered downwards to 1 for a dialogue's last, positions start afresh in each turn,
    and everything is 0 at padding.

    Args:
        batch: ``input_ids``, ``attention_mask``, ``role_ids`` and ``turn_ids`` (from 0), each (B,
            N, at most 512).

    Returns:
        The same keys, and ``position_ids``.
    """
    result = {name: pad(tensor, (0, LENGTH - tensor.shape[-1])) for name, tensor in batch.items()}
    mask = result["attention_mask"]
    turns = result["turn_ids"]
    positions = torch.zeros_like(turns)
    for index in range(1, LENGTH):
        same = turns[..., index] == turns[..., index - 1]
        positions[..., index] = torch.where(same, positions[..., index - 1] + 1, 0)
    last = (turns * mask).amax(-1, keepdim=True)
    result["turn_ids"] = (last + 1 - turns) * mask
    result["position_ids"] = positions * mask
    return result


class OfficialDial2Vec(nn.Module):
    """The program's model: an encoder that reads roles and turns, and a loss without parameters.

    Args:
        encoder_config: Size and dropout of the encoder.
        turn_rows: Rows of the turn table.
        frozen_layers: Layers, from the bottom, that do not learn; nor do the embeddings.
        window: Tokens more than this many turns apart do not meet.
        temperature: Divides the cosines.
    """

    def __init__(
        self,
        encoder_config: BertConfig,
        turn_rows: int,
        frozen_layers: int,
        window: int,
        temperature: float,
    ) -> None:
        super().__init__()
        self.encoder = BertModel._from_config(
            encoder_config, attn_implementation="eager", add_pooling_layer=False
        )
        self.turn_embeddings = nn.Embedding(turn_rows, encoder_config.hidden_size)
        self.role_embeddings = nn.Embedding(2, encoder_config.hidden_size)
        self.window = window
        self.temperature = temperature
        learning = {
            f"encoder.encoder.layer.{n}."
            for n in range(frozen_layers, encoder_config.num_hidden_layers)
        }
        for name, parameter in self.named_parameters():
            parameter.requires_grad_(any(name.startswith(layer) for layer in learning))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        role_ids: Tensor,
        turn_ids: Tensor,
        position_ids: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Compute the loss of a batch of features, each (B, N, L).

        Returns:
            The loss, a scalar, and the cosines (B, N, 2) before the temperature.
        """
        batch, samples, _ = input_ids.shape
        tokens, mask, roles, turns, positions = (
            tensor.flatten(0, 1)
            for tensor in (input_ids, attention_mask, role_ids, turn_ids, position_ids)
        )
        vectors = self.encoder.get_input_embeddings()(tokens)
        vectors = vectors + self.turn_embeddings(turns) + self.role_embeddings(roles)
        encoded = self.encoder(inputs_embeds=vectors, attention_mask=mask, position_ids=positions)
        cosines = interaction(encoded.last_hidden_state, mask, roles, turns, self.window)
        cosines = cosines.unflatten(0, (batch, samples))
        return contrastive_loss(cosines, self.temperature), cosines


def interaction(hidden: Tensor, mask: Tensor, roles: Tensor, turns: Tensor, window: int) -> Tensor:
    """Compare what each speaker says with what the other speaker's words select from it.

    Args:
        hidden: Token vectors, (B * N, L, D).
        mask: 1 for real tokens, (B * N, L).
        roles: 0 or 1, (B * N, L).
        turns: (B * N, L).
        window: Tokens more than this many turns apart do not meet.

    Returns:
        The cosines of the two speakers, (B * N, 2).
    """
    first = ((roles == 0) * mask).unsqueeze(-1).to(hidden.dtype)  # (B * N, L, 1)
    second = ((roles == 1) * mask).unsqueeze(-1).to(hidden.dtype)
    first_tokens = hidden * first
    second_tokens = hidden * second
    near = (turns.unsqueeze(-1) - turns.unsqueeze(-2)).abs() <= window  # (B * N, L, L)
    # rows: first speaker's tokens
    products = torch.bmm(first_tokens, second_tokens.transpose(1, 2)) * near
    # (B * N, L, D) at the second speaker's tokens
    first_cross = torch.bmm(products.transpose(1, 2), first_tokens)
    second_cross = torch.bmm(products, second_tokens)  # at the first speaker's tokens
    return torch.stack(
        [
            cosine_similarity(_mean(first_tokens, first), _mean(first_cross, second)),
            cosine_similarity(_mean(second_tokens, second), _mean(second_cross, first)),
        ],
        dim=-1,
    )


def contrastive_loss(cosines: Tensor, temperature: float) -> Tensor:
    """Return the cross entropy of the intact dialogue, summed over speakers and divided by N.

    Args:
        cosines: (B, N, 2), the intact dialogue first.
        temperature: Divides the cosines.
    """
    target = torch.zeros_like(cosines)
    target[:, 0] = 1
    logarithms = torch.log_softmax(cosines / temperature, dim=1)  # (B, N, 2)
    return -(logarithms * target).mean(dim=(0, 1)).sum()


def _mean(vectors: Tensor, chosen: Tensor) -> Tensor:
    return vectors.sum(1) / (chosen.sum(1) + 1e-6)
