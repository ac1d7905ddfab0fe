"""What a person writes in a config file, as frozen models: MCP servers, inputs, tool meta. Connects to nothing.

A config is written with placeholders, `${input:id}`, which are rendered before it is used. `parse_server` reads a
rendered config that can run. `parse_unrendered` reads a config as written: there a text with a placeholder may stand
for a value of any type. Neither an error nor a `repr` shows a value, because a rendered value may be a secret.
"""

import codecs
import importlib.util
import shlex
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails

from a2c_smcp.computer.config.problems import InvalidConfigError, Problem, field_path
from a2c_smcp.computer.utils.placeholder import PLACEHOLDER, holds_placeholder
from a2c_smcp.dialects.bundle_ids import check_bundle_id
from a2c_smcp.terminal.suggestions import did_you_mean
from a2c_smcp.types import SERVER_NAME, TOOL_NAME
from a2c_smcp.utils.distribution import install_command
from a2c_smcp.utils.lazy_names import old_names
from a2c_smcp.utils.text import has_control_characters
from a2c_smcp.web.hosts import is_loopback

__all__ = [
    "BaseServerConfig",
    "CommandInput",
    "MCPServerConfig",
    "MCPServerInput",
    "OAuthParameters",
    "PickStringInput",
    "PromptStringInput",
    "SSEParameters",
    "SSEServerConfig",
    "StdioParameters",
    "StdioServerConfig",
    "StreamableHttpParameters",
    "StreamableHttpServerConfig",
    "ToolMeta",
    "parse_input",
    "parse_server",
    "parse_unrendered",
    "wire_input",
    "wire_server",
]

_T = TypeVar("_T")

#: The validation context under which placeholders are left as they are.
_UNRENDERED: Final = "unrendered"


class _Written(BaseModel):
    """What all models share. `coerce_numbers_to_str`: people write `"PORT": 8080`, and inputs may be numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True, hide_input_in_errors=True)

    #: The fields that `repr` may show; the others may hold secrets.
    _shown: ClassVar[tuple[str, ...]] = ()

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        return ((name, getattr(self, name)) for name in self._shown)


def _or_placeholder(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    return value if info.context == _UNRENDERED and holds_placeholder(value) else handler(value)


class _ConfigPart(_Written):
    """A part of a server's config. A placeholder may stand for the whole part, or for any of its fields."""

    @model_validator(mode="wrap")
    @classmethod
    def _stood_for(cls, value: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        return _or_placeholder(value, handler, info)  # type: ignore[no-any-return]

    _fields_stood_for = field_validator("*", mode="wrap")(_or_placeholder)


# --- checks that a type cannot express; their messages name no value


def _known_encoding(name: str) -> str:
    try:
        codecs.lookup(name)
    except LookupError:
        raise ValueError("no such text encoding") from None
    return name


def _nameable(input_id: str) -> str:
    if not PLACEHOLDER.fullmatch(f"${{input:{input_id}}}") or not input_id.strip():
        raise ValueError("must not be blank or hold a closing brace: no placeholder could name it")
    return input_id


def _split(command: str) -> None:
    try:
        words = shlex.split(command)
    except ValueError:
        raise ValueError("the command cannot be split into words: a quotation mark is not closed") from None
    if not words:
        raise ValueError("the command is blank")


def _written_out(name: str) -> str:
    if holds_placeholder(name):
        raise ValueError("must not hold a placeholder: it is needed before any input is asked for")
    return name


def _on_one_line(name: str) -> str:
    # It stands in logs, tables and error messages: with a line break in it, its second line would look like ours.
    if name != name.strip() or has_control_characters(name):
        raise ValueError("must not have control characters or surrounding blanks")
    return name


def _http_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        acceptable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:  # an invalid port, or a bracket that is not closed
        acceptable = False
    if not acceptable:
        raise ValueError("must be an http:// or https:// URL with a host")
    return url


def _confidential_url(url: str) -> str:
    parts = urlsplit(_http_url(url))
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ValueError("must be an https:// URL: it gets secrets")
    return url


def _vrl_available(script: str) -> str:
    if importlib.util.find_spec("vrl_python") is None:
        raise ValueError(f"needs an extra that is not installed: {install_command('vrl')}")
    return script


_Name: TypeAlias = Annotated[str, Field(min_length=1)]
_Url: TypeAlias = Annotated[str, AfterValidator(_http_url)]
_Duration: TypeAlias = Annotated[timedelta, Field(gt=timedelta(0))]
_Seconds: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]


# --- tools


class ToolMeta(_ConfigPart):
    """What a config says of a tool. Unknown keys are kept."""

    model_config = ConfigDict(extra="allow")

    auto_apply: bool | None = None
    alias: str | None = None
    tags: list[str] | None = None
    ret_object_mapper: dict[str, Any] | None = None


