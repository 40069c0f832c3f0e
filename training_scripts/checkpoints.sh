#!/usr/bin/env bash
# Makes the encoders that come with the package, from corpora whose licences allow it, and measures them: make checkpoints.
# Given again, it goes on where it was stopped, and does not repeat what is done.
# Of each training there are three, which differ in the seed; their average is merged. JOBS=1 trains one after the other.
# What is summed trains in rank 32 from the start, in steps ten times as large: the sum loses little when it is cut.
set -euo pipefail
dialemb=.venv/bin/dialemb python=.venv/bin/python minilm=all-MiniLM-L6-v2 runs=runs/shipped
open="sgd/train multiwoz/train woz2/all taskmaster4/train self_dialogue/train"
dse="--config dse_minilm --max_steps 600 --rank 32 --learning_rate 2e-4 --save_steps 50"
cse="--config dialogue_cse_minilm --rank 32 --learning_rate 1e-3 --save_steps 25"
intents="--config action_minilm --corpus banking77/train snips/train --across_domains false --max_steps 150"
intents="$intents --warmup_steps 20 --per_device_train_batch_size 128 --save_steps 50"

# A line is a training. As many run at once as there are cores, on a thread each: quicker than one on all of them.
train() { OMP_NUM_THREADS=1 xargs -P "${JOBS:-$(getconf _NPROCESSORS_ONLN)}" -L 1 $dialemb train; }
{ for seed in 0 1 2; do
  echo "$dse --seed $seed --corpus $open --output_dir $runs/dse-$seed"
  echo "--config action_minilm --seed $seed --output_dir $runs/action-$seed"
  echo "$cse --seed $seed --output_dir $runs/dialogue-cse-$seed"
  echo "$intents --seed $seed --output_dir $runs/intents-$seed"
done
# What is learnt of actions that nobody showed: a corpus left out whole.
others="woz2/all muldogo/all banking77/train snips/train"
echo "--config action_minilm --corpus multiwoz/train multiwoz/dev $others --output_dir $runs/action-without-sgd"
echo "--config action_minilm --corpus sgd/train $others --output_dir $runs/action-without-multiwoz"
} | train

# What trainings moved, summed with weights and cut to a rank: merge FOLDER [--rank RANK] --model RUN=WEIGHT ...
merge() { test -d "$1" || $python training_scripts/merge.py --backbone ${backbone:-$minilm} --output "$@"; }
parts() { for seed in 0 1 2; do echo $runs/$1-$seed=$2; done; }
# Weights for dialogues alone, by the first seed on dev splits; the log is docs/results/dialogue-minilm-search.json.
search=dialogue-minilm-search.json
test -f $runs/$search || $python training_scripts/choose_weights.py --backbone $minilm --rank 16 \
  --model $runs/dialogue-cse-0 $runs/dse-0 --by sgd/dev multiwoz/dev dailydialog/dev self_dialogue/dev --output $runs/$search
cp $runs/$search docs/results/$search
for seed in 0 1 2; do
  merge $runs/cse-and-dse-$seed --model $runs/dialogue-cse-$seed=1 $runs/dse-$seed=2
done
merge $runs/cse-and-dse --model $(parts dialogue-cse 0.3333) $(parts dse 0.6667)
# A little more than their average: the most that keeps CLINC150's dev split at the backbone's accuracy.
merge $runs/action-minilm --model $(parts action 0.3667)
# Intents, too: less of the two keeps those of bank customers, and a little training on intents adds to them.
merge $runs/dialogue-minilm --model $(parts dialogue-cse 0.1667) $(parts dse 0.5) $(parts intents 0.0667)
for seed in 0 1 2; do
  echo "--config dial2vec_minilm --backbone $runs/dialogue-minilm --average_with_backbone 0.875 --corpus $open" \
    "--seed $seed --output_dir $runs/dial2vec-$seed"
done | train
# The size that the papers worked at: DSE alone and Dialog2Flow alone, in the upper half of the layers; weights by dev splits.
mpnet=sentence-transformers/all-mpnet-base-v2
echo "--config dse_minilm --backbone $mpnet --frozen_layers 6 --rank 32 --learning_rate 3e-4 --warmup_steps 15" \
  "--max_steps 200 --save_steps 50 --corpus $open --output_dir $runs/mpnet-dse" | train
backbone=$mpnet merge $runs/dialogue-mpnet --model $runs/mpnet-dse=2
echo "--config action_minilm --backbone $mpnet --frozen_layers 6 --max_steps 300 --warmup_steps 40 --save_steps 50" \
  "--output_dir $runs/mpnet-action" | train
