"""Tasks of the five papers that `hf_dialemb.evaluation` does without."""

from ...evaluation.tasks.task import Task

_DIALOGUES, _UTTERANCES, _PAIRS, _RETRIEVAL = "dialogues", "utterances", "sentence-pairs", "retrieval"

# fmt: off
_ALL = (
    Task("ablations", "the same of each speaker alone, and of speakers put together",
         "hf_dialemb.papers.tasks.ablations:load_ablations", "dial2vec, sections 5.3.1 and 5.3.2"),
    Task("flow-extraction", "is the graph of clusters of utterances like that of their annotated actions",
         "hf_dialemb.papers.tasks.flow_extraction:load_flows", "Dialog2Flow, section 7", (_DIALOGUES, _UTTERANCES)),
    Task("bag-of-words-probe", "what a linear layer reads from the vector of a dialogue so far: its last turn's words",
         "hf_dialemb.papers.tasks.probes:load_words", "Mehri and Eskenazi (2019), section 5.2"),
    Task("dialogue-act-probe", "what a linear layer reads from the vector of a dialogue so far: the next turn's acts",
         "hf_dialemb.papers.tasks.probes:load_acts", "Mehri and Eskenazi (2019), section 5.2"),
    Task("semantic-retrieval", "does a sentence find others of its intent among those that share words with it",
         "hf_dialemb.papers.tasks.sentences:load_rankings", "DialogueCSE, section 5.1.2",
         (_RETRIEVAL, _DIALOGUES, _UTTERANCES)),
    Task("dialogue-sts", "are sentences as similar as people say",
         "hf_dialemb.papers.tasks.sentences:load_scored_pairs", "DialogueCSE, section 5.1.2", (_PAIRS,)),
    Task("dialogue-nli", "is a sentence closer to what agrees with it than to what contradicts it",
         "hf_dialemb.papers.tasks.sentences:load_anchors", "DSE, section 4.5", (_PAIRS,)),
    Task("intent-fine-tuning", "intents of utterances, by a copy of the model that learns from few examples of each",
         "hf_dialemb.papers.tasks.few_shot_tuning:load_fine_tuning", "DSE, section 4.2.1 and appendix C",
         (_UTTERANCES,), fine_tunes=True),
    Task("dialogue-action-prediction", "what the assistant does next, by a copy of the model that learns from examples",
         "hf_dialemb.papers.tasks.few_shot_tuning:load_acts", "DSE, section 4.2.2; TOD-BERT, section 5",
         fine_tunes=True),
)
# fmt: on

TASKS = {task.name: task for task in _ALL}
