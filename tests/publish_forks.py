"""Publishes in a process of its own for each line of its input, ``[folder, repository]``; answers with its id and exit.

All of them are forks of this one, so that each starts with everything imported and may be killed at once.
"""

import json
import os
import sys
from pathlib import Path

import huggingface_hub.hf_api  # noqa: F401 - imported once, for all forks

from hf_dialemb.hub.publish.publishing import publish

for line in sys.stdin:
    folder, repository = json.loads(line)
    child = os.fork()
    if child == 0:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        code = 1
        try:
            list(publish(Path(folder), repository))
            code = 0
        finally:
            os._exit(code)
    sys.stdout.write(f"{child}\n")
    sys.stdout.flush()
    sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
    sys.stdout.flush()
