"""Read files of weights that would run something if they were opened as usual: nothing runs."""

import argparse
import collections
import copyreg
import os
import pickle
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import reference_models as plain
import torch

from hf_dialemb.errors import InputError
from hf_dialemb.papers.weight_files import read_paddle, read_torch

TRACE = "hf_dialemb_was_fooled"


class Calls:
    """Pickles as a call; the result of one may be called by another."""

    def __init__(self, function, *arguments) -> None:
        self.call = (function, arguments)

    def __call__(self) -> None: ...

    def __reduce__(self):
        return self.call


def hostile(trace: Path) -> dict[str, object]:
    """Objects that write ``trace`` when they are unpickled by pickle itself."""
    write = f"open({str(trace)!r}, 'w').close()"
    return {
        "os.system": Calls(os.system, f"touch {trace}"),
        "eval": Calls(eval, write),
        "open": Calls(open, str(trace), "w"),
        "subprocess": Calls(subprocess.Popen, ["touch", str(trace)]),
        "getattr": Calls(getattr, Calls(__import__, "os"), "system"),
        "a call of what getattr gives": Calls(
            Calls(getattr, Calls(__import__, "os"), "system"), f"touch {trace}"
        ),
        "torch.hub": Calls(torch.hub.load, "nobody/nothing"),
        "map": Calls(list, Calls(map, eval, [write])),
        "in a list": [1, [Calls(eval, write)]],
        "in a state": argparse.Namespace(inner=Calls(eval, write)),
        "as a key": {("a", Calls(eval, write)): 1},
        "in hooks": collections.OrderedDict({"hook": Calls(eval, write)}),
    }


kinds = pytest.mark.parametrize("kind", sorted(hostile(Path("x"))))
TORCH_FORMS = [
    {"pickle_protocol": 2},
    {"pickle_protocol": 4},
    {"_use_new_zipfile_serialization": False},
]


def paddle(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as stream:
        return read_paddle(stream, "file")


@pytest.fixture
def trace(monkeypatch, tmp_path):
    """Return a file that no pickle may write; modules are pickled by name."""
    monkeypatch.setitem(sys.modules, TRACE, types.ModuleType(TRACE))
    monkeypatch.setitem(
        copyreg.dispatch_table, types.ModuleType, lambda module: (__import__, (module.__name__,))
    )
    return tmp_path / TRACE


@kinds
@pytest.mark.parametrize("form", TORCH_FORMS)
def test_no_torch_file_runs_anything(kind, form, trace, tmp_path):
    torch.save(
        {"bert.weight": torch.zeros(2), "extra": hostile(trace)[kind]}, tmp_path / "file.pt", **form
    )
    with pytest.raises(
        InputError, match=r"do not trust|damaged or of another kind|expected"
    ) as error:
        read_torch(tmp_path / "file.pt")
    assert "\n" not in str(error.value)
    assert not trace.exists()


@kinds
@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_no_file_of_arrays_runs_anything(kind, protocol, trace, tmp_path):
    (tmp_path / "file").write_bytes(
        pickle.dumps({"w_0": np.zeros(2), "extra": hostile(trace)[kind]}, protocol)
    )
    with pytest.raises(InputError, match=r"do not trust the file|expected"):
        paddle(tmp_path / "file")
    assert not trace.exists()


@pytest.mark.parametrize(
    ("program", "word"),
    [
        (b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00trueR.", "os.system"),  # no tuple of arguments
        (b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.", "builtins.eval"),
        (b"(S'touch x'\nios\nsystem\n.", "os.system"),  # the opcode INST
        (b"\x80\x02cnumpy\nload\n.", "numpy.load"),
        (b"\x80\x02\x82\x01.", "cannot be read"),  # an extension's code
        (b"\x80\x02K\x01Q.", "cannot be read"),  # a persistent id
        (pickle.dumps({"w": np.array([{}, []], dtype=object)}, protocol=2), "expected"),
        (pickle.dumps({"w": np.zeros(2, dtype=[("a", "f4")])}, protocol=2), "expected"),
    ],
)
def test_crafted_pickles_of_arrays_are_refused(program, word, tmp_path):
    (tmp_path / "file").write_bytes(program)
    with pytest.raises(InputError, match=word):
        paddle(tmp_path / "file")


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<i8"])
def test_arrays_read_as_pickle_reads_them(protocol, dtype, tmp_path):
    matrix = np.arange(6, dtype=dtype).reshape(2, 3)
    arrays = {
        "matrix": matrix,
        "fortran": np.asfortranarray(matrix),
        "scalar": np.array(7, dtype),
        "none": matrix[:0],
    }
    named = collections.OrderedDict({**arrays, "pair": ("pair", matrix)})
    (tmp_path / "file").write_bytes(pickle.dumps(named, protocol=protocol))
    got = paddle(tmp_path / "file")
    assert np.array_equal(got.pop("pair"), matrix)
    assert got.keys() == arrays.keys()
    for name, array in arrays.items():
        assert got[name].dtype == array.dtype
        assert np.array_equal(got[name], array)


def test_names_and_packed_shapes_of_paddle_are_read(tmp_path):
    named = {"fc.weight": np.ones(2), "StructuredToParameterName@@": {"fc.weight": "FC_0.w_0"}}
    (tmp_path / "file").write_bytes(pickle.dumps(named, protocol=2))
    assert list(paddle(tmp_path / "file")) == ["FC_0.w_0"]
    arrays = {"a": np.arange(300, dtype=np.float32).reshape(2, 150), "b": np.ones((), np.float32)}
    for packed in (False, True):
        plain.write_paddle(tmp_path / "file", arrays, packed)
        got = paddle(tmp_path / "file")
        assert all(np.array_equal(got[name], array) for name, array in arrays.items())


@pytest.mark.slow
@pytest.mark.parametrize("form", ["pickle", "binary", "torch"])
def test_damage_is_always_one_sentence(form, tmp_path):
    arrays = {"Model/a": np.ones((2, 3), np.float32), "b": np.arange(4, dtype=np.float32)}
    path, refused, read = tmp_path / "file", 0, read_torch if form == "torch" else paddle
    if form == "pickle":
        path.write_bytes(pickle.dumps(arrays, protocol=2))
    elif form == "binary":
        plain.write_paddle(path, arrays)
    else:
        torch.save({"a": torch.ones(2, 3)}, path)
    whole = path.read_bytes()
    first = 200 if form == "binary" else 0  # most of the reserved bytes mean nothing
    for seed in range(200):
        generator, changed = np.random.default_rng(seed), bytearray(whole)
        for place in generator.integers(first, len(whole), size=3):
            changed[place] = generator.integers(256)
        path.write_bytes(changed)
        try:
            read(path)
        except InputError as error:
            refused += "\n" not in str(error)
    assert refused > 20
