"""Call kernels from Python: bind and check arguments, run the compiled code or the simulator, translate when needed.

`Translator` translates a live function, `Simulator` is `k.simulate`. `calls` runs calls of compiled kernels; it imports
torch, so it is not imported here.
"""

from py2cu.call.simulated import Simulator
from py2cu.call.translate import Translator

__all__ = ["Simulator", "Translator"]
