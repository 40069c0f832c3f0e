"""The public names, each with its place: what ``import hf_dialemb`` offers, read by it and by type checkers alike."""

from .apps.dialogue_index import DialogueIndex as DialogueIndex
from .apps.merge import merge as merge
from .apps.search import search as search
from .corpora import load_dialogues as load_dialogues
from .encoders.loading import load_encoder as load_encoder
from .evaluation.run import evaluate as evaluate
from .flow.extract import extract_flow as extract_flow
from .models import register as register
from .models.backbones import weights as weights
from .models.deep_attention_matching import DeepAttentionMatchingConfig as DeepAttentionMatchingConfig
from .models.deep_attention_matching import DeepAttentionMatchingModel as DeepAttentionMatchingModel
from .models.dial2vec import Dial2VecConfig as Dial2VecConfig
from .models.dial2vec import Dial2VecModel as Dial2VecModel
from .models.dialog2flow import Dialog2FlowConfig as Dialog2FlowConfig
from .models.dialog2flow import Dialog2FlowModel as Dialog2FlowModel
from .models.dialogue import Dialogue as Dialogue
from .models.dialogue import Turn as Turn
from .models.dialogue_cse import DialogueCSEConfig as DialogueCSEConfig
from .models.dialogue_cse import DialogueCSEModel as DialogueCSEModel
from .models.dse import DSEConfig as DSEConfig
from .models.dse import DSEModel as DSEModel
from .models.dual_encoder import DualEncoderConfig as DualEncoderConfig
from .models.dual_encoder import DualEncoderModel as DualEncoderModel
from .models.encoder import encode as encode
from .models.errors import InputError as InputError
from .models.merged import MergedConfig as MergedConfig
from .models.merged import MergedModel as MergedModel
from .models.method import Method as Method
from .models.multi_granularity import MultiGranularityConfig as MultiGranularityConfig
from .models.multi_granularity import MultiGranularityModel as MultiGranularityModel
from .models.ranking import load_ranker as load_ranker
from .models.transformer_dual_encoder import TransformerDualEncoderConfig as TransformerDualEncoderConfig
from .models.transformer_dual_encoder import TransformerDualEncoderModel as TransformerDualEncoderModel
from .models.utterance import encode_utterances as encode_utterances
from .topics.topics import find_topics as find_topics
from .training.interface import train as train
from .training.trainer import DialogueTrainer as DialogueTrainer

__version__: str
