"""``python -m hf_dialemb.cli``, the same as ``dialemb``."""

import sys

from . import main

sys.exit(main())
