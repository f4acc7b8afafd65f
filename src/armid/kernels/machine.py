"""LLVM on this machine: compile a module once, keep the object code on disk, call it by address.

Object files are keyed by the module's text, the CPU and LLVM's version: several processes may compile, read and write the
same entry at the same time, and a damaged or forged file is compiled anew.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from armid.kernels.cache import cache_directory, read_object, write_object

_CODE_MODEL = "large"
"""Needs no relative address to reach from one section of a loaded object to another. With the small model the process aborted
now and then while an object was finalised beside Arrow's allocator; sections mapped more than 2 GB apart are the suspected
cause, never shown in isolation. Since the large model no abort has been seen."""
_LOCK = threading.Lock()

_ENTRY = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """Compiled code; `call` releases the interpreter lock."""

    call: Any
    from_cache: bool
    _keep: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Machine:
    """The CPU code is generated for."""

    cpu: str
    features: str
    lanes: int

    def target(self) -> Any:
        """A new LLVM target machine: an execution engine takes the one it is given for its own."""
        import llvmlite.binding as llvm

        return llvm.Target.from_default_triple().create_target_machine(
            cpu=self.cpu, features=self.features, opt=2, reloc="pic", codemodel=_CODE_MODEL, jit=True
        )


@cache
def machine() -> Machine:
    """This CPU, as LLVM sees it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu = llvm.get_host_cpu_name()
    flags = llvm.get_host_cpu_features()
    features = flags.flatten()
    lanes = 8 if flags.get("avx512f") and flags.get("avx512dq") else 4 if flags.get("avx2") else 2
    return Machine(cpu, features, lanes)


def load(text: str) -> Loaded:
    """Machine code of a module with an entry point `kernel`, from disk when it is there."""
    import llvmlite
    import llvmlite.binding as llvm

    host = machine()
    key = hashlib.sha256(
        "\0".join((text, host.cpu, host.features, _CODE_MODEL, llvmlite.__version__)).encode()
    ).hexdigest()
    path = cache_directory() / f"{key}.o"
    code = read_object(path)
    found = code is not None
    # LLVM's global context is not safe to use from two threads at once.
    with _LOCK:
        if code is None:
            module, target = llvm.parse_assembly(text), host.target()
            module.triple = target.triple
            module.data_layout = str(target.target_data)
            code = target.emit_object(module)
            write_object(path, code)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), host.target())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        address = engine.get_function_address("kernel")
    return Loaded(_ENTRY(address), found, engine)
