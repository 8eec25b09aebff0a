"""Run a launch whose threads wait for each other: each block until all its threads return or none can go on.

In: an `Execution`. Out: `run_blocks`, the number of threads that ran; findings about barriers and livelock.
"""

from __future__ import annotations

import sys

from py2cu.simulator.memory.happens_before import BlockClock
from py2cu.simulator.schedule.block import Block, BlockState
from py2cu.simulator.schedule.execution import Execution
from py2cu.simulator.schedule.livelock import LivelockDetector


def run_blocks(execution: Execution, *, record_returns: bool) -> int:
    """Run every block to its end before the next, unless it waits for a later block or spins; the number of threads.

    A livelocked launch, in which all unfinished threads spin, ends.

    Raises:
        Restart: a finding needs the lines in which threads returned, so the launch has to run again.
    """
    profile = sys.getprofile()
    blocks: list[Block] = []
    livelock = LivelockDetector(execution.bound.values())
    try:
        ran = 0
        done: list[Block] = []  # the last finished block, if any
        for number, place in execution.blocks():
            blocks.append(Block(execution, BlockClock(number, place), record_returns=record_returns))
            ran += len(blocks[-1])
            if blocks[-1].advance() is BlockState.FINISHED:
                done = [blocks.pop()]
        while blocks:
            if all(block.state is BlockState.AT_GRID_BARRIER for block in blocks):
                blocks[0].report_missing_blocks((*blocks, *done))  # rule: blocks-missing
                for block in blocks:
                    block.pass_grid_barrier()
            for block in execution.in_launch_order(blocks):  # rule: blocks-in-order
                if block.state is BlockState.RUNNABLE and block.advance() is BlockState.FINISHED:
                    done = [block]
            blocks = [block for block in blocks if block.state is not BlockState.FINISHED]
            spinning = [block for block in blocks if block.state is BlockState.RUNNABLE]
            if spinning and livelock.is_livelocked(blocks):  # rule: spin-livelock
                spinning[0].report_livelock()
                break
        return ran
    finally:
        for block in blocks:
            block.stop()
        if record_returns:
            sys.setprofile(profile)
