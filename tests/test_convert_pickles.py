"""Files that would run something when they are opened as usual: none of it happens, and the reason is told."""

from __future__ import annotations

import argparse
import collections
import logging
import pickle
import sys
import types
import zipfile
from pathlib import Path

import numpy as np
import plato_reference as plain
import pytest
import torch
from torch import nn

from hf_dialemb.hub.conversion.paddle_files import read_paddle
from hf_dialemb.hub.conversion.torch_files import read_module, read_tensors
from hf_dialemb.models.errors import InputError

TRACE = "hf_dialemb_was_fooled"


class Calls:
    """Pickles as a call."""

    def __init__(self, function, *arguments) -> None:
        self.call = (function, arguments)

    def __call__(self) -> None:
        """Lets the result of one call be called by another."""

    def __reduce__(self):
        return self.call


class Hides:
    """Pickles as a harmless-looking object whose state is a call."""

    def __init__(self, inner) -> None:
        self.inner = inner


def hostile(trace: Path) -> dict[str, object]:
    """Objects that write ``trace`` when they are unpickled by pickle itself."""
    import os
    import subprocess

    write = f"open({str(trace)!r}, 'w').close()"
    return {
        "os.system": Calls(os.system, f"touch {trace}"),
        "eval": Calls(eval, write),
        "exec": Calls(exec, write),
        "open": Calls(open, str(trace), "w"),
        "subprocess": Calls(subprocess.Popen, ["touch", str(trace)]),
        "getattr": Calls(getattr, Calls(__import__, "os"), "system"),
        "a call of what getattr gives": Calls(Calls(getattr, Calls(__import__, "os"), "system"), f"touch {trace}"),
        "torch.load": Calls(torch.load, str(trace)),
        "torch.hub": Calls(torch.hub.load, "nobody/nothing"),
        "map": Calls(list, Calls(map, eval, [write])),
        "in a list": [1, [Calls(eval, write)]],
        "in a state": Hides(Calls(eval, write)),
        "as a key": {("a", Calls(eval, write)): 1},
        "in hooks": collections.OrderedDict({"hook": Calls(eval, write)}),
        "a path of attributes": Calls(getattr, os, "system"),
    }  # fmt: skip


KINDS = sorted(hostile(Path("x")))
TORCH_FORMS = [{"pickle_protocol": 2}, {"pickle_protocol": 4}, {"_use_new_zipfile_serialization": False}]
READERS = {"tensors": read_tensors, "module": read_module}


def paddle(path: Path) -> dict[str, np.ndarray]:
    with path.open("rb") as stream:
        return read_paddle(stream, "file")


@pytest.fixture
def unpicklable(monkeypatch):
    """Lets modules be pickled by name, so that even such a file can be written."""
    monkeypatch.setitem(sys.modules, TRACE, types.ModuleType(TRACE))
    import copyreg

    monkeypatch.setitem(copyreg.dispatch_table, types.ModuleType, lambda module: (__import__, (module.__name__,)))


@pytest.mark.usefixtures("unpicklable")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("form", TORCH_FORMS)
def test_no_torch_file_runs_anything(kind, reader, form, tmp_path):
    torch.save({"bert.weight": torch.zeros(2), "extra": hostile(tmp_path / TRACE)[kind]}, tmp_path / "file.pt", **form)
    with pytest.raises(InputError, match=r"do not trust|damaged or of another kind|expected") as error:
        READERS[reader](tmp_path / "file.pt")
    assert "\n" not in str(error.value)
    assert not (tmp_path / TRACE).exists()


@pytest.mark.usefixtures("unpicklable")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", range(6))
def test_no_file_of_arrays_runs_anything(kind, protocol, tmp_path):
    content = {"w_0": np.zeros(2), "extra": hostile(tmp_path / TRACE)[kind]}
    (tmp_path / "file").write_bytes(pickle.dumps(content, protocol=protocol))
    with pytest.raises(InputError, match=r"do not trust the file|expected"):
        paddle(tmp_path / "file")
    assert not (tmp_path / TRACE).exists()


@pytest.mark.usefixtures("unpicklable")
def test_the_files_above_do_work_where_they_are_trusted(tmp_path):
    for kind in ("os.system", "eval", "a call of what getattr gives", "in a state", "map"):
        trace = tmp_path / kind.replace(" ", "_")
        pickle.loads(pickle.dumps(hostile(trace)[kind]))
        assert trace.exists(), kind


