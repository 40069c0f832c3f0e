"""The settings of a training run: one flat YAML file, and ``--field value`` on the command line on top of it.

Three kinds of setting share one namespace: what the run is (`RunArguments`), what the method is (its config's own
fields), and how it is trained (every field of `transformers.TrainingArguments`).
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import yaml

from ..models import METHODS, get_method
from ..models.backbones import MINILM
from ..models.config import MethodConfig, check_range, own_settings
from ..models.errors import InputError, unknown_name
from .checks import check_method, check_training

if TYPE_CHECKING:
    from transformers import TrainingArguments

# Where this package differs from transformers.
_DEFAULTS = {"remove_unused_columns": False, "report_to": "none", "logging_steps": 10, "output_dir": "runs/dial2vec"}

_PACKAGE = Path(__file__).parents[1]
_RECIPES = (_PACKAGE / "recipes", _PACKAGE.parents[1] / "training_scripts" / "recipes")  # a wheel's, a checkout's


TRAINED = tuple(name for name in METHODS if name != "multi_granularity")
"""The methods that a run trains; an ensemble is made of runs."""


@dataclass
class RunArguments:
    """What a run is: method, backbone, data, and which checkpoint it ends with.

    Raises:
        InputError: A value is out of range.
    """

    method: str = field(default="dial2vec", metadata={"help": f"One of: {', '.join(TRAINED)}."})
    backbone: str | None = field(
        default=None,
        metadata={
            "help": "Folder or Hub id of the encoder to start from (default: all-MiniLM-L6-v2); for methods that begin "
            "with the words of the corpus, a text file of word vectors such as GloVe's, or nothing."
        },
    )
    dropout: float | None = field(
        default=None, metadata={"help": "Replaces the backbone's dropout, in [0, 1]; 0 is fastest."}
    )
    corpus: list[str] = field(
        default_factory=lambda: ["sample"],
        metadata={
            "help": "One or more corpora: a name, or a name and a split as multiwoz/dev, or a file, folder or Hub "
            "dataset of your own."
        },
    )
    data_dir: str | None = field(default=None, metadata={"help": "Folder that holds the corpora."})
    columns: str | None = field(
        default=None, metadata={"help": "Your table: which column is what, as id=call,role=speaker,content=text."}
    )
    roles: str | None = field(
        default=None, metadata={"help": "Your speakers: who is who, as Agent=assistant,Customer=user."}
    )
    exclude: list[str] | None = field(
        default=None,
        metadata={
            "help": "Evaluation sets, as sgd/test: what equals or nearly equals something of them is left out of "
            "training. Default: the other splits of the corpus that are at hand; 'none' leaves everything in."
        },
    )
    train_split: str = field(default="train", metadata={"help": "Split to learn from; Dialog2Flow alone reads labels."})
    dev_split: str | None = field(
        default=None,
        metadata={
            "help": "Split for choosing a checkpoint, or a file or folder of your own; 'none' for none, whatever the "
            "recipe says."
        },
    )
    max_dialogues: int | None = field(
        default=None, metadata={"help": "Learn from so many, drawn by the seed; at least 2."}
    )
    max_dev_dialogues: int = field(
        default=200, metadata={"help": "So many dev dialogues are used, the same ones for every seed; at least 2."}
    )
    min_turns: int | None = field(
        default=None,
        metadata={"help": "Shorter dialogues are left out (dial2vec's program: 5); by default what the method needs."},
    )
    skip_invalid: bool = field(default=False, metadata={"help": "Count and leave out malformed dialogues."})
    checkpoint_selection: Literal["last", "contrastive_loss", "contrastive_accuracy", "uniformity", "dev_purity"] = (
        field(
            default="last",
            metadata={
                "help": "Which checkpoint the run ends with: the last, or the best of the dev split by a signal that "
                "needs no label. dev_purity reads labels: it is the paper's protocol, kept for comparison."
            },
        )
    )
    patience: int | None = field(
        default=None,
        metadata={
            "help": "Stop after so many measurements of that signal without gain; by default all steps are taken."
        },
    )
    average_with_backbone: float = field(
        default=0.0,
        metadata={
            "help": "Share of the backbone's weights in the final average, in [0, 1]; 0 keeps the trained weights."
        },
    )
    head_learning_rate: float | None = field(
        default=None,
        metadata={"help": "Learning rate of the contrastive heads, above 0; by default that of the encoder."},
    )
    dev_candidates: str | None = field(
        default=None,
        metadata={"help": "For rankers: a file of candidate sets (see `dialemb candidates`) that choose a checkpoint."},
    )
    granularity_model: str | None = field(
        default=None,
        metadata={
            "help": "For rankers whose granularity is set: folder of the one that tells how similar responses are."
        },
    )
    language_model_steps: int | None = field(
        default=None,
        metadata={
            "help": "First go on with the backbone's masked-language-model pre-training on the same dialogues, for so "
            "many steps of 50 utterances; wins over language_model_epochs. By default it is left out."
        },
    )
    language_model_epochs: float | None = field(
        default=None, metadata={"help": "The same, for so many passes over the utterances (DialogueCSE: 0.5)."}
    )
    center: bool = field(
        default=False,
        metadata={
            "help": "After training, store the mean embedding of (up to 500) training dialogues and take it off "
            "every embedding: what all dialogues share tells nothing about one of them."
        },
    )
    learning_rate_schedule: Literal["trainer", "official"] = field(
        default="trainer",
        metadata={"help": "official: warm up over a tenth of the number of examples, then 1 - steps/examples."},
    )
    resume: bool = field(default=True, metadata={"help": "Go on from the last complete checkpoint in output_dir."})

    def __post_init__(self) -> None:
        self.dev_split = None if self.dev_split == "none" else self.dev_split
        if self.method not in METHODS:
            raise unknown_name("method", self.method, TRAINED)
        if self.method not in TRAINED:
            raise InputError(
                f"method: got {self.method}, whose members are trained; train them one by one and assemble them with "
                "MultiGranularityModel.from_members, or let dialemb ensemble do both"
            )
        check_range("max_dialogues", self.max_dialogues, 2)
        check_range("max_dev_dialogues", self.max_dev_dialogues, 2)
        check_range("min_turns", self.min_turns, 1)
        check_range("patience", self.patience, 1)
        check_range("head_learning_rate", self.head_learning_rate, 0, exclusive=True)
        check_range("language_model_steps", self.language_model_steps, 1)
        check_range("language_model_epochs", self.language_model_epochs, 0, exclusive=True)
        check_range("dropout", self.dropout, 0, 1)
        check_range("average_with_backbone", self.average_with_backbone, 0, 1)
        if self.checkpoint_selection != "last" and self.dev_split is None and self.dev_candidates is None:
            raise InputError(
                f"checkpoint_selection: {self.checkpoint_selection} needs a dev_split; name one, or choose last"
            )


@dataclass(frozen=True)
class Settings:
    """A parsed request: the run, the method's own settings, and the trainer's."""

    run: RunArguments
    method: dict[str, Any]
    training: TrainingArguments

    @property
    def sample_seed(self) -> int:
        """What ``max_dialogues`` are drawn by: ``data_seed``, or the seed of everything else."""
        return self.training.seed if self.training.data_seed is None else int(self.training.data_seed)

    def fingerprint(self) -> dict[str, Any]:
        """Returns everything that decides the final weights; a resumed run must agree with it."""
        names = (
            "learning_rate", "per_device_train_batch_size", "gradient_accumulation_steps", "num_train_epochs",
            "max_steps", "seed", "data_seed", "bf16", "fp16", "weight_decay", "lr_scheduler_type", "warmup_steps",
            "max_grad_norm", "optim", "adam_beta1", "adam_beta2", "adam_epsilon", "lr_scheduler_kwargs",
            "dataloader_drop_last", "optim_args", "neftune_noise_alpha",
        )  # fmt: skip
        run = {key: value for key, value in vars(self.run).items() if key not in ("resume", "data_dir")}
        training = {name: getattr(self.training, name) for name in names}
        record: dict[str, Any] = json.loads(json.dumps({**run, **self.method, **training}, default=str))
        return record


def parse(config: str | None, overrides: Sequence[str]) -> Settings:
    """Reads the settings of a run.

    Args:
        config: A YAML file of flat ``field: value`` lines, the name of a recipe that comes with the package, or None.
        overrides: ``--field value`` words; they win over the file.

    Returns:
        The settings.

    Raises:
        InputError: A file is missing or malformed, a field unknown, or a value of the wrong type or out of range.
    """
    words = _joined([*_words(config), *overrides])
    method = _method_name(words)
    run_class, method_class = RunArguments, _settings_class(get_method(method).config_class)
    run, chosen, training = _parse(run_class, method_class, words)
    check_training(training)
    get_method(method).config_class(**vars(chosen))  # the config's own checks, before any long work
    check_method(get_method(method), run, vars(chosen), training)
    if run.backbone is None and not get_method(method).from_scratch:
        run.backbone = MINILM
    return Settings(run, dict(vars(chosen)), training)


def _words(config: str | None) -> list[str]:
    if config is None:
        return []
    path = recipe_path(config) or Path(config)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        if not path.suffix:
            hint = str(unknown_name("recipe", config, recipe_names()))
            raise InputError(f"--config: {hint} A YAML file of settings works too.") from None
        raise InputError(f"--config {config}: {error.strerror}; expected a YAML file of settings") from None
    try:
        record = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"--config {config}: not YAML ({' '.join(str(error).split())})") from None
    if not isinstance(record, dict):
        got = "nothing" if record is None else type(record).__name__
        raise InputError(f"--config {config}: got {got}, expected lines of 'field: value'; write some")
    words = []
    for key, value in record.items():
        if isinstance(value, dict):
            value = json.dumps(value)
        if value is not None:
            words += [f"--{key}", *map(str, value if isinstance(value, list) else [value])]
    return words


def recipe_path(name: str) -> Path | None:
    """Finds a recipe that comes with the package, such as ``dial2vec_minilm``; None if there is none of this name."""
    return next((folder / f"{name}.yaml" for folder in _RECIPES if (folder / f"{name}.yaml").is_file()), None)


def recipe_names() -> list[str]:
    """Lists the recipes that come with the package."""
    return sorted(path.stem for folder in _RECIPES for path in folder.glob("*.yaml"))


def _method_name(words: Sequence[str]) -> str:
    name = "dial2vec"
    for position, word in enumerate(words):
        field_name, given, value = word.partition("=")
        if field_name == "--method" and (given or position + 1 < len(words)):
            name = value if given else words[position + 1]
    return name


def _settings_class(config_class: type) -> type:
    """Makes a plain dataclass of a config's own settings, for the parser."""
    hints = {}
    for owner in reversed(config_class.__mro__):  # each in its own module, whose names its annotations are in
        if issubclass(owner, MethodConfig):
            hints.update(inspect.get_annotations(owner, eval_str=True))
    defaults = {item.name: item.default for item in dataclasses.fields(config_class)}
    return dataclasses.make_dataclass(
        f"{config_class.__name__}Settings",
        [(name, hints[name], field(default=defaults[name])) for name in own_settings(config_class)],
    )