# --- servers


class StdioParameters(_ConfigPart):
    command: _Name
    args: list[str] = []
    env: dict[str, str] | None = None
    cwd: str | None = None
    encoding: Annotated[str, AfterValidator(_known_encoding)] = "utf-8"
    encoding_error_handler: Literal["strict", "ignore", "replace"] = "strict"


class OAuthParameters(_ConfigPart):
    """How the Computer signs in to a server. Every key may be left out: most servers need none."""

    client_id: _Name | None = None
    client_secret: _Name | None = None
    private_key: _Name | None = None
    """A private key in PEM, of a machine that signs in with a JWT."""
    key_algorithm: Literal["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"] = "RS256"
    client_metadata_url: _Url | None = None
    scopes: list[str] | None = None
    issuer: _Url | None = None
    grant: Literal["authorization_code", "client_credentials", "jwt_bearer"] = "authorization_code"
    assertion: _Name | None = None
    """A JWT that the issuer takes as a grant (RFC 7523, section 2.1), such as that of a workload."""
    id_token: _Name | None = None
    """A person's ID token. The identity provider gives such a JWT for it (RFC 8693)."""
    token_exchange_url: Annotated[str, AfterValidator(_confidential_url)] | None = None
    exchange_client_id: _Name | None = None
    exchange_client_secret: _Name | None = None
    redirect_port: Annotated[int, Field(ge=1, le=65535)] | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.client_id is None and (self.client_secret is not None or self.private_key is not None):
            raise ValueError("client_secret and private_key need a client_id")
        if self.grant == "client_credentials" and not (self.client_secret or self.private_key):
            raise ValueError("client_credentials need a client_id, and a client_secret or a private_key")
        if self.private_key is not None and self.grant != "client_credentials":
            raise ValueError('a private_key is for machines: it needs "grant": "client_credentials"')
        self._check_assertion()
        parts = urlsplit(self.client_metadata_url or "https://host/path")
        if not holds_placeholder(self.client_metadata_url or "") and (
            parts.scheme != "https" or parts.path in ("", "/")
        ):
            raise ValueError("client_metadata_url must be an https:// URL with a path")
        return self

    def _check_assertion(self) -> None:
        exchange = (self.id_token, self.token_exchange_url, self.exchange_client_id, self.exchange_client_secret)
        has_exchange = any(value is not None for value in exchange)
        if self.grant != "jwt_bearer":
            if self.assertion is not None or has_exchange:
                raise ValueError('an assertion and an id_token need "grant": "jwt_bearer"')
            return
        if self.client_id is None:
            raise ValueError("jwt_bearer needs a client_id")
        if (self.assertion is not None) == has_exchange:
            raise ValueError("jwt_bearer needs either an assertion, or an id_token and a token_exchange_url")
        if has_exchange and None in (self.id_token, self.token_exchange_url):
            raise ValueError("id_token and token_exchange_url need each other")
        if self.exchange_client_secret is not None and self.exchange_client_id is None:
            raise ValueError("exchange_client_secret needs an exchange_client_id")


class StreamableHttpParameters(_ConfigPart):
    url: _Url
    headers: dict[str, str] | None = None
    oauth: OAuthParameters | None = None
    """Our own key: how to sign in, if the server wants that."""
    timeout: _Duration = timedelta(seconds=30)
    sse_read_timeout: _Duration = timedelta(minutes=5)
    terminate_on_close: bool = True


class SSEParameters(_ConfigPart):
    url: _Url
    headers: dict[str, str] | None = None
    oauth: OAuthParameters | None = None
    """As for streamable HTTP."""
    timeout: _Seconds = 5.0
    sse_read_timeout: _Seconds = 300.0


#: Where the questions of a server's tools are asked. `agent` means: where the agent is that made the call, if it can be
#: asked, otherwise here.
QuestionPlace: TypeAlias = Literal["here", "agent", "both"]


