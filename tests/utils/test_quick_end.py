import gc
from typing import Any

from a2c_smcp.terminal.quick_end import quick_imports


def test_after_the_imports_sixty_calls_at_once_cause_no_search_for_garbage() -> None:
    threshold = gc.get_threshold()
    searches: list[Any] = []

    def note(*search: Any) -> None:
        searches.append(search)

    gc.callbacks.append(note)
    try:
        with quick_imports():
            pass
        kept = [[number] for number in range(60 * 80)]  # a call has about eighty objects while it runs
        assert gc.isenabled()
        assert searches == []
        del kept
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*threshold)
        gc.unfreeze()
