"""The standard parameter vector of a robot with given effects: names, units, order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from armid.errors import UnknownNameError
from armid.parameters.effects import FRICTION_SHAPES, Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import INERTIAL_NAMES, INERTIAL_UNITS

PAYLOAD = "payload"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One standard parameter.

    Args:
        owner: `link3`, `joint3` or `payload`.
        quantity: `mass`, `Ixx`, `coulomb`, ...
        unit: SI.
        body: 0-based link or joint index; n_joints for the payload.
    """

    owner: str
    quantity: str
    unit: str
    body: int

    @property
    def name(self) -> str:
        return f"{self.owner}.{self.quantity}"

    @property
    def of_link(self) -> bool:
        """One of the ten of a link."""
        return self.owner == f"link{self.body + 1}"

    @property
    def of_joint(self) -> bool:
        """Of a drive: friction, rotor inertia, offset."""
        return self.owner == f"joint{self.body + 1}"


def named_parameter(name: str) -> Parameter:
    """The parameter a stored name (`link3.mass`) stands for: the one place where names are read.

    A name does not tell units, nor the number of the body that a payload is; that is -1.
    """
    owner, _, quantity = name.partition(".")
    number = owner.removeprefix("link").removeprefix("joint")
    return Parameter(owner, quantity, "", int(number) - 1 if number.isdigit() else -1)


@dataclass(frozen=True)
class ParameterSpace:
    """The ordered standard parameters: for each joint ten inertial ones, rotor inertia, friction; then the payload.

    Base parameters keep the lowest index of dependent columns, so this order decides their names.
    """

    parameters: tuple[Parameter, ...]
    effects: Effects

    def __len__(self) -> int:
        return len(self.parameters)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.parameters)

    @cached_property
    def units(self) -> tuple[str, ...]:
        return tuple(parameter.unit for parameter in self.parameters)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def index(self, name: str) -> int:
        if name not in self._positions:
            raise UnknownNameError("parameter", name, self.names)
        return self._positions[name]

    def __contains__(self, name: object) -> bool:
        return name in self._positions


def parameter_space(prismatic: Sequence[bool], effects: Effects, *, coupled: Sequence[bool] = ()) -> ParameterSpace:
    """The standard parameters of an arm.

    Args:
        prismatic: whether each joint is.
        effects: what else is in the torque.
        coupled: whether each joint is moved by several drives together; none by default.
    """
    out: list[Parameter] = []
    for i, slides in enumerate(prismatic):
        link, joint = f"link{i + 1}", f"joint{i + 1}"
        if effects.torques is not TorqueSide.DIFFERENCE:
            out += inertial_parameters(link, i)
        quantities = drive_quantities(effects, slides)
        quantities += shape_quantities(effects, slides, coupled=bool(coupled) and coupled[i])
        out += [Parameter(joint, quantity, unit, i) for quantity, unit in quantities]
    if effects.payload is not PayloadRuns.NONE and effects.torques is not TorqueSide.DIFFERENCE:
        out += inertial_parameters(PAYLOAD, len(prismatic))
        if effects.torques is TorqueSide.BOTH:
            # [Kolyubin2017] counts the payload as one more link with all seventeen parameters of a link, 8 * 17 = 136.
            # A body held rigidly has no drive: these columns are zero and come out as not identifiable.
            quantities = drive_quantities(effects, prismatic=False)
            out += [Parameter(PAYLOAD, quantity, unit, len(prismatic)) for quantity, unit in quantities]
    return ParameterSpace(tuple(out), effects)


def inertial_parameters(owner: str, body: int) -> list[Parameter]:
    """The ten parameters of one body."""
    return [Parameter(owner, name, unit, body) for name, unit in zip(INERTIAL_NAMES, INERTIAL_UNITS, strict=True)]


def drive_quantities(effects: Effects, prismatic: bool) -> list[tuple[str, str]]:
    """Rotor inertia and friction of one joint, with units. Motor-side friction is separate when both sides are measured."""
    inertia, viscous, torque = ("kg", "N s/m", "N") if prismatic else ("kg m^2", "N m s/rad", "N m")
    units = {"viscous": viscous, "coulomb": torque, "offset": torque}
    motor = [(f"motor_{name}", units[name]) for name in effects.friction]
    joint = [(name, units[name]) for name in effects.friction]
    rotor = [("rotor_inertia", inertia)] if effects.rotor_inertia or effects.measures_motor else []
    match effects.torques:
        case TorqueSide.LINK | TorqueSide.MOTOR:
            return rotor + joint
        case TorqueSide.BOTH:
            return rotor + joint + motor
        case TorqueSide.DIFFERENCE:
            return rotor + motor


def shape_quantities(effects: Effects, prismatic: bool, *, coupled: bool) -> list[tuple[str, str]]:
    """Friction of one joint beyond the linear one, with units; `coupled` friction only where drives share a joint."""
    viscous, torque = ("N s/m", "N") if prismatic else ("N m s/rad", "N m")
    units = {"viscous_asymmetry": viscous, "coupled_viscous": viscous, "coulomb_load": "1"}
    words = [word for word in effects.shapes if word != "coupled" or coupled]
    return [(name, units.get(name, torque)) for word in words for name in FRICTION_SHAPES[word]]
