// In the live frame, after the studio's page: the sketch in its sealed scope as a script in memory, and the answer.
"use strict";
{
  const { head, source, tail } = studio.settings;
  const text = `${head}${source}${tail}\n//# sourceURL=sketch.js`;
  studio.sketch = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  const gallery = window.parent;
  studio.paint((result) => gallery.postMessage(result, "*"));
}
