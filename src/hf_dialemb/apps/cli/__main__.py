"""``python -m hf_dialemb.apps.cli``, the same as ``dialemb``."""

import sys

from . import main

sys.exit(main())
