"""Compilers of kernels, with less work for LLVM than numba's: each line of a kernel is optimised once, where it runs.

numba optimises every function by itself and makes machine code of it, and does both again in every function that it
becomes part of. What only kernels call needs neither by itself: ``PartCompiler`` hands on intermediate code as it is,
and ``WholeCompiler`` optimises what Python calls together with all its parts, once. Both replace numba's code library,
which ``mast_opt.core.fingerprint`` ties to numba's version.
"""

from typing import Any, ClassVar

from llvmlite.binding import Linkage
from numba.core import typed_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass


class _Library(JITCodeLibrary):
    """Code of one function and its parts, which no pass sees before they are together."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Set the data layout of a kernel's module, and leave its functions to the last pass."""
        ll_module.data_layout = self._codegen._data_layout


class _WholeLibrary(_Library):
    """Code that runs by itself."""

    def _optimize_final_module(self) -> None:
        """Optimise the module of a whole kernel once, with the parts that it calls."""
        for function in self._final_module.functions:  # private ones may be specialised, and go where they are unused
            if function.linkage == Linkage.linkonce_odr and not function.is_declaration:
                function.linkage = Linkage.internal
        manager, builder = self._codegen._module_pass_manager()
        manager.run(self._final_module, builder)


class _WithoutEnvironments:
    """numba's code generator for a library without machine code, in which no Python object can be registered."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def set_env(self, name: str, environment: Any) -> None:
        """Set no environment: kernels compiled so have none."""


class _PartLibrary(_Library):
    """Code that is linked into others and has no machine code of its own."""

    @property
    def codegen(self) -> Any:
        """Code generator that makes no environments."""
        return _WithoutEnvironments(self._codegen)

    def _optimize_final_module(self) -> None:
        """Leave a part of kernels unoptimised until a kernel that calls it is."""

    def _finalize_final_module(self) -> None:
        """Finish a part of kernels without machine code of its own."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: a part of kernels has no machine code of its own."""
        return 0


class _Lowering(typed_passes.NativeLowering):
    """numba's last pass, which writes intermediate code, into a library of ours."""

    library: ClassVar[type[_Library]]

    def run_pass(self, state: Any) -> bool:
        """Compile a kernel into the kind of library that this compiler uses."""
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _WholeLowering(_Lowering):
    _name = "whole_lowering"  # type: ignore[assignment]
    library = _WholeLibrary


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(_Lowering):
    _name = "part_lowering"  # type: ignore[assignment]
    library = _PartLibrary


class WholeCompiler(CompilerBase):
    """Compiler of functions that Python calls."""

    lowering: ClassVar[type[_Lowering]] = _WholeLowering

    def define_pipelines(self) -> list[Any]:
        """numba's own passes, the last of them replaced."""
        manager = PassManager("mast_opt")
        for define in (
            DefaultPassBuilder.define_untyped_pipeline,
            DefaultPassBuilder.define_typed_pipeline,
            DefaultPassBuilder.define_nopython_lowering_pipeline,
        ):
            manager.passes += define(self.state).passes
        manager.passes = [
            (self.lowering if step is typed_passes.NativeLowering else step, text) for step, text in manager.passes
        ]
        manager.finalize()
        return [manager]


class PartCompiler(WholeCompiler):
    """Compiler of kernels that only kernels call."""

    lowering = _PartLowering
