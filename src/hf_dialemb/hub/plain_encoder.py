"""The published form of utterance encoders.

A plain backbone and the mean of its tokens, without code of ours.

transformers, sentence-transformers and servers that read BERT and its kin load it without this
package or ``trust_remote_code``. Strings, and messages, whose contents are joined by spaces, get
the vectors of `encode_utterances`: ``[SEP]`` and its like in a text are control tokens, as the
backbone's tokenizer reads them. One thing would need code of ours: ``apply_chat_template`` cuts off
the closing token of a long text. For strings the tokenizer keeps it, and for messages
sentence-transformers restores it.

Messages of the roles that `hf_dialemb.dialogue.UNSPOKEN` names are left out, and with them a prompt
for messages.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..methods import method_of
from ..methods.config import own_settings
from ..methods.layout import Truncation, special_texts, tokenize_utterances
from ..methods.utterance import UtteranceEncoder
from ..storage.run_folder import write_record, write_sentence_files
from .published_folder import ARGUMENTS, WITHOUT_PACKAGE, PublishedFolder, Vectors, messages

_STALE = ("is_local", "local_files_only", "max_length")  # of this machine, or an older limit

_PROGRAM = """
pooling = json.load(open(path + "/1_Pooling/config.json"))
alone = json.load(open(path + "/config.json"))["architectures"][0].endswith("EncoderModel")
loader = AutoModelForTextEncoding if alone else AutoModel
model, tokenizer = loader.from_pretrained(path), AutoTokenizer.from_pretrained(path)
def pooled(batch):
    mask = batch["attention_mask"].unsqueeze(-1)
    with torch.inference_mode():
        hidden = model(**batch).last_hidden_state
    if pooling["pooling_mode_mean_tokens"]:
        return ((hidden * mask).sum(1) / mask.sum(1).clamp(min=1)).float().numpy()
    places = mask.squeeze(-1) * torch.arange(1, mask.shape[1] + 1)
    place = mask.squeeze(-1).argmax(1) if pooling["pooling_mode_cls_token"] else places.argmax(1)
    return hidden[torch.arange(len(hidden)), place].float().numpy()
options = {"return_tensors": "pt", "padding": True, "truncation": True}
from sentence_transformers import SentenceTransformer
whole = SentenceTransformer(path, device="cpu")
embed = {
    "AutoModel, strings": lambda batch: pooled(tokenizer(batch, **options)),
    "AutoModel, messages": lambda batch: pooled(
        tokenizer.apply_chat_template(batch, return_dict=True, **options)
    ),
    "SentenceTransformer, strings": whole.encode,
    "SentenceTransformer, messages": whole.encode,
}
vectors = {}
for way in probes:
    vectors[way] = np.concatenate([embed[way](batch) for batch in probes[way]])
np.savez(output_path, **vectors)
"""

# one program for all ways of loading
WAYS = {"package absent": WITHOUT_PACKAGE + ARGUMENTS + _PROGRAM}


def write(model: UtteranceEncoder, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Write the backbone, its tokenizer, sentence-transformers' files and the settings."""
    encoder = model.encoder
    config = model.config
    encoder.save_pretrained(folder, state_dict={**encoder.state_dict(), **_unused_weights(encoder)})
    _write_tokenizer(tokenizer, config.longest_text, folder)
    settings = {name: getattr(config, name) for name in own_settings(type(config))}
    for name, value in settings.items():
        if isinstance(value, str) and (
            Path(value).is_absolute() or Path(value).is_dir()
        ):  # of this machine
            settings[name] = Path(value).name
    method = method_of(model)
    assert method is not None, "models of other makers are refused before"
    record = {"method": method.name.replace("_", "-"), "settings": settings}
    write_record(folder / PublishedFolder.SETTINGS, record)
    tokens = {"method": "forward", "method_output_name": "last_hidden_state"}
    transformer = {
        "max_seq_length": config.longest_text,
        "do_lower_case": False,
        "modality_config": {"text": tokens, "message": {**tokens, "format": "flat"}},
        "module_output_name": "token_embeddings",
    }
    modules = {"": "Transformer", PublishedFolder.POOLING: "Pooling"}
    write_sentence_files(
        folder, modules, transformer, config.prompts, default_prompt=config.default_prompt_name
    )
    # One key per mode, which all servers read; some ignore the newer form with a single key.
    modes = (
        "cls_token",
        "mean_tokens",
        "max_tokens",
        "mean_sqrt_len_tokens",
        "weightedmean_tokens",
        "lasttoken",
    )
    chosen = {"cls": "cls_token", "lasttoken": "lasttoken"}.get(str(config.pooling), "mean_tokens")
    pooling = {f"pooling_mode_{mode}": mode == chosen for mode in modes}
    (folder / PublishedFolder.POOLING).mkdir()
    form = {"word_embedding_dimension": config.hidden_size, **pooling, "include_prompt": True}
    write_record(folder / PublishedFolder.POOLING / PublishedFolder.CONFIG, form)


