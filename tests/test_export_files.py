"""From a result to files: the gate, what is in them, what is not, and nothing half-written."""

from __future__ import annotations

import importlib.util
import json
import os
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from armid.errors import InputError
from armid.export import export as module
from armid.export.export import UNVALIDATED, Format, Parameters, export_result, merely_described
from armid.export.gate import RELOAD_TOLERANCE, ExportRefusedError, ReloadError, reload_checks
from armid.export.losses import listed
from armid.identification.records import EssentialChoice
from armid.identification.result import Result, load_result
from armid.identification.sensors import Imperfections, Sized
from armid.kernels.dynamics import inverse_dynamics
from armid.robot.load import load_robot
from armid.rows.imperfections import ColumnReference, Family, Imperfection
from support.identified import URDF, trusted, untrusted, urdf_file, without_file

ALL = list(Format)


def states(n: int) -> np.ndarray:
    return np.random.default_rng(2).uniform(-1.0, 1.0, size=(3, 10, n))


def test_the_fixture_is_trusted() -> None:
    assert trusted().verdict == "trusted", trusted().reasons


def test_urdf_changes_nothing_but_values(tmp_path: Path) -> None:
    done = export_result(trusted(), Format.URDF, tmp_path)
    text = done.files[0].read_text()
    assert {p.name for p in tmp_path.iterdir()} == {"trio.urdf", "trio.joints.yaml", ".armid.json"}
    for kept in (
        "<!-- Shop floor copy, do not delete. -->",
        "<!-- turns on the floor -->",
        "package://trio/column.stl",
    ):
        assert kept in text
    # Line by line, only numbers of inertials and friction differ; comments of our own come before the root, the rotors' tags
    # at the end, and their name space in the root.
    body = text[: text.index("  <transmission")] + text[text.rindex("</transmission>\n") + len("</transmission>\n") :]
    body = body.replace(' xmlns:drake="http://drake.mit.edu"', "")
    ours = [line for line in body[body.index("<robot") :].splitlines()]
    ours = [*URDF[: URDF.index("<robot")].splitlines(), *ours]
    assert text.startswith(URDF[: URDF.index("<robot")])
    changed = [(a, b) for a, b in zip(URDF.splitlines(), ours, strict=True) if a != b]
    tags = {a.strip().split()[0] for a, _ in changed}
    assert tags <= {"<origin", "<mass", "<inertia", "<dynamics"}
    kept_origins = [line for line in URDF.splitlines() if "<origin" in line and ("rpy" in line or 'xyz="0' in line)]
    assert {"<mass", "<inertia", "<dynamics"} <= tags
    assert all(line in ours for line in kept_origins if 'xyz="0.4' in line or "rpy" in line)


def test_urdf_means_the_identified_arm(tmp_path: Path) -> None:
    done = export_result(trusted(), Format.URDF, tmp_path)
    again, arm = load_robot(str(done.files[0])), trusted().robot
    q, qd, qdd = states(3)
    expected = inverse_dynamics(arm, q, qd, qdd)
    assert np.abs(inverse_dynamics(again, q, qd, qdd) - expected).max() < 1e-9 * np.abs(expected).max()
    assert again.drive("viscous") == pytest.approx(arm.drive("viscous"))
    assert again.drive("coulomb") == pytest.approx(arm.drive("coulomb"))
    assert {check.program for check in done.reloads} >= {"MuJoCo", "armid"}
    assert all(check.difference <= RELOAD_TOLERANCE for check in done.reloads)
    assert any("rotor inertia" in line for line in done.missing)
    assert any("offset" in line for line in done.missing)


def test_urdf_of_an_arm_without_a_file(tmp_path: Path) -> None:
    done = export_result(without_file(), Format.URDF, tmp_path)
    q, qd, qdd = states(3)
    expected = inverse_dynamics(trusted().robot, q, qd, qdd)
    found = inverse_dynamics(load_robot(str(done.files[0])), q, qd, qdd)
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()


