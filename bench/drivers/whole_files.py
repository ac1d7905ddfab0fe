"""markitdown on whole files, after it has seen a small one of the same format. Prints one line of JSON."""

import json
import sys
import time

from markitdown import MarkItDown

small, large = sys.argv[1:3]
converter = MarkItDown()
converter.convert(small)
started = time.perf_counter()
text = converter.convert(large).text_content
print(json.dumps({"seconds": time.perf_counter() - started, "characters": len(text)}))
