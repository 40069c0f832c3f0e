"""Shards on a cluster of Ray: machines are processes here, and they or their workers are lost on the way."""

import os
import signal

import pyarrow.parquet as pq
import pytest
from huggingface_hub import constants
from killed import files_of
from test_unify import register_two

from hf_dialemb.corpora import write_jsonl
from hf_dialemb.corpora.audit import leakage
from hf_dialemb.dialogue import Dialogue
from hf_dialemb.errors import InputError
from hf_dialemb.papers.corpora import unify
from hf_dialemb.retrieval import embed as module
from hf_dialemb.retrieval.embed import embed, embed_file
from hf_dialemb.runs import shards

ray = pytest.importorskip("ray", reason="ray is not installed")
NODE = {"object_store_memory": 100_000_000, "include_dashboard": False}


@pytest.fixture(scope="module")
def cluster():
    """A first machine that computes nothing, and a second one that does."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **NODE})
    cluster.second = cluster.add_node(num_cpus=1, **NODE)
    ray.init(cluster.address, log_to_driver=False)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def kill_a_worker(tmp_path, monkeypatch):
    """A function that has the worker killed, once, that gets a dialogue; it returns the file that is there then."""

    def prepare(module, fatal):
        killed, through = tmp_path / f"{fatal.replace('/', '-')}.killed", module.through

        def killed_once(work):
            def work_or_die(shard):
                dialogues = shard if isinstance(shard, list) else shard[-1]
                if fatal in [dialogue.id for dialogue in dialogues] and not killed.exists():
                    killed.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                return work(shard)

            return work_or_die

        def through_or_die(work, shards, engine, **options):
            return through(killed_once(work) if engine == "ray" else work, shards, engine, **options)

        monkeypatch.setattr(module, "through", through_or_die)
        return killed

    return prepare


@pytest.mark.slow
def test_rows_are_those_of_one_machine_when_a_worker_and_a_machine_are_lost_and_one_joins(
    cluster, kill_a_worker, tmp_path, sample_dialogues, monkeypatch
):
    source = tmp_path / "dialogues.jsonl"
    write_jsonl(sample_dialogues, source)
    for level in ("dialogues", "utterances"):
        embed_file("dialogue-static", source, tmp_path / f"{level}.parquet", 8, level=level)
    monkeypatch.setattr(constants, "HF_ASSETS_CACHE", str(tmp_path / "kept"))
    lost, write, killed = [], shards.write_atomically, kill_a_worker(shards, sample_dialogues[8].id)

    def lose_a_machine_and_write(*arguments):
        if not lost:
            lost.append(cluster.add_node(num_cpus=1, **NODE))
            cluster.remove_node(cluster.second, allow_graceful=False)
        write(*arguments)

    monkeypatch.setattr(shards, "write_atomically", lose_a_machine_and_write)
    for level in ("dialogues", "utterances"):
        places = source.as_uri(), (tmp_path / "ray.parquet").as_uri()
        embed("dialogue-static", *places, shard_size=8, level=level, engine="ray")
        found, expected = pq.read_table(tmp_path / "ray.parquet"), pq.read_table(tmp_path / f"{level}.parquet")
        assert found.equals(expected)
        assert found.schema.equals(expected.schema, check_metadata=True)
    assert killed.exists()
    assert lost
    weights = module.fingerprint("dialogue-static")
    monkeypatch.setattr(module, "fingerprint", lambda model: "another")
    with pytest.raises(InputError, match=f"got weights {weights}, expected another; put them there"):
        embed_file("dialogue-static", source, tmp_path / "other.parquet", engine="ray")
    assert not (tmp_path / "other.parquet").exists()


@pytest.fixture
def made_up(tmp_path, monkeypatch, sample_dialogues):
    """A folder of two corpora in which something leaks, some of it without an id, cut into shards of five dialogues."""
    monkeypatch.setattr(leakage, "_SHARD", 5)
    monkeypatch.setattr(unify, "_ROWS", 5)
    register_two(monkeypatch, tmp_path, sample_dialogues)
    utterances = [Dialogue(each.turns[:1], each.id) for each in sample_dialogues[30:33]]
    write_jsonl(utterances, tmp_path / "utterances.jsonl")
    return tmp_path


@pytest.mark.slow
def test_leaks_are_those_of_one_machine_when_a_worker_is_lost(cluster, made_up, kill_a_worker, sample_dialogues):
    sets = ["one/train", "two/train"], ["one/dev", "two/test", str(made_up / "utterances.jsonl")], made_up
    found = leakage.find_leakage(*sets, output=made_up / "here.json")
    assert [each.removed_dialogues > 0 for each in found.cleaning.values()] == [True, True]
    assert any(example.training_id.startswith("#") for row in found.rows for example in row.examples)
    killed = kill_a_worker(shards, sample_dialogues[12].id)
    leakage.find_leakage(*sets, output=made_up / "there.json", engine="ray")
    assert killed.exists()
    assert (made_up / "there.json").read_bytes() == (made_up / "here.json").read_bytes()


@pytest.mark.slow
def test_unified_corpora_are_those_of_one_machine_when_a_worker_is_lost(
    cluster, made_up, kill_a_worker, sample_dialogues
):
    options = {"evaluation": [str(made_up / "utterances.jsonl")]}
    stats = unify.unify(["one", "two"], made_up, made_up / "here", **options)
    assert all(each["excluded"]["dialogues"] for each in stats["corpora"].values())
    killed = kill_a_worker(shards, sample_dialogues[12].id)
    unify.unify(["one", "two"], made_up, made_up / "there", engine="ray", **options)
    assert killed.exists()
    assert files_of(made_up / "there") == files_of(made_up / "here") != {}
