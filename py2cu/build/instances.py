"""Fill the cache: compile every instance that calls of a translated kernel can run, for every architecture.

In: a `CallTranslation`. Out: the number of instances. The first call of a kernel then needs no compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

from py2cu.build import cpu_entry, cuda_kernel, toolchain
from py2cu.ir.abi.launch import SCATTERED, LaunchProgram
from py2cu.source import SourceFile
from py2cu.translation import CallTranslation, TargetName


def fill_cache(translation: CallTranslation, target: TargetName, *, fma: bool, source: Callable[[], SourceFile]) -> int:
    """Compile the instances of all kernels that are not cached yet.

    Raises:
        BuildError: a compiler refused the text.
        EnvironmentLacks: a compiler is missing, or a kernel has no version for `target`.
    """
    code, count = translation.text(target), 0
    for program, template in instances(translation, target):
        if target is TargetName.CPU:
            for block in (True, False) if program.has_block_instance else (False,):
                cpu_entry.CpuInstance(code, program.symbol, template, block).library(source)
                count += 1
            continue
        for architecture in toolchain.gpu_architectures():
            name = f"sm_{architecture.partition('+')[0].replace('.', '')}"
            cuda_kernel.compiled(cuda_kernel.CudaInstance(code, program, template, fma), name, source)
            count += 1
    return count


def instances(translation: CallTranslation, target: TargetName) -> Iterator[tuple[LaunchProgram, str]]:
    """Each program with the template arguments of each instance that calls launch."""
    for signature, programs in zip(translation.signatures, translation.text(target).programs, strict=True):
        values = [*product(*(constexpr.values for constexpr in signature.constexprs.values()))]
        for program in programs:
            widths = (False, True) if program.has_index_type and program.fits else (False,)
            given = product((True, False), repeat=len(program.optional))
            for chosen, presence, packs, is_wide in product(values, given, _packs(program), widths):
                yield program, program.template_arguments(chosen, presence, packs, is_wide=is_wide)


def _packs(program: LaunchProgram) -> list[tuple[int, ...]]:
    """Width and count of a thread's packs: of a call, of one with unaligned arrays, and of an explicit launch."""
    packs = program.packs
    return [()] if packs is None else [*dict.fromkeys([(packs.width, packs.count), (1, SCATTERED), (1, 1)])]