class BaseServerConfig(_Written):
    """What the three kinds of server have in common."""

    _shown: ClassVar[tuple[str, ...]] = ("name", "type")

    name: Annotated[SERVER_NAME, Field(min_length=1), AfterValidator(_written_out), AfterValidator(_on_one_line)]
    disabled: bool = False
    forbidden_tools: list[TOOL_NAME] = []
    tool_meta: dict[TOOL_NAME, ToolMeta] = {}
    default_tool_meta: ToolMeta | None = None
    vrl: Annotated[str, AfterValidator(_vrl_available)] | None = None
    tool_prefix: str | None = None
    """Our own key: stands before the name of every tool that has no alias."""
    protocol: Literal["auto", "legacy", "2026-07-28"] | None = None
    """Our own key: which era of MCP to speak. If it is unset, the Computer finds out."""
    start_timeout: _Seconds | None = None
    """Our own key: how many seconds a start may take. If it is unset: 30, or 180 for a command that downloads first."""
    share: Literal["all", "shown", "none"] | None = None
    """Our own key: what agents may read of the server's resources and prompts. If it is unset: `shown`, which means its
    windows and documents. `all` means every resource and every prompt.
    """
    poll: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None
    """Our own key: every how many seconds the windows of a server are read that does not say when they change. If it
    is unset, such windows are not shown.
    """
    questions: QuestionPlace | None = None
    """Our own key: where questions of its tools are asked. If it is unset: here."""
    bundle_id: Annotated[str, AfterValidator(check_bundle_id)] | None = None
    """What agents of release 0.4 call the server. If it is unset, it is made from the name."""

    # Not `name` and `type`: they are needed before any input is asked for.
    _stood_for = field_validator(
        *("disabled", "forbidden_tools", "tool_meta", "default_tool_meta", "vrl"),
        *("tool_prefix", "protocol", "start_timeout", "share", "poll", "questions", "detached", "server_parameters"),
        mode="wrap",
        check_fields=False,
    )(_or_placeholder)


class StdioServerConfig(BaseServerConfig):
    type: Literal["stdio"]
    detached: Literal["end", "keep"] | None = None
    """Our own key: what becomes of processes with sessions of their own, such as daemons, when the server ends. If it
    is unset, they end, too.
    """
    server_parameters: StdioParameters


class StreamableHttpServerConfig(BaseServerConfig):
    type: Literal["streamable"]
    server_parameters: StreamableHttpParameters


class SSEServerConfig(BaseServerConfig):
    type: Literal["sse"]
    server_parameters: SSEParameters


MCPServerConfig: TypeAlias = Annotated[
    StdioServerConfig | StreamableHttpServerConfig | SSEServerConfig, Field(discriminator="type")
]


# --- inputs


class _Input(_Written):
    _shown: ClassVar[tuple[str, ...]] = ("id", "type")

    id: Annotated[str, AfterValidator(_nameable)]
    description: str = ""

    # Each kind answers these about itself, so that their users need not know the kinds.

    @property
    def fallback(self) -> str | None:
        """The value that it has if no layer gives one."""
        return None

    @property
    def is_password(self) -> bool:
        """Whether its default is a secret."""
        return False

    @property
    def is_secret(self) -> bool:
        """Whether its value is never shown."""
        return self.is_password

    def problem_with(self, value: Any) -> str | None:
        """Why the input cannot have this value, in words that do not show the value; `None` if it can."""
        return None


class PromptStringInput(_Input):
    type: Literal["promptString"]
    default: str | None = None
    password: bool | None = None

    @property
    def fallback(self) -> str | None:
        return self.default

    @property
    def is_password(self) -> bool:
        return bool(self.password)


def _value_of(option: Any) -> Any:
    if not isinstance(option, dict):
        return option
    texts = all(isinstance(text, str) for text in option.values())
    if "value" not in option or option.keys() - {"label", "value"} or not texts:
        raise ValueError("must be a text, or an object with a label and a value")
    return option["value"]


_Option: TypeAlias = Annotated[str, BeforeValidator(_value_of)]


