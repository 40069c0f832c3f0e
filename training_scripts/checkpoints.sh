#!/usr/bin/env bash
# Makes the encoders that come with the package, from corpora whose licences allow it, and measures them: make checkpoints.
# Three seeds of each training; their weights are averaged. Run again, it goes on where it was stopped.
set -euo pipefail
dialemb=.venv/bin/dialemb python=.venv/bin/python minilm=all-MiniLM-L6-v2 runs=runs/shipped
open="sgd/train multiwoz/train woz2/all taskmaster4/train self_dialogue/train"
flow="--config dialog2flow_single_minilm --rank 32 --learning_rate 1e-3 --max_steps 600 --average_with_backbone 0"

for seed in 0 1 2; do
  $dialemb train --config dialogue_cse_minilm --seed $seed --output_dir $runs/dialogue-cse-$seed
  $dialemb train --config dse_minilm --max_steps 600 --seed $seed --corpus $open --output_dir $runs/dse-$seed
  $dialemb train $flow --seed $seed --output_dir $runs/dialog2flow-$seed \
    --corpus sgd/train multiwoz/train multiwoz/dev woz2/all muldogo/all
done
for left_out in sgd multiwoz; do
  $dialemb train $flow --output_dir $runs/dialog2flow-without-$left_out \
    --corpus $(printf '%s\n' sgd/train multiwoz/train multiwoz/dev woz2/all muldogo/all | grep -v "^$left_out")
done

merge() { test -d "$1" || $dialemb merge --backbone $minilm --output "$@"; }
for recipe in dialogue-cse dse; do
  merge $runs/$recipe --model $runs/$recipe-{0,1,2}=0.3333
done
merge $runs/dialogue-minilm --rank 16 --model $runs/dialogue-cse $runs/dse \
  --choose-by sgd/dev multiwoz/dev dailydialog/dev self_dialogue/dev
merge $runs/action-minilm --rank 32 --model $runs/dialog2flow-{0,1,2}=0.3333
test -d $runs/dial2vec || $dialemb train --config dial2vec_minilm --backbone $runs/dialogue-minilm --output_dir $runs/dial2vec
test -d $runs/dialogue-static || $dialemb distil --teacher $runs/dialogue-minilm --output $runs/dialogue-static \
  --corpus $open muldogo/all ubuntu_irc/train
