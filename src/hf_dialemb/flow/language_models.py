"""Language models that answer a prompt: an endpoint's, or one on this machine."""

from __future__ import annotations

import hashlib
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from ..encoders.endpoint import check_endpoint, endpoint_url, no_json, refusal
from ..models.errors import InputError

API = "api:"
"""What the spec of an endpoint's model begins with."""

_WANTED = "chat completions"
_MOST_TOKENS = 40
_FILES = ("*.safetensors", "*.bin", "*.model", "*config*.json", "*token*.json", "*.index.json", "vocab*", "merges.txt")
_TEMPLATES = ("*.jinja", "chat_template*", "additional_chat_templates/*")


class Writer(Protocol):
    """Anything that answers prompts."""

    @property
    def identity(self) -> str:
        """What tells its answers from those of others."""

    def __call__(self, prompt: str) -> str:
        """Returns the answer, which may be empty; raises an `InputError` where there is none."""


def find_writer(spec: str) -> Writer:
    """Looks a language model up; asks no server, and loads no weights before the first prompt.

    Args:
        spec: ``api:MODEL``, a model of the endpoint of `hf_dialemb.encoders.endpoint`; or the folder or Hub id of any
            model that ``AutoModelForCausalLM`` loads.

    Raises:
        InputError: It is not found, or a package or key is missing.
    """
    if spec.startswith(API):
        if spec == API:
            raise InputError(f"model '{spec}': got nothing after the colon, expected api:MODEL; name the model")
        check_endpoint(spec)
        return ChatEndpoint(spec.removeprefix(API))
    from ..models.backbones import resolve_backbone

    return LocalWriter(resolve_backbone(spec))


class ChatEndpoint:
    """Answers by a model of the endpoint, by the endpoint's name for it."""

    def __init__(self, model: str) -> None:
        self.model = model

    @property
    def identity(self) -> str:
        """The model and the endpoint's address."""
        return f"{API}{self.model} {endpoint_url()}"

    def __call__(self, prompt: str) -> str:
        """Returns the answer; an `InputError` says that the endpoint refuses, or is not there, or makes no sense."""
        import openai

        try:
            answer = self._client.chat.completions.create(
                model=self.model, messages=[{"role": "user", "content": prompt}], temperature=0, max_tokens=_MOST_TOKENS
            )
        except openai.APIError as error:
            raise self._error(refusal(error, _WANTED)) from None  # the original may hold the request with its key
        except ValueError:
            raise self._error(no_json(_WANTED)) from None
        try:
            text = answer.choices[0].message.content
        except (AttributeError, IndexError, TypeError):
            raise self._error(no_json(_WANTED)) from None
        return text if isinstance(text, str) else ""

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 - openai's
        import openai

        return openai.OpenAI()

    def _error(self, reason: str) -> InputError:
        return InputError(f"model '{API}{self.model}': {endpoint_url()}: {reason}")


class LocalWriter:
    """Answers by a causal language model on this machine, a folder or Hub id, always with its most likely words."""

    def __init__(self, path: str) -> None:
        self.path = path

    @cached_property
    def identity(self) -> str:
        """A digest of the files in the folder that decide an answer, wherever it lies; or the Hub id and its commit."""
        folder = Path(self.path)
        if not folder.is_dir():
            from huggingface_hub import try_to_load_from_cache

            config = try_to_load_from_cache(self.path, "config.json")  # in a folder named for the commit
            return f"{self.path} {Path(config).parent.name if isinstance(config, str) else ''}"
        digest = hashlib.sha256()
        found = {path for pattern in (*_FILES, *_TEMPLATES) for path in folder.glob(pattern) if path.is_file()}
        for path in sorted(found):
            with path.open("rb") as stream:
                contents = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{path.relative_to(folder).as_posix()} {contents}\n".encode())
        return f"sha256:{digest.hexdigest()}"

    def __call__(self, prompt: str) -> str:
        """Returns the answer; an `InputError` says that the model cannot be read, or not take the prompt."""
        import torch

        tokenizer, model = self._loaded
        chat = tokenizer.chat_template is not None
        if chat:
            messages = [{"role": "user", "content": prompt}]
            prompt = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        inputs = tokenizer(prompt, return_tensors="pt", add_special_tokens=not chat).to(model.device)
        inputs.pop("token_type_ids", None)  # some tokenizers make them; a model that only continues text takes none
        padding = tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id
        try:
            with torch.no_grad():
                found = model.generate(
                    **inputs, max_new_tokens=_MOST_TOKENS, do_sample=False, num_beams=1, pad_token_id=padding
                )
        except (IndexError, RuntimeError, ValueError) as error:  # such as a prompt beyond the model's positions
            reason = " ".join(str(error).split())[:200]
            raise InputError(
                f"model '{self.path}': the prompt cannot be answered ({reason}); choose another model"
            ) from None
        answer: str = tokenizer.decode(found[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
        return answer

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from ..models.backbones import load_pretrained

        tokenizer = load_pretrained(AutoTokenizer, self.path)
        model = load_pretrained(AutoModelForCausalLM, self.path)
        return tokenizer, model.eval().to("cuda" if torch.cuda.is_available() else "cpu")
