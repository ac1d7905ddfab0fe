"""`a2c server` that says on SIGUSR1 how many tasks its event loop holds."""

import asyncio
import signal
import sys
from types import FrameType

from a2c_smcp.cli import main


def tell(_number: int, _frame: FrameType | None) -> None:
    print(f"HOLDS {len(asyncio.all_tasks())}", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, tell)
    sys.argv[1:1] = ["server"]
    main()
