"""Where the commands of a computer keep its sign-ins at remote MCP servers."""

from functools import partial

from a2c_smcp.computer.sign_in.token_store import TokenStore
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.state_folder import state_folder

__all__ = ["kept_sign_ins"]


def kept_sign_ins() -> TokenStore:
    """Raises `BadRequestError` if there is no home."""
    return TokenStore(state_folder() / "sign-in", partial(say, err=True, one_line=True))
