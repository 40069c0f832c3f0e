"""Tiny random models of the architectures that people start from, as folders."""

from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

_SIZE = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
_LONG = {"max_position_embeddings": 514, "pad_token_id": 1}
_MARKS = {"pad_token_id": 0, "bos_token_id": 22, "eos_token_id": 23}
_DECODER = {**_SIZE, **_MARKS, "num_key_value_heads": 2, "head_dim": 8}
_STACK = {**_DECODER, "layer_types": ["full_attention", "sliding_attention"], "sliding_window": 64}

SETTINGS: dict[str, dict[str, object]] = {
    "albert": {"embedding_size": 8, **_SIZE},
    "bert": _SIZE,
    "camembert": {**_LONG, **_SIZE},
    "convbert": {"embedding_size": 16, "conv_kernel_size": 3, "head_ratio": 1, **_SIZE},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], **_SIZE},
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32},
    "electra": {"embedding_size": 8, **_SIZE},
    "ernie": _SIZE,
    "eurobert": {"num_key_value_heads": 2, **_MARKS, **_SIZE},
    "gemma3_text": {**_STACK, "use_bidirectional_attention": True},
    "llama": _DECODER,
    "mobilebert": {
        "embedding_size": 16,
        "intra_bottleneck_size": 16,
        "true_hidden_size": 16,
        **_SIZE,
    },
    "modernbert": {"local_attention": 8, "cls_token_id": 22, "sep_token_id": 23, **_MARKS, **_SIZE},
    "mpnet": {"max_position_embeddings": 514, "pad_token_id": 0, **_SIZE},
    "nomic_bert": _SIZE,
    "qwen3": _DECODER,
    "roberta": {**_LONG, **_SIZE},
    "roformer": {"embedding_size": 16, "max_position_embeddings": 512, **_SIZE},
    "t5": {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2},
    "xlm-roberta": {**_LONG, **_SIZE},
    "xlnet": {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32},
}
"""Architectures by ``model_type``, and the settings that make them tiny."""

_CLASSES = {"t5": "T5EncoderModel"}


def byte_tokenizer() -> transformers.PreTrainedTokenizerFast:
    """Return a tokenizer of bytes, whose special tokens have RoBERTa's names and ids."""
    names = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        "<mask>",
        *sorted(pre_tokenizers.ByteLevel.alphabet()),
    ]
    tokenizer = Tokenizer(models.BPE({text: index for index, text in enumerate(names)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
    )


def save_architecture(name: str, folder: Path, words: str) -> Path:
    """Write a tiny model of an architecture with a tokenizer, and return the folder.

    Args:
        name: A ``model_type`` of `SETTINGS`.
        folder: Where the model goes.
        words: The folder of a WordPiece tokenizer, for architectures that do not read bytes.
    """
    tokenizer = (
        byte_tokenizer()
        if name in {"camembert", "roberta", "xlm-roberta"}
        else transformers.AutoTokenizer.from_pretrained(words)
    )
    config = transformers.AutoConfig.for_model(name, vocab_size=len(tokenizer), **SETTINGS[name])
    model_class = getattr(transformers, _CLASSES[name]) if name in _CLASSES else None
    torch.manual_seed(1)
    model = model_class(config) if model_class else transformers.AutoModel.from_config(config)
    with torch.no_grad():
        for (
            parameter
        ) in model.parameters():  # the usual initialisation makes all vectors look alike
            parameter.mul_(3 if parameter.dim() > 1 else 1)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
