"""A training in a process of its own, as ``accelerate launch`` starts it: ``-m hf_dialemb.training.process FILE``.

The file is JSON: ``config`` and ``words`` as `arguments.parse` takes them. Why a training failed is told in the run's
folder (`RunFolder.failure_file`), for the process that waits for it.
"""

import json
import sys
from pathlib import Path

from ..errors import InputError
from ..runs.files import write_json_atomically
from ..runs.folder import RunFolder
from .arguments import parse
from .run import train


def main(file: Path) -> int:
    """Carries out what the file asks for, and returns the exit code."""
    request = json.loads(file.read_text(encoding="utf-8"))
    folder = RunFolder(Path(request["output"]))
    folder.failure_file.unlink(missing_ok=True)
    try:
        settings = parse(request["config"], request["words"])
        train(settings, print if settings.training.process_index == 0 else lambda line: None)
    except Exception as error:
        known = isinstance(error, InputError)
        reason = str(error) if known else f"{type(error).__name__}: {error}"
        write_json_atomically(folder.failure_file, {"reason": " ".join(reason.split())})
        if not known:
            raise
        sys.stderr.write(f"error: {reason}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