def probes(
    model: UtteranceEncoder, tokenizer: PreTrainedTokenizerBase
) -> tuple[dict[str, Any], dict[str, Vectors]]:
    """Return the batches of each way of loading, and the model's own vectors by their names."""
    limit = model.config.longest_text
    prompt = model.config.prompt
    inputs = _probes(tokenizer, limit)
    expected = {}
    for way, batches in inputs.items():
        vectors = []
        for batch in batches:
            texts = [
                probe if isinstance(probe, str) else " ".join(turn["content"] for turn in probe)
                for probe in batch
            ]
            with torch.inference_mode():
                tokens = tokenize_utterances(texts, tokenizer, limit, Truncation(), prompt)
                vectors.append(model(**tokens).pooler_output.numpy())
        expected[way] = np.concatenate(vectors)
    way = "AutoModel, strings"
    inputs[way] = [[prompt + text for text in batch] for batch in inputs[way]]
    return inputs, expected


def _probes(tokenizer: PreTrainedTokenizerBase, max_tokens: int) -> dict[str, list[Any]]:
    """Return the batches of each way of loading.

    The module's docstring says what is left out where. Long texts have a batch of their own, as
    padding costs a large model minutes.
    """
    texts = ["I need a cheap hotel in the north.", " Größe?  40,\tbitte\n", ""]
    control = [f"Hello {special} there" for special in special_texts(tokenizer)[:10]]
    long = "My card was stolen! " * max_tokens
    conversations = [messages(("user", text)) for text in texts + control]
    conversations.append(messages(("user", texts[0]), ("assistant", control[0])))
    long_conversations = [
        messages(("user", long)),
        messages(("user", long), ("assistant", "Which card?")),
    ]
    return {
        "AutoModel, strings": [texts + control, [long]],
        "AutoModel, messages": [conversations[:-1]],
        "SentenceTransformer, strings": [texts + control, [long]],
        "SentenceTransformer, messages": [conversations, long_conversations],
    }


def _unused_weights(encoder: PreTrainedModel) -> dict[str, Tensor]:
    """Return zeros for the pooler that ours lacks.

    Without it each loading would report it as missing.
    """
    with torch.device("meta"):
        complete = type(encoder)(encoder.config).state_dict()
    missing = complete.keys() - encoder.state_dict().keys()
    dtype = next(encoder.parameters()).dtype
    return {name: torch.zeros(complete[name].shape, dtype=dtype) for name in sorted(missing)}


def _write_tokenizer(tokenizer: PreTrainedTokenizerBase, max_tokens: int, folder: Path) -> None:
    backend: Any = tokenizer.backend_tokenizer
    backend.no_padding()  # for readers of tokenizer.json alone
    backend.enable_truncation(max_tokens)
    tokenizer.save_pretrained(folder)
    config = json.loads((folder / PublishedFolder.TOKENIZER_CONFIG).read_text(encoding="utf-8"))
    kept = {key: value for key, value in config.items() if key not in _STALE}
    write_record(folder / PublishedFolder.TOKENIZER_CONFIG, kept)