class PickStringInput(_Input):
    type: Literal["pickString"]
    options: Annotated[list[_Option], Field(min_length=1)]
    """The values. A file may also have objects with a `label` and a `value`, as release 0.4 has them."""
    default: str | None = None
    _labels: dict[str, str] = PrivateAttr(default_factory=dict)

    @property
    def labels(self) -> Mapping[str, str]:
        """What a person reads instead of a value, by value; only where it differs."""
        return self._labels

    @model_validator(mode="wrap")
    @classmethod
    def _keep_the_labels(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        made = handler(data)
        if isinstance(data, dict):
            made._labels = {
                option["value"]: option["label"]
                for option in data["options"]
                if isinstance(option, dict) and option.get("label", "").strip() and option["label"] != option["value"]
            }
        return made

    @model_validator(mode="after")
    def _default_is_an_option(self) -> Self:
        if self.default is not None and self.default not in self.options:
            raise ValueError("the default is not one of the options")
        return self

    @property
    def fallback(self) -> str | None:
        return self.default

    def problem_with(self, value: Any) -> str | None:
        return None if value in self.options else f"the value is not one of the options {self.options}"


class CommandInput(_Input):
    type: Literal["command"]
    command: _Name
    args: dict[str, str] | None = None
    shell: bool = False
    """Our own key: a shell runs the command. Otherwise it is only split into words as a shell would."""

    @model_validator(mode="after")
    def _command_can_be_split(self) -> Self:
        if not self.shell:
            _split(self.command)
        return self

    @property
    def is_secret(self) -> bool:
        """A command mostly prints a token from a password store."""
        return True


MCPServerInput: TypeAlias = Annotated[PromptStringInput | PickStringInput | CommandInput, Field(discriminator="type")]


__getattr__ = old_names(
    __name__,
    {
        "BaseMCPServerConfig": "computer.mcp_clients.model.BaseServerConfig",
        "MCPServerCommandInput": "computer.mcp_clients.model.CommandInput",
        "MCPServerPickStringInput": "computer.mcp_clients.model.PickStringInput",
        "MCPServerPromptStringInput": "computer.mcp_clients.model.PromptStringInput",
        "SseServerConfig": "computer.mcp_clients.model.SSEServerConfig",
    },
)

# --- reading and writing

_SERVER: Final[TypeAdapter[MCPServerConfig]] = TypeAdapter(MCPServerConfig)
_INPUT: Final[TypeAdapter[MCPServerInput]] = TypeAdapter(MCPServerInput)
_KNOWN_KEYS: Final = sorted(
    {
        key
        for part in (
            *(StdioServerConfig, StdioParameters, StreamableHttpParameters, SSEParameters, OAuthParameters),
            ToolMeta,
        )
        for key in part.model_fields
    }
    | {key for part in (PromptStringInput, PickStringInput, CommandInput) for key in part.model_fields}
)


def parse_server(rendered: object) -> MCPServerConfig:
    """A config that can run; `InvalidConfigError` names every wrong field."""
    return _parse(_SERVER, rendered, "server")


def parse_unrendered(raw: object) -> MCPServerConfig:
    """A config as written, defaults filled in. A field with a placeholder stays a text, whatever type it declares."""
    return _parse(_SERVER, raw, "server", context=_UNRENDERED)


def parse_input(raw: object) -> MCPServerInput:
    """The definition of an input; `InvalidConfigError` names every wrong field."""
    return _parse(_INPUT, raw, "input")


def wire_server(config: MCPServerConfig) -> dict[str, Any]:
    """The config in the full shape of the protocol. Durations are ISO 8601; our own keys are there only if set."""
    # `warnings=False`: in a config as written a text may stand where a bool or a duration is declared.
    data = config.model_dump(mode="json", warnings=False)
    for key in ("tool_prefix", "protocol", "start_timeout", "share", "poll", "questions", "bundle_id", "detached"):
        if data.get(key, "") is None:
            del data[key]
    parameters = data["server_parameters"]
    if isinstance(parameters, dict) and (oauth := parameters.pop("oauth", None)) is not None:
        is_text = isinstance(oauth, str)
        parameters["oauth"] = oauth if is_text else {key: value for key, value in oauth.items() if value is not None}
    return data


def wire_input(definition: MCPServerInput) -> dict[str, Any]:
    """The definition in the shape of the protocol; `shell` and `labels`, our own keys, are there only if set."""
    data = definition.model_dump(mode="json")
    if isinstance(definition, PickStringInput) and definition.labels:
        data["labels"] = dict(definition.labels)
    if not data.get("shell"):
        data.pop("shell", None)
    return data


def _parse(adapter: TypeAdapter[_T], data: object, kind: str, context: str | None = None) -> _T:
    try:
        return adapter.validate_python(data, context=context)
    except ValidationError as error:
        name = data.get("name" if kind == "server" else "id") if isinstance(data, dict) else None
        subject = f"{kind} {name!r}" if isinstance(name, str) and name else kind
        raise InvalidConfigError(
            [_problem(finding, subject) for finding in error.errors(include_input=False)]
        ) from None


def _problem(finding: ErrorDetails, subject: str) -> Problem:
    """A problem that pydantic found, without the value."""
    match finding["type"]:
        case "union_tag_not_found":
            return Problem("required, and missing", "type", subject)
        case "union_tag_invalid":
            return Problem(f"must be one of {finding['ctx']['expected_tags']}", "type", subject)
        case "extra_forbidden":
            message = f"unknown key{did_you_mean(str(finding['loc'][-1]), _KNOWN_KEYS)}"
        case "missing":
            message = "required, and missing"
        case "model_type" | "model_attributes_type" | "dict_type":
            message = "must be an object"
        case "time_delta_type" | "time_delta_parsing":
            message = 'must be an ISO 8601 duration like "PT30S", or a number of seconds'
        case _:
            message = finding["msg"].removeprefix("Value error, ")
    # The first part is the tag of the union, not a place in the file.
    return Problem(message, field_path(finding["loc"][1:]), subject)