@pytest.mark.parametrize(
    ("program", "word"),
    [
        (b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00trueR.", "os.system"),  # no tuple of arguments
        (b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93.", "builtins.eval"),
        (b"(S'touch x'\nios\nsystem\n.", "os.system"),  # the opcode INST
        (b"(cos\nsystem\nS'touch x'\no.", "os.system"),  # the opcode OBJ
        (b"\x80\x02cnumpy\nload\n.", "numpy.load"),
        (b"\x80\x02cnumpy\nndarray\n)\x81.", "_Array"),
        (b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x03\x00\x00\x00hex\x86R.", "latin1"),
        (b"\x80\x02cnumpy\ndtype\nX\x01\x00\x00\x00O\x85R.", "expected numbers"),
        (b"\x80\x02\x82\x01.", "cannot be read"),  # an extension's code
        (b"\x80\x02K\x01Q.", "cannot be read"),  # a persistent id
        (b"\x80\x02]\x8f.", "cannot be read"),
        (pickle.dumps({"w": np.array([{}, []], dtype=object)}, protocol=2), "expected"),
        (pickle.dumps({"w": np.array(["a"])}, protocol=2), "expected"),
        (pickle.dumps({"w": np.zeros(2, dtype=[("a", "f4")])}, protocol=2), "expected"),
    ],
)
def test_crafted_pickles_of_arrays_are_refused(program, word, tmp_path):
    (tmp_path / "file").write_bytes(program)
    with pytest.raises(InputError, match=word):
        paddle(tmp_path / "file")


def test_a_crafted_zip_is_refused(tmp_path):
    torch.save({"a": torch.zeros(2)}, tmp_path / "file.pt")
    with zipfile.ZipFile(tmp_path / "file.pt") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for program in (b"cposix\nsystem\n(S'true'\ntR.", b"cbuiltins\neval\n(S'1'\ntR.", b"cos\npath.join\n)R.", b"junk"):
        with zipfile.ZipFile(tmp_path / "crafted.pt", "w") as archive:
            for name, content in members.items():
                archive.writestr(name, b"\x80\x02" + program if name.endswith("data.pkl") else content)
        for read in READERS.values():
            with pytest.raises(InputError, match=r"do not trust|damaged"):
                read(tmp_path / "crafted.pt")


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", "<f2", "<i8"])
def test_arrays_read_as_pickle_reads_them(protocol, dtype, tmp_path):
    arrays = {
        "matrix": np.arange(6, dtype=dtype).reshape(2, 3),
        "fortran": np.asfortranarray(np.arange(6, dtype=dtype).reshape(2, 3)),
        "scalar": np.array(7, dtype=dtype),
        "none": np.zeros((0, 3), dtype=dtype),
    }
    named = {**arrays, "pair": ("pair", arrays["matrix"])}
    (tmp_path / "file").write_bytes(pickle.dumps(collections.OrderedDict(named), protocol=protocol))
    got = paddle(tmp_path / "file")
    assert np.array_equal(got.pop("pair"), arrays["matrix"])
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


def damaged(content: bytes, seed: int) -> bytes:
    """Changes a few bytes."""
    generator = np.random.default_rng(seed)
    changed = bytearray(content)
    for place in generator.integers(len(content), size=3):
        changed[place] = generator.integers(256)
    return bytes(changed)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["pickle", "binary", "torch", "module"])
def test_damage_is_always_told(form, tmp_path):
    arrays = {"Model/a": np.ones((2, 3), np.float32), "b": np.arange(4, dtype=np.float32)}
    path = tmp_path / "file"
    if form == "pickle":
        path.write_bytes(pickle.dumps(arrays, protocol=2))
    elif form == "binary":
        plain.write_paddle(path, arrays)
        path.write_bytes(path.read_bytes()[200:])  # most of what is reserved is nothing
    else:
        torch.save(Model() if form == "module" else {"a": torch.ones(2, 3)}, path)
    whole, told = path.read_bytes(), 0
    for seed in range(300):
        content = damaged(whole, seed)
        path.write_bytes(bytes(200) + content if form == "binary" else content)
        try:
            (paddle if form in ("pickle", "binary") else read_module)(path)
        except InputError as error:
            told += "\n" not in str(error)
    assert told > 30


class Configuration:
    """Stands for the program's own configuration class."""

    def __init__(self) -> None:
        self.hidden_size = 3


class Block(nn.Module):
    """Stands for a part of the program's model."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.layers = nn.ModuleList([nn.LayerNorm(3), nn.LayerNorm(3)])
        self.act = nn.functional.gelu
        self.register_buffer("kept", torch.ones(2))
        self.register_buffer("passing", torch.ones(2), persistent=False)
        self.register_parameter("absent", None)


class Model(nn.Module):
    """Stands for the program's model, with all that it carries about."""

    def __init__(self) -> None:
        super().__init__()
        self.bert, self.config, self.result = Block(), Configuration(), {}
        self.args = argparse.Namespace(device=torch.device("cpu"), logger=logging.getLogger("x"), rate=0.1)
        self.constant = torch.ones(2)


@pytest.mark.parametrize("forget", [False, True], ids=["program at hand", "program absent"])
def test_a_module_saved_whole_gives_its_state(forget, tmp_path, monkeypatch):
    model = Model()
    torch.save(model, tmp_path / "model.pkl")
    expected = model.state_dict()
    if forget:
        for name in ("Configuration", "Block", "Model"):
            monkeypatch.delattr(sys.modules[__name__], name)
    got = read_module(tmp_path / "model.pkl")
    assert got.keys() == expected.keys()
    assert all(torch.equal(got[name], expected[name]) for name in expected)
    with pytest.raises(InputError, match="expected nothing but tensors"):
        read_tensors(tmp_path / "model.pkl")


def test_what_is_no_module_or_calls_something_is_refused(tmp_path):
    model = Model()
    model.args.rate = Calls(eval, f"open({str(tmp_path / TRACE)!r}, 'w').close()")
    kind = r"got test_convert_pickles\.Configuration, expected a module"
    for content, sentence in ((model, r"the file calls builtins\.eval"), (Configuration(), kind)):
        torch.save(content, tmp_path / "model.pkl")
        with pytest.raises(InputError, match=sentence):
            read_module(tmp_path / "model.pkl")
    assert not (tmp_path / TRACE).exists()
