"""Encoders in other libraries: sentence-transformers, MTEB, scikit-learn, datasets and Ray Data.

Every name is imported on first use, because each needs its own library; ``__init__.pyi`` lists them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
