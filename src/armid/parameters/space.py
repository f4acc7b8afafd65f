"""The standard parameter vector of a robot with given effects: names, units, order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache

from armid.errors import UnknownNameError
from armid.parameters.effects import FRICTION_NAMES, FRICTION_SHAPES, Effects, PayloadRuns, TorqueSide
from armid.parameters.inertial import INERTIAL_NAMES, INERTIAL_UNITS, InertialIndex

PAYLOAD = "payload"
ROTOR_INERTIA = "rotor_inertia"
STIFFNESS = "stiffness"
"""Of an elastic joint."""
_MOTOR_SIDE = {name: f"motor_{name}" for name in FRICTION_NAMES}
"""What friction before the transmission is called when there is friction behind it too."""
_DRIVE_QUANTITIES = {
    ROTOR_INERTIA: ROTOR_INERTIA,
    **{name: name for name in FRICTION_NAMES},
    **{motor: name for name, motor in _MOTOR_SIDE.items()},
}
_COMPONENTS = {name: InertialIndex(k) for k, name in enumerate(INERTIAL_NAMES)}


class OwnerKind(StrEnum):
    """What a parameter belongs to."""

    LINK = "link"
    JOINT = "joint"
    PAYLOAD = PAYLOAD
    SETUP = "setup"
    """The frame of a sensor placement, in front of the base."""
    TARGET = "target"
    """The frame of what was measured, on the last link."""
    OTHER = ""
    """Nothing of the arm: whatever else a stored vector holds. Its quantity is its whole name."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One standard parameter. It travels as this; its name is for people and files and is never taken apart.

    Args:
        kind: what it belongs to.
        body: 0-based link or joint; n_joints for the payload (-1 when only its name is known).
        quantity: `mass`, `Ixx`, `coulomb`, `motor_viscous`, ...
        unit: SI; empty when only its name is known.
    """

    kind: OwnerKind
    body: int
    quantity: str
    unit: str

    @property
    def owner(self) -> str:
        """`link3`, `joint3` or `payload`."""
        return f"{self.kind}{self.body + 1}" if self.of_link or self.of_joint else self.kind.value

    @property
    def name(self) -> str:
        """`link3.mass`: stable, sortable, one per parameter."""
        return f"{self.owner}.{self.quantity}" if self.owner else self.quantity

    @property
    def of_link(self) -> bool:
        """One of the ten of a link."""
        return self.kind is OwnerKind.LINK

    @property
    def of_joint(self) -> bool:
        """Of a drive: friction, rotor inertia, offset."""
        return self.kind is OwnerKind.JOINT

    @property
    def component(self) -> InertialIndex | None:
        """Which of a body's ten inertial parameters it is; None for what belongs to a drive."""
        return _COMPONENTS.get(self.quantity)

    @property
    def drive_quantity(self) -> str | None:
        """`rotor_inertia`, `viscous`, `coulomb` or `offset`, on either side; None for bodies and other shapes of friction."""
        return _DRIVE_QUANTITIES.get(self.quantity)

    @property
    def is_motor_side(self) -> bool:
        """Whether it is friction before the transmission where both sides are told apart."""
        return self.quantity in _MOTOR_SIDE.values()


_FEWEST_BODIES = 64
"""Of the vocabulary that a single name is looked up in."""


@lru_cache(maxsize=8)
def _vocabulary(bodies: int) -> dict[str, Parameter]:
    """Every parameter that an arm of so many joints can have, by name; units depend on the joint and are left out."""
    drive = (ROTOR_INERTIA, *FRICTION_NAMES, *_MOTOR_SIDE.values())
    shapes = (quantity for added in FRICTION_SHAPES.values() for quantity in added)
    owners = {
        OwnerKind.LINK: (range(bodies), INERTIAL_NAMES),
        OwnerKind.JOINT: (range(bodies), (*drive, *shapes, STIFFNESS)),
        OwnerKind.PAYLOAD: (range(-1, 0), (*INERTIAL_NAMES, *drive)),
    }
    every = (
        Parameter(kind, body, quantity, "")
        for kind, (numbers, quantities) in owners.items()
        for body in numbers
        for quantity in quantities
    )
    return {parameter.name: parameter for parameter in every}


def named_parameter(name: str) -> Parameter:
    """The parameter a stored name (`link3.mass`) stands for, looked up among those an arm can have.

    A name tells no unit, nor the number of the body that a payload is. One that no arm has is of kind `OTHER`.
    """
    return named_parameters((name,))[0]


