"""What the hub's client raises, in words for who has named a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from glassformer.common.errors import ConfigError, GlassformerError, WeightsError, why


class Unreachable(WeightsError):
    """No answer from the hub, or none that says anything of the model."""


@contextmanager
def told(name: str, revision: str | None, file: str = "") -> Iterator[None]:
    from huggingface_hub import constants, errors

    hub = constants.ENDPOINT
    try:
        yield
    except GlassformerError:
        raise
    except errors.GatedRepoError:
        raise WeightsError(
            f"{name} is gated: its owner lets in who has agreed to the terms; do that at {hub}/{name}, then log in: "
            f"hf auth login (or set HF_TOKEN)"
        ) from None
    except errors.RepositoryNotFoundError:
        raise WeightsError(
            f"{name} is not a folder here, and no model of {hub} that you may see; is the name right? For a private "
            f"model, log in: hf auth login (or set HF_TOKEN)"
        ) from None
    except errors.RevisionNotFoundError:
        raise WeightsError(
            f"{name} has no revision {revision}; a branch, a tag or a commit is meant: see {hub}/{name}/commits"
        ) from None
    except errors.LocalEntryNotFoundError as error:
        raise Unreachable(f"{hub} does not answer ({reason(error.__cause__ or error)})") from None
    except errors.EntryNotFoundError:
        raise WeightsError(
            f"{name} lists {file}, but does not hold it; its owner must mend that, or name a revision that is whole"
        ) from None
    except errors.HfHubHTTPError as error:
        code = error.response.status_code
        if code in (401, 403):
            raise WeightsError(
                f"{hub} does not let you have {name} ({code}); log in with a token that may read it: hf auth login "
                f"(or set HF_TOKEN)"
            ) from None
        raise Unreachable(f"{hub} answers {code} when asked for {name}; try again later") from None
    except errors.HFValidationError as error:
        raise ConfigError(f"{name} is no name of the hub: {reason(error)}") from None
    except Exception as error:
        network = type(error).__module__.partition(".")[0] in ("httpx", "httpx2", "requests", "urllib3")
        if network or isinstance(error, ConnectionError | TimeoutError):
            raise Unreachable(f"{hub} does not answer ({reason(error)}); is there a network?") from None
        if isinstance(error, OSError) and error.errno is None and "onsistency check" in str(error):
            raise WeightsError(f"{name} came short ({reason(error)}); load it again, it goes on") from None
        if isinstance(error, OSError):
            raise WeightsError(
                f"{name} cannot be stored in {constants.HF_HUB_CACHE}: {why(error)}; mend that, or set HF_HUB_CACHE to "
                f"another folder"
            ) from None
        raise


def reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
