"""The public names, each with its place: what ``import hf_dialemb`` offers to type checkers."""

from .apps.flow.extract import extract_flow as extract_flow
from .apps.search.search import search as search
from .apps.search.turn_index import TurnIndex as TurnIndex
from .apps.topics.model import find_topics as find_topics
from .apps.topics.model import load_topics as load_topics
from .data import load_dialogues as load_dialogues
from .dialogue import Dialogue as Dialogue
from .dialogue import Turn as Turn
from .encoders.load_encoder import load_encoder as load_encoder
from .errors import InputError as InputError
from .evaluation.evaluating import evaluate as evaluate
from .hub.publishing import push as push
from .methods import register as register
from .methods.dial2vec import Dial2VecConfig as Dial2VecConfig
from .methods.dial2vec import Dial2VecModel as Dial2VecModel
from .methods.dialog2flow import Dialog2FlowConfig as Dialog2FlowConfig
from .methods.dialog2flow import Dialog2FlowModel as Dialog2FlowModel
from .methods.dialogue_cse import DialogueCSEConfig as DialogueCSEConfig
from .methods.dialogue_cse import DialogueCSEModel as DialogueCSEModel
from .methods.dse import DSEConfig as DSEConfig
from .methods.dse import DSEModel as DSEModel
from .methods.dual_encoder import DualEncoderConfig as DualEncoderConfig
from .methods.dual_encoder import DualEncoderModel as DualEncoderModel
from .methods.dual_encoder import TransformerDualEncoderConfig as TransformerDualEncoderConfig
from .methods.dual_encoder import TransformerDualEncoderModel as TransformerDualEncoderModel
from .methods.method import Method as Method
from .methods.multi_granularity import MultiGranularityConfig as MultiGranularityConfig
from .methods.multi_granularity import MultiGranularityModel as MultiGranularityModel
from .methods.ranker import load_ranker as load_ranker
from .methods.turns import TurnsConfig as TurnsConfig
from .methods.turns import TurnsModel as TurnsModel
from .storage.pretrained import weights as weights
from .training.trainer import DialogueTrainer as DialogueTrainer
from .training.training_run import train as train

__version__: str
