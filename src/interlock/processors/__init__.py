"""Built-in processors and compositions of processors."""

from interlock.processors.chain import Chain
from interlock.processors.parallel import Parallel
from interlock.processors.when import When

__all__ = ["Chain", "Parallel", "When"]
