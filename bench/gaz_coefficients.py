"""Coefficients of the inertia matrix of [Gaz2014] counted by every rule of collecting products of sines and cosines.

The work counts 108 coefficients, drops columns that depend on others, and has 74 left. Which products it collects is not printed.
Columns can only depend on one another when products do, so it kept squares of cosines and of sines of a joint both. Here: both,
or squares of sines written by cosines, joint by joint in every combination; forms that are equal up to sign, or up to a number,
count once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
from sympy import QQ, ring

ALPHA = (1, -1, -1, 1, 1, -1, 0)
"""Signs of the right angles of its table I."""

JOINTS = range(7)
TRIG = [f"{f}{i}" for f in "cs" for i in JOINTS]
BODY = [f"{k}{i}" for i in JOINTS for k in ("m", "x", "y", "z", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")]
RING, *_GENERATORS = ring([*TRIG, "d1", "d2", *BODY], QQ)
V = dict(zip([*TRIG, "d1", "d2", *BODY], _GENERATORS, strict=True))

Element = Mapping[tuple[int, ...], Mapping[tuple[int, ...], Any]]
"""Exponents of cosines and sines -> linear form: exponents of lengths and bodies -> number."""


def cross(a: list[Any], b: list[Any]) -> list[Any]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def inertia_stack(*, silent: bool) -> list[Any]:
    """M_11, M_21, ... by its moving frames (eqs. 13, 14), products as they come; with `silent` eq. 27 (M_67 = 0) is used."""
    zero, one = RING(0), RING(1)
    v = [[zero] * 3 for _ in JOINTS]
    w = [[zero] * 3 for _ in JOINTS]
    M = {(a, b): zero for a in JOINTS for b in range(a + 1)}
    for i in JOINTS:
        c, s, a, d = V[f"c{i}"], V[f"s{i}"], ALPHA[i], {2: V["d1"], 4: V["d2"]}.get(i, zero)
        turned = [[c, s, zero], [-s * (1 - a * a), c * (1 - a * a), one * a], [a * s, -a * c, one * (1 - a * a)]]
        w[i] = [w[i][0], w[i][1], w[i][2] + one]
        v = [apply(turned, [x + y for x, y in zip(v[j], cross(w[j], [zero, zero, d]), strict=True)]) for j in JOINTS]
        w = [apply(turned, w[j]) for j in JOINTS]
        m, x, y, z, Ixx, Ixy, Ixz, Iyy, Iyz, Izz = (V[name] for name in BODY[10 * i : 10 * i + 10])
        if silent and i == 6:
            Ixz, Iyz = m * x * z, m * y * z
        inertia = [[Ixx, Ixy, Ixz], [Ixy, Iyy, Iyz], [Ixz, Iyz, Izz]]
        centre = [[p + q for p, q in zip(v[j], cross(w[j], [x, y, z]), strict=True)] for j in JOINTS]
        for a_, b_ in M:
            if a_ <= i:
                moved = apply(inertia, w[a_])
                M[a_, b_] += m * dot(centre[a_], centre[b_]) + dot(moved, w[b_])
    return list(M.values())


def apply(A: list[list[Any]], x: list[Any]) -> list[Any]:
    return [dot(row, x) for row in A]


def dot(a: list[Any], b: list[Any]) -> Any:
    return sum((p * q for p, q in zip(a, b, strict=True)), RING(0))


def collected(element: Any, by_cosine: frozenset[int]) -> Element:
    """Linear forms by product; squares of sines of the named joints written by cosines (none is higher than a square)."""
    out: dict[tuple[int, ...], dict[tuple[int, ...], Any]] = {}
    for exponents, number in element.terms():
        trig, rest = exponents[:14], exponents[14:]
        squares = [i for i in by_cosine if trig[7 + i] == 2]
        for chosen in product((False, True), repeat=len(squares)):
            one = list(trig)
            for i, as_cosine in zip(squares, chosen, strict=True):
                one[7 + i], one[i] = 0, one[i] + 2 * as_cosine
            form = out.setdefault(tuple(one), {})
            form[rest] = form.get(rest, 0) + number * (-1) ** sum(chosen)
    cleaned = {key: {k: x for k, x in form.items() if x} for key, form in out.items()}
    return {key: form for key, form in cleaned.items() if form}


def counted(stack: list[Any], by_cosine: frozenset[int], *, any_number: bool) -> tuple[int, int]:
    """How many forms differ, and how many of their columns are independent."""
    rng, n = np.random.default_rng(0), 24
    q = rng.uniform(-2.0, 2.0, (n, 7))
    basis = np.hstack([np.cos(q), np.sin(q)])
    columns: dict[tuple[Any, ...], np.ndarray] = {}
    for k, element in enumerate(stack):
        for trig, form in collected(element, by_cosine).items():
            items = sorted(form.items())
            unit = items[0][1] if any_number else (1 if items[0][1] > 0 else -1)
            column = columns.setdefault(tuple((name, x / unit) for name, x in items), np.zeros((len(stack), n)))
            column[k] += float(unit) * np.prod(basis ** np.array(trig), axis=1)
    Y = np.array([column.ravel() for column in columns.values()]).T
    return len(columns), int(np.linalg.matrix_rank(Y, tol=1e-9 * float(np.linalg.norm(Y))))


def rules(*, quick: bool) -> Iterator[frozenset[int]]:
    """Joints whose squares of sines are written by cosines: all, none, and every other choice."""
    yield frozenset(JOINTS)
    yield frozenset()
    if not quick:
        for chosen in list(product((False, True), repeat=6))[1:-1]:
            yield frozenset(i + 1 for i in range(6) if chosen[i])


def coefficient_rules(*, quick: bool) -> None:
    """The table of docs/works/gaz2014.md."""
    print("| forms are one when equal up to | M_67 = 0 used | coefficients | independent columns |\n|---|---|---|---|")
    for silent in (False, True):
        stack = inertia_stack(silent=silent)
        for any_number in (False, True):
            pairs = [counted(stack, by_cosine, any_number=any_number) for by_cosine in rules(quick=quick)]
            forms, ranks = (sorted(column) for column in zip(*pairs, strict=True))
            same = "a number" if any_number else "sign"
            said = f"{forms[0]} to {forms[-1]} | {ranks[0]} to {ranks[-1]}"
            hit = "" if 74 not in ranks else "; 74 by " + str(ranks.count(74))
            print(f"| {same} | {'yes' if silent else 'no'} | {said}{hit} |", flush=True)
