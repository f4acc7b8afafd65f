"""A config file equal in power to the flags: `armid --config armid.yaml VERB ...`.

One YAML mapping: verb -> option -> value, with the names of the flags; `all` applies to every verb that has the option.
A flag on the command line wins over the file, the file over the default.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
import typer.core

from armid.cli.command_line import ARGUMENTS
from armid.cli.help import EARLIER, arrange, present_spelling
from armid.cli.output import EXIT_FAILED, EXIT_USAGE, emit_error
from armid.documents import read_yaml
from armid.errors import ArmidError, InputError, UnknownNameError

FLAG = "--config"
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]
"""What the parser raises for words it does not know."""
_EVERY_VERB = "all"
_NOT_SETTINGS = ("help",)
"""Options that do something of their own and have no value to keep in a file."""


class ConfiguredGroup(typer.core.TyperGroup):
    """The `armid` command: takes `--config FILE` before or after the verb and makes the file the verbs' defaults."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ARGUMENTS.set(tuple(args))
        try:
            rest, path = _without_config(args)
            if path is not None:
                ctx.default_map = _defaults(path, self, ctx)
        except ArmidError as error:
            said = " ".join(str(error).split())
            typer.echo(f"armid: {said}", err=True)
            if "--json" in args:
                emit_error(type(error).__name__, said, EXIT_FAILED)
            raise typer.Exit(EXIT_FAILED) from None
        return super().parse_args(ctx, present_spelling(rest))

    def invoke(self, ctx: Any) -> Any:
        """A mistake in the words is said to a program too, when it asked for JSON; people read it as before."""
        try:
            return super().invoke(ctx)
        except _USAGE_ERROR as error:
            if "--json" in ARGUMENTS.get():
                said = " ".join(error.format_message().split())
                emit_error("UsageError", said, EXIT_USAGE)
            raise

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None and not ctx.resilient_parsing:
            for parameter in command.params:
                setattr(parameter, "help", _literal(getattr(parameter, "help", None)))  # noqa: B010 - not on its base class
            arrange(cmd_name, command)
        return command


def _literal(text: str | None) -> str | None:
    """Help text whose brackets are shown: the printer would take units like [m/s^2] for markup."""
    return None if text is None else text.replace("\\[", "[").replace("[", "\\[")


def _without_config(args: list[str]) -> tuple[list[str], Path | None]:
    """The arguments without `--config FILE`, and the file.

    Raises:
        InputError: the flag without a file, or twice.
    """
    rest: list[str] = []
    found: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word == FLAG:
            found.append(next(words, ""))
        elif word.startswith(f"{FLAG}="):
            found.append(word.removeprefix(f"{FLAG}="))
        else:
            rest.append(word)
    if "" in found:
        raise InputError(FLAG, "no file given", "for example --config armid.yaml")
    if len(found) > 1:
        raise InputError(FLAG, "given twice", "keep one")
    return rest, Path(found[0]) if found else None


def _defaults(path: Path, group: typer.core.TyperGroup, ctx: Any) -> dict[str, dict[str, Any]]:
    """Default values of every verb's parameters from a config file, by the names click knows them by.

    Raises:
        InputError: not readable, or not a mapping of mappings.
        UnknownNameError: a verb or a setting that does not exist; lists those that do.
    """
    content = read_yaml(path, "a config file, verb: {option: value}", as_text=True)
    commands = {name: command for name in group.list_commands(ctx) if (command := group.get_command(ctx, name))}
    known = {name: _settings(command) for name, command in commands.items()}
    for section in content:
        if section != _EVERY_VERB and section not in known:
            raise UnknownNameError(f"verb (in {path})", section, (_EVERY_VERB, *known))
    common = _section_of(content, _EVERY_VERB, path)
    _check_names(common, {key for options in known.values() for key in options}, f"setting of any verb (in {path})")
    out = {}
    for verb, options in known.items():
        earlier = {old.removeprefix("--"): new.removeprefix("--") for old, new in EARLIER.get(verb, {}).items()}
        own = {earlier.get(key, key): value for key, value in _section_of(content, verb, path).items()}
        _check_names(own, set(options), f"setting of {verb} (in {path})")
        chosen = {key: value for key, value in common.items() if key in options} | own
        out[verb] = {options[key].name: _fitted(value, options[key], path, key) for key, value in chosen.items()}
    return out


def _section_of(content: dict[str, Any], name: str, path: Path) -> dict[str, Any]:
    section = content.get(name, {})
    if section == "":
        return {}
    if not isinstance(section, dict):
        raise InputError(f"{path}, {name}", f"{section!r}", "expected option: value")
    return section


def _settings(command: Any) -> dict[str, Any]:
    """A verb's parameters by the name they have in a config file: the flag without dashes, or the argument's name."""
    out = {}
    for parameter in command.params:
        long = [word for word in parameter.opts if word.startswith("--")]
        key = long[0].removeprefix("--") if long else parameter.name
        if key not in _NOT_SETTINGS:
            out[key] = parameter
    return out


def _check_names(section: dict[str, Any], known: set[str], kind: str) -> None:
    for key in section:
        if key not in known:
            raise UnknownNameError(kind, key, sorted(known))


def _fitted(value: Any, parameter: Any, path: Path, key: str) -> Any:
    """A value as the parameter takes it: a list for what may be repeated, else one text (lists joined by commas)."""
    if isinstance(value, dict) or (isinstance(value, list) and not all(isinstance(item, str) for item in value)):
        raise InputError(f"{path}, {key}", f"{value!r}", "expected a value or a list of values")
    if getattr(parameter, "multiple", False) or parameter.nargs == -1:
        return value if isinstance(value, list) else [value]
    if parameter.nargs > 1:
        return value
    return ",".join(value) if isinstance(value, list) else value
