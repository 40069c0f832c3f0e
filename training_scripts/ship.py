"""Put an encoder into the package: python training_scripts/ship.py RUN NAME [RESULTS ...]."""

import sys
from pathlib import Path

from hf_dialemb.hub.shipping import ship

if __name__ == "__main__":
    print(f"Wrote {ship(Path(sys.argv[1]), sys.argv[2], [*map(Path, sys.argv[3:])])}")
