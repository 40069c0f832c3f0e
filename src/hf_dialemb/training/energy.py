"""What a training costs in energy, estimated by codecarbon without the network, if one asks for it.

The environment variable `COUNTRY` names the country whose mix of electricity counts: ``HF_DIALEMB_ENERGY=DEU``. The
whole machine of the main process is measured, from the first step to the last: other programs that run there, such as a
second training, count too.
"""

import os
from importlib import metadata
from importlib.util import find_spec
from typing import Any

from transformers import TrainerCallback

from ..errors import InputError

COUNTRY = "HF_DIALEMB_ENERGY"
"""The environment variable that asks for a measurement: a country's three letters (ISO 3166-1)."""


class EnergyCallback(TrainerCallback):
    """Measures while `transformers.Trainer` trains; what it found is in ``record``, None before the end."""

    def __init__(self, country: str) -> None:
        self.country = country
        self.record: dict[str, Any] | None = None
        self._tracker: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Starts measuring."""
        if not state.is_world_process_zero:
            return
        from codecarbon import OfflineEmissionsTracker

        self._tracker = OfflineEmissionsTracker(
            country_iso_code=self.country, save_to_file=False, log_level="error", allow_multiple_runs=True
        )
        self._tracker.start()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ANN401
        """Stops measuring and fills `record`."""
        if self._tracker is None:
            return
        self._tracker.stop()
        measured = self._tracker.final_emissions_data
        self.record = {
            "kwh": measured.energy_consumed,
            "co2eq_kg": measured.emissions,
            "country": measured.country_name,
            "tool": f"codecarbon {metadata.version('codecarbon')}",
        }


def requested_energy() -> EnergyCallback | None:
    """Makes the callback if the environment asks for it."""
    country = os.environ.get(COUNTRY, "")
    if not country:
        return None
    if find_spec("codecarbon") is None:
        raise InputError(f'{COUNTRY}: the package codecarbon is missing; pip install "hf-dialemb[energy]"')
    import pycountry  # codecarbon brings it, and says nothing of a country that it does not know

    if pycountry.countries.get(alpha_3=country) is None:
        raise InputError(f"{COUNTRY}: got '{country}', expected a country's three letters, such as DEU; correct it")
    return EnergyCallback(country)