backbone=$mpnet merge $runs/action-mpnet --rank 16 --model $runs/mpnet-action=1
# Turns that questions find: half of a training on top; with all of it, LoCoMo's dev conversations lose where words are not used.
echo "--config turns_minilm --backbone $runs/dialogue-minilm --average_with_backbone 0 --output_dir $runs/turns" | train
merge $runs/turn-minilm --model $runs/dialogue-minilm=0.5 $runs/turns=0.5
# Many languages in one encoder: half of DSE on pairs in fifteen, and half of turns.
e5=intfloat/multilingual-e5-small
test -f $runs/pairs.jsonl || $python training_scripts/pairs.py "$HF_DIALEMB_DATA" $runs/pairs.jsonl
{ echo "--config dse_minilm --backbone $e5 --corpus $runs/pairs.jsonl --exclude none --train_split all --dev_split none" \
  "--checkpoint_selection last --min_words 1 --max_tokens 40 --rank 32 --learning_rate 4e-4 --warmup_steps 15" \
  "--max_steps 240 --per_device_train_batch_size 64 --frozen_layers 6 --save_steps 40 --average_with_backbone 0" \
  "--output_dir $runs/multilingual-dse"
echo "--config turns_minilm --backbone $e5 --corpus ubuntu_irc_logs/train self_dialogue/train multiwoz/train" \
  "--exclude" {ubuntu_irc_logs,self_dialogue,multiwoz}/{dev,test} \
  "--loss_temperature 0.02 --frozen_layers 6 --average_with_backbone 0 --max_steps 100 --save_steps 25" \
  "--output_dir $runs/multilingual-turns"
} | train
echo "--config turns_minilm --backbone $e5 --loss_temperature 0.02 --frozen_layers 6 --average_with_backbone 0" \
  "--output_dir $runs/turns-multilingual" | train
backbone=$e5 merge $runs/turn-multilingual --model $runs/turns-multilingual=0.5
backbone=$e5 merge $runs/dialogue-multilingual --model $runs/multilingual-turns=0.5 $runs/multilingual-dse=0.5
table() { test -d $runs/$1-static || $python training_scripts/distil.py $open muldogo/all ubuntu_irc/train \
  --model $runs/$2 --dimensions $3 --runs $4 --output $runs/$1-static; }
table dialogue cse-and-dse 192 60000
table action action-minilm 64 12000

ship() { for name in {dialogue,action}-{minilm,static,mpnet}; do
  $python training_scripts/ship.py $runs/$name $name $([ -z "$1" ] || ls $runs/measured/$name-[a-z]*.json); done; }
ship ""
$python training_scripts/ship.py $runs/turn-minilm turn-minilm
for name in {dialogue,turn}-multilingual; do $python training_scripts/ship.py $runs/$name $name; done
# What misheard words mean, to dialogue-minilm: measured, not shipped.
test -d $runs/heard || $python training_scripts/hear.py --model dialogue-minilm \
  --corpus taskmaster4/train {banking77,snips,multiwoz}/train muldogo/all {chitchat,sgd,self_dialogue}/train \
  --exclude dialog2flow_evaluation/test {sgd,multiwoz,self_dialogue,clinc150}/{dev,test} {banking77,snips}/test --output $runs/heard
merge $runs/call-minilm --model $runs/heard=1
three() { echo "$1=$runs/$2-0,$runs/$2-1,$runs/$2-2"; }
measure() { $python benchmarks/encoders.py --output docs/results/encoders.json --work $runs/measured "$@"; }
utterances="domains intent-classification dialog2flow_evaluation"
measure --task $utterances action-similarity ablations --model tfidf
measure --task $utterances action-similarity ablations --model $minilm
# What people would take instead; the extra "peers" installs it.
$python benchmarks/peers.py --output $runs/peers
measure --task $utterances action-similarity ablations --model $runs/peers/{all-mpnet-base-v2,wordllama-256}
measure --task domains intent-classification --model $runs/peers/multilingual-e5-small dialogue-multilingual
for recipe in dialogue-cse dse; do measure --task $utterances --model "$(three $recipe $recipe)"; done
measure --task $utterances --model "$(three dialog2flow action)"
measure --task domains ablations --model "$(three dial2vec dial2vec)"
measure --task domains --model "$(three cse-and-dse cse-and-dse)"
measure --task $utterances action-similarity ablations --model dialogue-minilm
measure --task $utterances action-similarity --model action-minilm
measure --task action-similarity --model $runs/action-without-sgd $runs/action-without-multiwoz
measure --task $utterances action-similarity ablations --model dialogue-static
measure --task $utterances action-similarity --model action-static
measure --task $utterances action-similarity --model {dialogue,action}-mpnet
measure --task $utterances --model turn-minilm
measure --task rate --model tfidf $minilm \
  $runs/peers/{all-mpnet-base-v2,wordllama-256} {dialogue,action}-{minilm,static,mpnet} turn-minilm
ship figures
$dialemb evaluate --model {dialogue,action}-{static,minilm} $minilm --corpus star_small --split test --task domains \
  --seeds 3 --output docs/results/shipped.json
