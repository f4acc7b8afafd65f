"""What can be identified, as an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from armid.documents import write_json, write_text
from armid.errors import InputError
from armid.identifiability.base import BaseParameters, Category
from armid.inspection.closed_form import ArmForm, FormWord, arm_form, axis_caption, form_files
from armid.inspection.motion_excitation import MotionExcitation
from armid.notes import Note
from armid.outcome import Check, Listing, Outcome, Provenance
from armid.page import Cell, Table
from armid.parameters.effects import Effects
from armid.parameters.space import Parameter
from armid.robot.robot import Robot
from armid.rows.quantity import Quantity
from armid.words import choice

if TYPE_CHECKING:
    import sympy

_WEAKEST_SHOWN = 6
"""Parameters a motion excites least, in the summary; the page has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedParameter:
    """One standard parameter and what measurements say about it.

    Args:
        name: `link3.mx`.
        unit: SI; empty for kinematic errors, which are in m or rad.
        identifiable: alone, in combination, or not at all.
        expression: the combination that bears its name; empty when it leads none.
        enters: base parameters it is part of, with commas between them.
    """

    name: str
    unit: str
    identifiable: Category
    expression: str
    enters: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Inspection(Outcome):
    """What can be identified.

    Args:
        robot: the arm.
        quantities: what is measured.
        effects: what the model holds.
        standard: the standard parameters; empty for poses.
        base: the base parameters with numbers.
        terms: their coefficients as exact expressions, in the link lengths where closed forms exist.
        closed_form: whether they do.
        per_channel: rank of each channel's own rows.
        motion: what a motion on request excites of it.
        forms: closed forms on request.
        checks: conditions the answer was held against.
        notes: what a reader must know.
        provenance: what it came from.
    """

    _page: ClassVar[str] = "armid.report.inspection:inspection_report"
    _loads = True

    robot: Robot
    quantities: tuple[Quantity, ...]
    effects: Effects
    standard: tuple[Parameter, ...]
    base: BaseParameters
    terms: tuple[dict[str, sympy.Expr], ...]
    closed_form: bool
    per_channel: Mapping[str, int]
    motion: MotionExcitation | None = None
    forms: Mapping[FormWord, ArmForm] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    notes: tuple[Note, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def standard_parameters(self) -> int:
        """How many standard parameters there are."""
        return len(self.base.parameters)

    @property
    def base_parameters(self) -> int:
        """How many independent combinations of them can be identified."""
        return len(self.base)

    @property
    def unidentifiable(self) -> tuple[str, ...]:
        """Standard parameters without any effect on the measurement."""
        return self.base.unidentifiable

    @property
    def parameters(self) -> Listing[InspectedParameter]:
        """Every standard parameter: alone, in combination (and in which), or not at all."""
        from armid.identifiability.expressions import plain

        units = {parameter.name: parameter.unit for parameter in self.standard}
        leading = dict(zip(self.base.names, self.terms, strict=True))
        return Listing(
            InspectedParameter(
                name=name,
                unit=units.get(name, ""),
                identifiable=category,
                expression=plain(leading[name]) if name in leading else "",
                enters=", ".join(lead for lead, terms in leading.items() if name in terms),
            )
            for name, category in self.base.categories.items()
        )

    def form(self, word: str | FormWord) -> ArmForm:
        """A closed form: `gravity`, `inertia-matrix`, `coriolis` or `axis-inertia`.

        Raises:
            UnknownNameError: another word.
            InputError: kinematics were inspected.
            UnsupportedClosedFormError: drives that move several joints have no axis inertias in closed form.
        """
        chosen = choice("closed form", word, FormWord)
        if Quantity.POSE in self.quantities:
            raise InputError("closed form", "asked for kinematic parameters", "inspect a quantity of the dynamics")
        if chosen in self.forms:
            return self.forms[chosen]
        return arm_form(self.robot, chosen, base=self.base, terms=self.terms, parameters=self.standard)

    def with_forms(self, words: Iterable[str | FormWord]) -> Inspection:
        """The same with these closed forms kept in it, to be saved and shown."""
        return replace(self, forms={choice("closed form", word, FormWord): self.form(word) for word in words})

    def latex(self) -> str:
        """The regroupings as an `align*` environment, one per line."""
        from armid.identifiability.expressions import Notation

        notation = Notation.of(self.standard)
        pairs = list(zip(self.base.names, self.terms, strict=True))
        lines = [
            rf"  {notation.latex_name(name)}^{{\mathrm{{R}}}} &= {notation.latex(terms)} \\"
            for name, terms in pairs
            if len(terms) > 1
        ]
        alone = [notation.latex_name(name) for name, terms in pairs if len(terms) == 1]
        last = rf"% alone: ${', '.join(alone)}$" if alone else "% none alone"
        return "\n".join([r"\begin{align*}", *lines, r"\end{align*}", last])

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Writes `inspect.json`, `base_parameters.tex` and the closed forms asked for into a folder.

        Raises:
            InputError: it cannot be written.
        """
        place = Path(folder)
        texts = {"base_parameters.tex": self.latex() + "\n"}
        for form in self.forms.values():
            texts |= form_files(form)
        written = [write_json(place / "inspect.json", self.as_dict())]
        return (*written, *(write_text(place / name, text) for name, text in texts.items()))

    def as_dict(self) -> dict[str, Any]:
        from armid.identifiability.expressions import plain

        base = self.base
        return {
            "robot": self.robot.name,
            "quantity": [quantity.value for quantity in self.quantities],
            "standard_parameters": self.standard_parameters,
            "base_parameters": self.base_parameters,
            "unidentifiable": list(base.unidentifiable),
            "base": [
                {
                    "name": name,
                    "expression": plain(terms),
                    "terms": base.terms(i),
                    "symbolic_terms": {key: str(value) for key, value in terms.items()},
                }
                for i, (name, terms) in enumerate(zip(base.names, self.terms, strict=True))
            ],
            "per_channel": list(self.per_channel.values()),
            "channels": list(self.per_channel),
            "categories": {name: category.value for name, category in base.categories.items()},
            "closed_form": self.closed_form,
            "rank": base.decision.as_dict(),
            "weak": [weak.as_dict() for weak in base.weak],
            "verdict": str(self.verdict),
            "reasons": list(self.reasons),
            "checks": [check.as_dict() for check in self.checks],
            "notes": [note.as_dict() for note in self.notes],
            **({} if self.motion is None else {"excitation": self.motion.as_dict()}),
        }

    def _heading(self) -> str:
        measured = " and ".join(self.quantities)
        return (
            f"{self.robot.name}, {measured}: {self.base_parameters} base parameters "
            f"out of {self.standard_parameters} standard ones"
        )

    def _tables(self) -> tuple[Table, ...]:
        channels = Table(("channel", "rank of its own rows"), tuple(self.per_channel.items()))
        forms = [form for word, form in self.forms.items() if word is FormWord.AXIS_INERTIA]
        return (
            self.regrouping_table(),
            self.category_table(),
            channels,
            *(self._motion_tables()),
            *(table for form in forms for table in _axis_tables(form)),
        )

    def regrouping_table(self) -> Table:
        """One row per base parameter."""
        from armid.identifiability.expressions import Notation

        notation = Notation.of(self.standard)
        rows = tuple((name, notation.unicode(terms)) for name, terms in zip(self.base.names, self.terms, strict=True))
        return Table(("base parameter", "combination of standard parameters"), rows, caption=self.base.decision.reason)

    def category_table(self) -> Table:
        """What can be found of each body and drive: alone, only in combination, not at all."""
        known = {parameter.name: parameter for parameter in self.standard}
        found: dict[str, dict[Category, list[str]]] = {}
        for name, category in self.base.categories.items():
            owner, shown = (known[name].owner, known[name].quantity) if name in known else (name, "x")
            found.setdefault(owner, {}).setdefault(category, []).append(shown)
        rows = tuple(
            (owner, *(" ".join(lists.get(category, ())) for category in Category)) for owner, lists in found.items()
        )
        counts = [sum(value is category for value in self.base.categories.values()) for category in Category]
        titles = (f"{category} ({count})" for category, count in zip(Category, counts, strict=True))
        return Table(("parameters of", *titles), rows)

    def _motion_tables(self) -> tuple[Table, ...]:
        if self.motion is None:
            return ()
        motion = self.motion.excitation
        order = sorted(zip(motion.strength, motion.names, motion.standard_deviations, strict=True))[:_WEAKEST_SHOWN]
        rows: tuple[tuple[Cell, ...], ...] = tuple((name, float(s), float(deviation)) for s, name, deviation in order)
        low, high = motion.bounds
        caption = (
            f"this motion: {len(motion.not_excited)} of {len(motion.names)} base parameters are not excited "
            f"(between {low:.2g} and {high:.2g}); condition number {self.motion.condition_number:.4g} in SI units, "
            f"{self.motion.condition_number_scaled:.4g} with scaled columns; weakest first, 1 is perfect"
        )
        return (Table(("base parameter", "strength", "standard deviation"), rows, caption=caption),)


def _axis_tables(form: ArmForm) -> list[Table]:
    """The minimal model of every axis; short enough to be read at once."""
    from armid.identifiability.expressions import Notation

    notation = Notation.of(form.standard)
    return [
        Table(
            ("function", "multiplies"),
            tuple((str(f).replace("**", "^"), notation.unicode(terms)) for f, terms in form.axis_functions(k)),
            caption=axis_caption(form, k),
        )
        for k in range(len(form.axis_models))
    ]
