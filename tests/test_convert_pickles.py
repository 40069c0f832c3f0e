"""Files that would run something when they are opened as usual: none of it happens, and the reason is told."""

import argparse
import collections
import copyreg
import logging
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
from torch import nn

from hf_dialemb.errors import InputError
from hf_dialemb.papers.conversion.paddle_files import read_paddle
from hf_dialemb.papers.conversion.torch_files import read_module, read_tensors

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
        "a call of what getattr gives": Calls(Calls(getattr, Calls(__import__, "os"), "system"), f"touch {trace}"),
        "torch.hub": Calls(torch.hub.load, "nobody/nothing"),
        "map": Calls(list, Calls(map, eval, [write])),
        "in a list": [1, [Calls(eval, write)]],
        "in a state": argparse.Namespace(inner=Calls(eval, write)),
        "as a key": {("a", Calls(eval, write)): 1},
        "in hooks": collections.OrderedDict({"hook": Calls(eval, write)}),
    }


kinds = pytest.mark.parametrize("kind", sorted(hostile(Path("x"))))
TORCH_FORMS = [{"pickle_protocol": 2}, {"pickle_protocol": 4}, {"_use_new_zipfile_serialization": False}]
READERS = {"tensors": read_tensors, "module": read_module}


def paddle(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as stream:
        return read_paddle(stream, "file")


@pytest.fixture
def trace(monkeypatch, tmp_path):
    """What no file may write; modules are pickled by name, so that even such a file can be made."""
    monkeypatch.setitem(sys.modules, TRACE, types.ModuleType(TRACE))
    monkeypatch.setitem(copyreg.dispatch_table, types.ModuleType, lambda module: (__import__, (module.__name__,)))
    return tmp_path / TRACE


@kinds
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("form", TORCH_FORMS)
def test_no_torch_file_runs_anything(kind, reader, form, trace, tmp_path):
    torch.save({"bert.weight": torch.zeros(2), "extra": hostile(trace)[kind]}, tmp_path / "file.pt", **form)
    with pytest.raises(InputError, match=r"do not trust|damaged or of another kind|expected") as error:
        READERS[reader](tmp_path / "file.pt")
    assert "\n" not in str(error.value)
    assert not trace.exists()


@kinds
@pytest.mark.parametrize("protocol", range(6))
def test_no_file_of_arrays_runs_anything(kind, protocol, trace, tmp_path):
    (tmp_path / "file").write_bytes(pickle.dumps({"w_0": np.zeros(2), "extra": hostile(trace)[kind]}, protocol))
    with pytest.raises(InputError, match=r"do not trust the file|expected"):
        paddle(tmp_path / "file")
    assert not trace.exists()


@pytest.mark.parametrize("kind", ["os.system", "eval", "a call of what getattr gives", "in a state", "map"])
def test_the_files_above_do_work_where_they_are_trusted(kind, trace):
    pickle.loads(pickle.dumps(hostile(trace)[kind]))
    assert trace.exists()


@pytest.mark.parametrize(("program", "word"), [
    (b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00trueR.", "os.system"),  # no tuple of arguments
    (b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.", "builtins.eval"),
    (b"(S'touch x'\nios\nsystem\n.", "os.system"),  # the opcode INST
    (b"\x80\x02cnumpy\nload\n.", "numpy.load"),
    (b"\x80\x02cnumpy\nndarray\n)\x81.", "_Array"),
    (b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00hex\x86R.", "latin1"),
    (b"\x80\x02cnumpy\ndtype\nX\x01\x00\x00\x00O\x85R.", "expected numbers"),
    (b"\x80\x02\x82\x01.", "cannot be read"),  # an extension's code
    (b"\x80\x02K\x01Q.", "cannot be read"),  # a persistent id
    (pickle.dumps({"w": np.array([{}, []], dtype=object)}, protocol=2), "expected"),
    (pickle.dumps({"w": np.zeros(2, dtype=[("a", "f4")])}, protocol=2), "expected"),
])  # fmt: skip
def test_crafted_pickles_of_arrays_are_refused(program, word, tmp_path):
    (tmp_path / "file").write_bytes(program)
    with pytest.raises(InputError, match=word):
        paddle(tmp_path / "file")


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", "<f2", "<i8"])
def test_arrays_read_as_pickle_reads_them(protocol, dtype, tmp_path):
    matrix = np.arange(6, dtype=dtype).reshape(2, 3)
    arrays = {"matrix": matrix, "fortran": np.asfortranarray(matrix), "scalar": np.array(7, dtype), "none": matrix[:0]}
    named = collections.OrderedDict({**arrays, "pair": ("pair", matrix)})
    (tmp_path / "file").write_bytes(pickle.dumps(named, protocol=protocol))
    got = paddle(tmp_path / "file")
    assert np.array_equal(got.pop("pair"), matrix)
    assert got.keys() == arrays.keys()
    for name, array in arrays.items():
        assert got[name].dtype == array.dtype
        assert np.array_equal(got[name], array)


def test_what_versions_of_paddle_wrote_is_read(tmp_path):
    named = {"fc.weight": np.ones(2), "StructuredToParameterName@@": {"fc.weight": "FC_0.w_0"}}
    (tmp_path / "file").write_bytes(pickle.dumps(named, protocol=2))
    assert list(paddle(tmp_path / "file")) == ["FC_0.w_0"]
    arrays = {"a": np.arange(300, dtype=np.float32).reshape(2, 150), "b": np.ones((), np.float32)}
    for packed in (False, True):
        plain.write_paddle(tmp_path / "file", arrays, packed)
        got = paddle(tmp_path / "file")
        assert all(np.array_equal(got[name], array) for name, array in arrays.items())


@pytest.mark.slow
@pytest.mark.parametrize("form", ["pickle", "binary", "torch", "module"])
def test_damage_is_always_told(form, tmp_path):
    arrays = {"Model/a": np.ones((2, 3), np.float32), "b": np.arange(4, dtype=np.float32)}
    path, told, read = tmp_path / "file", 0, paddle if form in ("pickle", "binary") else read_module
    if form == "pickle":
        path.write_bytes(pickle.dumps(arrays, protocol=2))
    elif form == "binary":
        plain.write_paddle(path, arrays)
    else:
        torch.save(Model() if form == "module" else {"a": torch.ones(2, 3)}, path)
    whole = path.read_bytes()
    first = 200 if form == "binary" else 0  # most of what is reserved is nothing
    for seed in range(300):
        generator, changed = np.random.default_rng(seed), bytearray(whole)
        for place in generator.integers(first, len(whole), size=3):
            changed[place] = generator.integers(256)
        path.write_bytes(changed)
        try:
            read(path)
        except InputError as error:
            told += "\n" not in str(error)
    assert told > 30


class Configuration:
    hidden_size = 3


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.layers = nn.Linear(3, 3), nn.ModuleList([nn.LayerNorm(3), nn.LayerNorm(3)])
        self.act = nn.functional.gelu
        self.register_buffer("kept", torch.ones(2))
        self.register_buffer("passing", torch.ones(2), persistent=False)
        self.register_parameter("absent", None)


class Model(nn.Module):
    """Stands for a program's model, with all that it carries about."""

    def __init__(self) -> None:
        super().__init__()
        self.bert, self.config, self.result, self.constant = Block(), Configuration(), {}, torch.ones(2)
        self.args = argparse.Namespace(device=torch.device("cpu"), logger=logging.getLogger("x"), rate=0.1)


@pytest.mark.parametrize("forget", [False, True], ids=["program at hand", "program absent"])
def test_a_module_saved_whole_gives_its_state(forget, tmp_path, monkeypatch):
    model, path = Model(), tmp_path / "model.pkl"
    torch.save(model, path)
    for name in ("Configuration", "Block", "Model") if forget else ():
        monkeypatch.delattr(sys.modules[__name__], name)
    got, expected = read_module(path), model.state_dict()
    assert got.keys() == expected.keys()
    assert all(torch.equal(got[name], expected[name]) for name in expected)
    with pytest.raises(InputError, match="expected nothing but tensors"):
        read_tensors(path)


def test_what_is_no_module_or_calls_something_is_refused(trace, tmp_path):
    model = Model()
    model.args.rate = hostile(trace)["eval"]
    kind = r"got test_convert_pickles\.Configuration, expected a module"
    for content, sentence in ((model, r"the file calls builtins\.eval"), (Configuration(), kind)):
        torch.save(content, tmp_path / "model.pkl")
        with pytest.raises(InputError, match=sentence):
            read_module(tmp_path / "model.pkl")
    assert not trace.exists()