@lru_cache(maxsize=64)
def named_parameters(names: tuple[str, ...]) -> tuple[Parameter, ...]:
    """Those of a stored vector, in its order; records of such vectors hand them out, so that nobody else asks for names."""
    known = _vocabulary(max(_FEWEST_BODIES, 1 << len(names).bit_length()))  # a vector has no more bodies than names
    return tuple(known.get(name) or Parameter(OwnerKind.OTHER, -1, name, "") for name in names)


@dataclass(frozen=True)
class ParameterSpace:
    """The ordered standard parameters: for each joint ten inertial ones, rotor inertia, friction; then the payload.

    Base parameters keep the lowest index of dependent columns, so this order decides their names.
    """

    parameters: tuple[Parameter, ...]
    effects: Effects

    def __len__(self) -> int:
        return len(self.parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self.parameters)

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

    def find(self, kind: OwnerKind, body: int, quantity: str) -> int | None:
        """Column of a parameter; None when the vector has none such."""
        return self._places.get((kind, body, quantity))

    def first_of(self, kind: OwnerKind, body: int) -> int | None:
        """Column of the mass of a link or the payload, where its ten parameters begin; None without them."""
        return self.find(kind, body, INERTIAL_NAMES[InertialIndex.MASS])

    def start(self, kind: OwnerKind, body: int) -> int:
        """The same for a body that is there."""
        column = self.first_of(kind, body)
        assert column is not None, f"no body {kind}{body + 1} in this vector"
        return column

    @cached_property
    def _places(self) -> dict[tuple[OwnerKind, int, str], int]:
        return {(p.kind, p.body, p.quantity): i for i, p in enumerate(self.parameters)}

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
    n = len(prismatic)
    for i, slides in enumerate(prismatic):
        if effects.torques is not TorqueSide.DIFFERENCE:
            out += _inertial_parameters(OwnerKind.LINK, i)
        quantities = _drive_quantities(effects, prismatic=slides)
        quantities += _shape_quantities(effects, prismatic=slides, coupled=bool(coupled) and coupled[i])
        out += [Parameter(OwnerKind.JOINT, i, quantity, unit) for quantity, unit in quantities]
    if effects.payload is not PayloadRuns.NONE and effects.torques is not TorqueSide.DIFFERENCE:
        out += _inertial_parameters(OwnerKind.PAYLOAD, n)
        if effects.torques is TorqueSide.BOTH:
            # [Kolyubin2017] counts the payload as one more link with all seventeen parameters of a link, 8 * 17 = 136.
            # A body held rigidly has no drive: these columns are zero and come out as not identifiable.
            quantities = _drive_quantities(effects, prismatic=False)
            out += [Parameter(OwnerKind.PAYLOAD, n, quantity, unit) for quantity, unit in quantities]
    return ParameterSpace(tuple(out), effects)


def _inertial_parameters(kind: OwnerKind, body: int) -> list[Parameter]:
    """The ten parameters of one body."""
    return [Parameter(kind, body, name, unit) for name, unit in zip(INERTIAL_NAMES, INERTIAL_UNITS, strict=True)]


def _drive_quantities(effects: Effects, *, prismatic: bool) -> list[tuple[str, str]]:
    """Rotor inertia and friction of one joint, with units. Motor-side friction is separate when both sides are measured."""
    inertia, viscous, torque = ("kg", "N s/m", "N") if prismatic else ("kg m^2", "N m s/rad", "N m")
    units = {"viscous": viscous, "coulomb": torque, "offset": torque}
    motor = [(_MOTOR_SIDE[name], units[name]) for name in effects.friction]
    joint = [(name, units[name]) for name in effects.friction]
    rotor = [(ROTOR_INERTIA, inertia)] if effects.rotor_inertia or effects.measures_motor else []
    match effects.torques:
        case TorqueSide.LINK | TorqueSide.MOTOR:
            return rotor + joint
        case TorqueSide.BOTH:
            return rotor + joint + motor
        case TorqueSide.DIFFERENCE:
            return rotor + motor


def _shape_quantities(effects: Effects, *, prismatic: bool, coupled: bool) -> list[tuple[str, str]]:
    """Friction of one joint beyond the linear one, with units; `coupled` friction only where drives share a joint."""
    words = [word for word in effects.shapes if word != "coupled" or coupled]
    viscous, torque = ("N s/m", "N") if prismatic else ("N m s/rad", "N m")
    units = {"viscous_asymmetry": viscous, "coupled_viscous": viscous, "coulomb_load": "1"}
    return [(name, units.get(name, torque)) for word in words for name in FRICTION_SHAPES[word]]