def _parse(run_class: type, method_class: type, words: Sequence[str]) -> tuple[RunArguments, Any, TrainingArguments]:
    import torch
    from transformers import HfArgumentParser, TrainingArguments

    class Parser(HfArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise InputError(f"{message}; see --help")

    groups: Any = (run_class, method_class, TrainingArguments)
    parser = Parser(groups, allow_abbrev=False, add_help=False)
    known = {word for action in parser._actions for word in action.option_strings}
    for word in words:
        if word.startswith("--") and word.split("=")[0] not in known:
            raise unknown_setting(word.split("=")[0], known)
    # transformers refuses bf16 on a machine without accelerator unless it is told that the CPU is meant.
    parser.set_defaults(use_cpu=not torch.accelerator.is_available())
    parser.set_defaults(**_DEFAULTS)
    if words and not words[0].startswith("--"):
        raise InputError(f"unexpected argument '{words[0]}'; settings are given as --field value")
    try:
        run, chosen, training = parser.parse_args_into_dataclasses(list(words), look_for_args_file=False)
    except InputError:
        raise
    except (ValueError, TypeError, ImportError) as error:
        raise InputError(f"{' '.join(str(error).split())}; correct the setting") from None
    return run, chosen, training


def _joined(words: Sequence[str]) -> list[str]:
    """Ties negative numbers to their settings, as the parser takes -1e-5 for a setting; checks what is to be JSON."""
    joined: list[str] = []
    for word in words:
        if word.startswith("{"):
            try:
                json.loads(word)
            except ValueError as error:
                setting = joined[-1] if joined else "settings"
                raise InputError(f"{setting}: got {word}, expected JSON ({error}); correct it") from None
        if re.fullmatch(r"-[\d.][\d.e+-]*", word) and joined and joined[-1].startswith("--"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def unknown_setting(word: str, known: set[str]) -> InputError:
    """Makes the error for a misspelt setting, without listing the trainer's hundred fields."""
    full = str(unknown_name("setting", word.removeprefix("--"), {name.removeprefix("--") for name in known}))
    return InputError(full.split(" Known: ")[0] + " `dialemb train --list-settings` lists them.")


def describe_settings() -> str:
    """Lists every setting with its default and meaning, for ``dialemb train --list-settings``."""
    from transformers import TrainingArguments

    groups = {"the run": RunArguments, "transformers.TrainingArguments": TrainingArguments}
    lines = []
    for title, group in groups.items():
        lines.append(f"# {title}")
        for item in dataclasses.fields(group):
            if item.init:
                default = _DEFAULTS.get(item.name, item.default)
                if default is dataclasses.MISSING:
                    default = item.default_factory() if callable(item.default_factory) else None
                lines.append(f"{item.name}: {default}  # {' '.join(str(item.metadata.get('help', '')).split())}")
    for name in METHODS:
        config_class = get_method(name).config_class
        lines.append(f"# {name}")
        defaults = {item.name: item.default for item in dataclasses.fields(config_class)}
        said = _attributes(config_class)
        lines += [
            f"{setting}: {defaults[setting]}" + (f"  # {said[setting]}" if setting in said else "")
            for setting in own_settings(config_class)
        ]
    return "\n".join(lines)


def _attributes(config_class: type) -> dict[str, str]:
    """Reads what the docstrings of a config and of those that it extends say of their settings."""
    found: dict[str, str] = {}
    for owner in reversed(config_class.__mro__):
        text = inspect.cleandoc(vars(owner).get("__doc__") or "")
        section = text.partition("Attributes:\n")[2].split("\n\n")[0]
        for item in re.split(r"\n    (?=\w+: )", f"\n{section}")[1:]:
            name, _, meaning = item.partition(": ")
            found[name] = " ".join(meaning.split())
    return found
