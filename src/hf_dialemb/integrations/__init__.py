"""Encoders in other libraries: sentence-transformers, MTEB, scikit-learn, datasets and Ray Data.

Every name is imported on first use, because each needs its own library; ``__init__.pyi`` lists
them.
"""

from ..hooks import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
