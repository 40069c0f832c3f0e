"""Embedding on a cluster of Ray: machines are processes here, and are lost on the way."""

import os
import signal

import pyarrow.parquet as pq
import pytest

from hf_dialemb.apps import embed as module
from hf_dialemb.apps.embed import embed_file
from hf_dialemb.corpora import write_jsonl
from hf_dialemb.models.errors import InputError

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


@pytest.mark.slow
def test_rows_are_those_of_one_machine_when_a_worker_and_a_machine_are_lost_and_one_joins(
    cluster, tmp_path, sample_dialogues, monkeypatch
):
    source, killed = tmp_path / "dialogues.jsonl", tmp_path / "killed"
    write_jsonl(sample_dialogues, source)
    for level in ("dialogues", "utterances"):
        embed_file("dialogue-static", source, tmp_path / f"{level}.parquet", 8, level=level)

    def killed_once(encode):
        def encode_or_die(dialogues):
            if dialogues[0].id == fatal and not killed.exists():
                killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return encode(dialogues)

        return encode_or_die

    fatal, lost, write, encode_all = sample_dialogues[8].id, [], module.write_atomically, module.encode_on_cluster

    def lose_a_machine_and_write(*arguments):
        if not lost:
            lost.append(cluster.add_node(num_cpus=1, **NODE))
            cluster.remove_node(cluster.second, allow_graceful=False)
        write(*arguments)

    monkeypatch.setattr(module, "encode_on_cluster", lambda encode, shards: encode_all(killed_once(encode), shards))
    monkeypatch.setattr(module, "write_atomically", lose_a_machine_and_write)
    for level in ("dialogues", "utterances"):
        embed_file("dialogue-static", source, tmp_path / "ray.parquet", 8, level=level, engine="ray")
        found, expected = pq.read_table(tmp_path / "ray.parquet"), pq.read_table(tmp_path / f"{level}.parquet")
        assert found.equals(expected)
        assert found.schema.equals(expected.schema, check_metadata=True)
    assert killed.exists()
    assert lost
    monkeypatch.setattr(module, "fingerprint", lambda model: "another")
    with pytest.raises(InputError, match="got weights 190f0c1d9671a8de, expected another; put them there"):
        embed_file("dialogue-static", source, tmp_path / "other.parquet", engine="ray")
    assert not (tmp_path / "other.parquet").exists()
