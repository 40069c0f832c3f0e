"""The block of the README on Python, on dialogues made in memory.

It is run from the installed wheel as well.
"""

import tempfile
from pathlib import Path

import hf_dialemb
from hf_dialemb.evaluation.results.rows import read_results
from hf_dialemb.storage.pretrained import shipped

WISHES = {"hotel": "book a room", "taxi": "order a car", "restaurant": "reserve a table"}


def dialogues_in_memory() -> list[dict]:
    """18 dialogues of three domains."""
    return [
        {
            "id": f"{domain}-{number}",
            "domains": [domain],
            "messages": [
                {"role": "user", "content": f"I want to {wish} for {number} people on {day}"},
                {
                    "role": "assistant",
                    "content": f"Of course, which {domain} do you want to {wish}?",
                },
                {
                    "role": "user",
                    "content": f"The {domain} in the {('north', 'south')[number % 2]}, please",
                },
                {
                    "role": "assistant",
                    "content": f"Your {domain} is booked, is there anything else on {day}?",
                },
            ],
        }
        for domain, wish in WISHES.items()
        for number, day in enumerate(
            ("monday", "tuesday", "wednesday", "thursday", "friday", "sunday"), 1
        )
    ]


def run_block(folder: Path, backbone: str) -> None:
    """Does every line of the block, and looks at what comes out."""
    dialogues = dialogues_in_memory()
    run = hf_dialemb.train(
        "dial2vec", dialogues, recipe="own_minilm", backbone=backbone, output_dir=folder / "mine"
    )
    encoder = hf_dialemb.load_encoder(folder / "mine")
    assert len(encoder.encode(dialogues)) == 18
    results = hf_dialemb.evaluate([encoder, backbone], dialogues, tasks=["domains"], seeds=range(2))
    assert results.to_pandas()["model"].nunique() == 2
    assert results.save(folder / "results.json").is_file()
    assert results._repr_markdown_().startswith("|") or "\n|" in results._repr_markdown_()
    hf_dialemb.extract_flow(dialogues, encoder=encoder).page(folder / "flow.html")
    assert "<html" in (folder / "flow.html").read_text(encoding="utf-8")[:500]
    hits = hf_dialemb.search(run, dialogues, "order a car for tomorrow", top=5)
    assert len(hits) == len(hits.to_pandas()) == 5


def run_check() -> None:
    """Measures the encoders that come with the package.

    Their committed figures, to a tenth of a point. The demo measures the backbone.
    """
    file = Path(__file__).parents[1] / "docs" / "results" / "shipped.json"
    committed = [row for row in read_results(file).results if row.model in shipped()]
    names = list(dict.fromkeys(row.model for row in committed))
    found = hf_dialemb.evaluate(names, "star_small", tasks=["domains"], seeds=3).results
    for before, now in zip(committed, found, strict=True):
        if (
            before.std is None and before.task != "encoding"
        ):  # else clusters and pairs are drawn, or it is a time
            assert (now.model, now.metric, now.setting) == (
                before.model,
                before.metric,
                before.setting,
            )
            assert abs(now.mean - before.mean) < 0.1, f"got {now}, expected {before}"


if __name__ == "__main__":
    run_check()
    with tempfile.TemporaryDirectory() as place:
        run_block(Path(place), "all-MiniLM-L6-v2")
