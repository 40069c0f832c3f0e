"""The command ``dialemb train``: an encoder from dialogues."""

import argparse

from .parser import Commands, add_command, say

_HELP = """Write a setting as '--field value' (this wins), or as a line 'field: value' in the YAML file.

what to learn, from what
  --method NAME           see below (default: dial2vec), or the file of a method of your own: own_method.py
  --backbone MODEL        where it starts: a folder, a Hub id, dialogue-minilm (default: all-MiniLM-L6-v2)
  --corpus FILE ...       your file or folder, a Hub dataset, or a corpus such as sgd/train (default: sample)
  --columns, --roles      how to read your table: id=call,role=speaker,content=text; Agent=assistant
  --dates, --gap, --sheet, --raw, --strict   how to read files: dialemb corpus check --help explains them
  --exclude SET ...       leave out the dialogues of these evaluation sets; none leaves nothing out
  --max_dialogues N       learn from only this many, drawn at random
  --output_dir FOLDER     folder of the run (or --output); the same command resumes there

how long, how fast
  --max_steps N           total steps; overrides epochs
  --num_train_epochs N    passes over the data (default: 3)
  --per_device_train_batch_size N   examples in a step (default: 8)
  --gradient_accumulation_steps N   batches in a step, if memory is short
  --learning_rate X       (default: 5e-5)
  --warmup_steps N        steps to reach it
  --bf16 true             half the memory, if the hardware supports it
  --seed N                for everything drawn at random

what to keep
  --dev_split FILE        dialogues to choose a checkpoint by
  --checkpoint_selection SIGNAL   last, contrastive_loss, contrastive_accuracy, uniformity, dev_purity
  --patience N            stop after this many measurements without gain
  --save_steps N          steps between checkpoints
  --average_with_backbone X   share of the old weights in the result, 0 to 1
  --max_tokens N          where texts are cut

all settings, of every method and of transformers' Trainer: dialemb train --list-settings

methods: dial2vec (dialogues, speakers); dse, dialogue_cse, dialog2flow (utterances); dual_encoder,
  transformer_dual_encoder, deep_attention_matching (which response fits)
recipes: {recipes}

example: dialemb train my_dialogues.jsonl --config dial2vec_minilm --output_dir runs/mine"""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_command(commands, "train", "Train an encoder from dialogues.", _HELP, recipes=_recipes)
    parser.add_argument("--config", help="a recipe's name, or a YAML file of settings")
    parser.add_argument("--list-settings", action="store_true", help="print every setting with its default")
    parser.set_defaults(run=_run, takes_settings=True)


def _run(options: argparse.Namespace) -> None:
    from ..methods import register
    from ..training.arguments import describe_settings, make_settings, read_words

    values = read_words(options.rest)
    if options.list_settings:
        if str(values.get("method")).endswith(".py"):
            register(values["method"])
        print(describe_settings())
        return
    settings = make_settings(values, options.config)
    from ..training.run import run_training

    run_training(settings, say if settings.training.process_index == 0 else lambda line: None)


def _recipes() -> list[str]:
    from ..training.arguments import recipe_names

    return recipe_names()
