// What the computer says of a text while a person types it: asked when the typing pauses.
import { post } from "./api.js";
import { useEffect, useState } from "./html.js";

/** The answer to `body`, or what went wrong as `problems`; null until there is one, or if there is no `body`. */
export function useChecked(path, body) {
  const [checked, setChecked] = useState(null);
  useEffect(() => {
    let over = false;
    setChecked(null);
    if (!body) return undefined;
    const timer = setTimeout(async () => {
      const found = await post(path, body).catch((error) => ({ problems: [error.message] }));
      if (!over) setChecked(found);
    }, 350);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [path, JSON.stringify(body)]);
  return checked;
}