def test_a_changed_source_is_an_error(tmp_path: Path) -> None:
    moved = tmp_path / "trio.urdf"
    moved.write_text(URDF.replace('mass value="6.0"', 'mass value="6.1"'))
    robot = trusted().described
    changed = replace(trusted(), described=replace(robot, source=replace(robot.source, path=str(moved))))
    with pytest.raises(InputError, match="has changed since the identification"):
        export_result(changed, Format.URDF, tmp_path / "out")
    moved.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        export_result(changed, Format.URDF, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_mjcf_holds_rotors_and_friction(tmp_path: Path) -> None:
    done = export_result(trusted(), Format.MJCF, tmp_path)
    model, arm = mujoco.MjModel.from_xml_path(str(done.files[0])), trusted().robot
    assert model.dof_armature == pytest.approx(arm.drive("rotor_inertia"))
    assert model.dof_damping == pytest.approx(arm.drive("viscous"))
    assert model.dof_frictionloss == pytest.approx(arm.drive("coulomb"))
    assert 'balanceinertia="false"' in done.files[0].read_text()
    assert -model.jnt_stiffness * model.qpos_spring == pytest.approx(arm.drive("offset"))
    assert "springs so soft" in done.files[0].read_text()
    assert not any("rotor" in line or "offset" in line for line in done.missing)


def test_json_has_everything(tmp_path: Path) -> None:
    done = export_result(trusted(), Format.JSON, tmp_path)
    text = json.loads(done.files[0].read_text())
    n = len(trusted().estimate)
    assert np.array(text["covariance"]) == pytest.approx(trusted().estimate.covariance)
    assert len(text["estimate"]["parameters"]) == n
    assert text["verdict"] == "trusted"
    assert text["UNVALIDATED"] is False
    assert text["provenance"]["robot"]["sha256"] == trusted().described.source.sha256


def test_base_parameters_as_code_give_the_free_estimate(tmp_path: Path) -> None:
    done = export_result(trusted(), Format.PYTHON, tmp_path, parameters=Parameters.BASE)
    specification = importlib.util.spec_from_file_location("generated_base_arm", done.files[0])
    assert specification is not None
    assert specification.loader is not None
    generated = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(generated)
    standard = dict(zip(trusted().estimate.base.parameters, trusted().estimate.standard, strict=True))
    coulomb = np.array([standard[f"joint{i}.coulomb"] for i in (1, 2, 3)])
    inputs, free = trusted().traces["run0.inputs"], trusted().traces["run0.free"]
    for s in range(0, len(inputs), 50):
        q, qd, qdd, direction = inputs[s].reshape(4, 3)
        # The fit sees the direction of friction through the low-pass of the torque, the code sees velocity alone.
        found = np.array(generated.torque(q, qd, qdd)) + coulomb * (direction - np.sign(qd))
        assert np.abs(found - free[s]).max() < 1e-10 * np.abs(free).max()
    with pytest.raises(InputError, match="base parameters are not bodies"):
        export_result(trusted(), Format.URDF, tmp_path, parameters=Parameters.BASE)


@pytest.mark.parametrize("target", ALL)
def test_untrusted_is_refused(target: Format, tmp_path: Path) -> None:
    with pytest.raises(ExportRefusedError, match=r"held-out torque error 40 %.*--force"):
        export_result(untrusted(), target, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", ALL)
def test_forced_is_marked_in_name_and_inside(target: Format, tmp_path: Path) -> None:
    done = export_result(untrusted(), target, tmp_path, force=True)
    assert done.verdict == "untrusted"
    for path in done.files:
        assert "UNVALIDATED" in path.name
        assert "UNVALIDATED" in path.read_text()
    if target in (Format.URDF, Format.MJCF):
        ElementTree.parse(done.files[0])
        assert "held-out torque error 40 %" in done.files[0].read_text()


@pytest.mark.parametrize("target", ALL)
def test_trusted_is_not_marked(target: Format, tmp_path: Path) -> None:
    for path in export_result(trusted(), target, tmp_path, name="mine").files:
        assert path.name.startswith("mine")
        assert "UNVALIDATED:" not in path.read_text()


def test_a_file_read_differently_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def heavier(text: str, *args: object, **kwargs: object) -> str:
        return str(original(text, *args, **kwargs)).replace('mass value="', 'mass value="9')

    original = module.updated_urdf
    monkeypatch.setattr(module, "updated_urdf", heavier)
    with pytest.raises(ReloadError, match="differ by"):
        export_result(trusted(), Format.URDF, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_reload_refuses_what_nobody_can_read() -> None:
    text = "<mujoco><worldbody><body><joint type='nonsense'/></body></worldbody></mujoco>"
    with pytest.raises(ReloadError, match="MuJoCo refuses"):
        reload_checks(trusted().robot, text, mjcf=True)


def test_failure_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export_result(trusted(), Format.MJCF, tmp_path)
    before = (tmp_path / "trio.xml").read_bytes()

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match="No space left"):
        export_result(trusted(), Format.MJCF, tmp_path)
    assert (tmp_path / "trio.xml").read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"trio.xml", ".armid.json"}


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        export_result(trusted(), Format.JSON, tmp_path / "file" / "below")


def test_stored_and_loaded_result_exports_the_same(tmp_path: Path) -> None:
    trusted().save(tmp_path / "result")
    a = export_result(trusted(), Format.URDF, tmp_path / "a").files[0]
    b = export_result(load_result(tmp_path / "result"), Format.URDF, tmp_path / "b").files[0]
    assert a.read_text() == b.read_text()
    assert urdf_file().read_text() == URDF


def test_essential_parameters_as_code_say_their_price(tmp_path: Path) -> None:
    """Dropped parameters are zero, the file says what that costs, and a reduced model that does not hold is refused."""
    result = trusted()
    fixed = dict(zip(result.estimate.names, map(float, result.estimate.values), strict=True))
    least = min(fixed, key=lambda name: abs(fixed[name]))
    with pytest.raises(InputError, match="does not say which"):
        export_result(result, Format.PYTHON, tmp_path / "none", parameters=Parameters.ESSENTIAL)

    def reduced(dropped: set[str]) -> Result:
        kept = {name: value for name, value in fixed.items() if name not in dropped}
        choice = EssentialChoice(rule="hand", kept=tuple(kept), stopped="", removals=(), values=kept)
        return replace(result, sensitivity=replace(result.sensitivity, essential=choice))

    done = export_result(reduced({least}), Format.PYTHON, tmp_path, parameters=Parameters.ESSENTIAL)
    text = done.files[0].read_text()
    assert f"{len(fixed) - 1} essential of {len(fixed)} base parameters: held-out torque error" in text
    few = reduced(set(sorted(fixed, key=lambda name: -abs(fixed[name]))[:4]))
    with pytest.raises(ExportRefusedError, match="reduced to"):
        export_result(few, Format.PYTHON, tmp_path / "few", parameters=Parameters.ESSENTIAL)
    forced = export_result(few, Format.PYTHON, tmp_path / "few", parameters=Parameters.ESSENTIAL, force=True)
    assert UNVALIDATED in forced.files[0].name


def test_a_mass_that_the_data_leave_open_by_more_than_itself_is_named() -> None:
    result = trusted()
    c = result.consistent
    k = c.names.index("link3.mass")
    share, spread = np.array(c.data_share), np.array(c.standard_deviations)
    share[k] = 0.5
    for width, named in ((0.1, False), (1.0, True)):
        spread[k] = width * c.values[k]
        loose = replace(result, consistent=replace(c, data_share=share, standard_deviations=spread))
        assert any(line.startswith("masses: the data leave link3.mass") for line in merely_described(loose)) is named


def test_what_no_file_could_have_is_to_know_and_not_a_loss_of_the_format(tmp_path: Path) -> None:
    result = trusted()
    sizes = tuple(
        Sized(Imperfection(family=family, joint=1, unit="1", tolerance=0.05), 0.1, 0.01)
        for family in (Family.GAIN, Family.POSITION_SINE)
    )
    reference = ColumnReference.without_model(3, recorded_velocity=False)
    first = Imperfections(joints=result.robot.joint_names, sizes=sizes[:1], reference=reference)
    found = replace(first, sizes=sizes[1:], before=first)
    share = np.array(result.consistent.data_share)
    share[0] = 0.0
    result = replace(result, imperfections=found, consistent=replace(result.consistent, data_share=share))
    done = export_result(result, Format.URDF, tmp_path)
    text, screen = done.files[0].read_text(), done.lines()
    for words, lost in (
        ("torque offsets (", True),
        ("torque of these families subtracted", True),
        ("recorded with these errors of the sensors, undone", False),
        ("no data for ", False),
    ):
        assert sum(words in line for line in text.splitlines()) == 1, words
        assert f"{'Missing' if lost else 'To know'}: {words}" in text
        assert any(line.startswith(f"{'not in this format' if lost else 'to know'}: {words}") for line in screen)
        assert any(line.startswith(words) for line in done.missing)  # all of them, for programs
        assert any(line.startswith(words) for line in done.as_dict()["to_know"]) is not lost


def test_long_lists_of_names_say_how_many_more_there_are() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(i) for i in range(8)]).endswith("6, 7")
    assert listed([str(i) for i in range(42)]) == "0, 1, 2, 3, 4, 5, 6, 7 and 34 more"


def test_a_folder_that_cannot_be_written_and_a_file_of_someone_else_are_one_clear_line(tmp_path: Path) -> None:
    done = export_result(trusted(), Format.C, tmp_path / "own")
    assert export_result(trusted(), Format.C, tmp_path / "own").files == done.files  # our own file, as we left it
    done.files[0].write_text("int mine;")
    with pytest.raises(InputError) as refused:
        export_result(trusted(), Format.C, tmp_path / "own")
    assert done.files[0].name in str(refused.value)
    assert "\n" not in str(refused.value)
    assert done.files[0].read_text() == "int mine;"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"^[^\n]*file[^\n]*cannot be written[^\n]*$"):
        export_result(trusted(), Format.C, tmp_path / "file" / "below")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser writes into read-only folders")
def test_a_read_only_folder_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0o555)
    with pytest.raises(InputError, match=r"^[^\n]*shut[^\n]*cannot be written: Permission denied[^\n]*$"):
        export_result(trusted(), Format.C, tmp_path / "shut")
