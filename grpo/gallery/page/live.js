// Paints a stored sketch again, here, with the same seed, and compares.
//
// The sketch runs in a sandboxed frame without an origin, without network, with the studio's own sealed page inside. The
// same program on another rasterizer gives other pixels here and there, so the answer is a measure, not a verdict:
// equal or not by a checksum of all pixels, how far apart by the mean colours of fields of 8 x 8 pixels, and where by a
// picture of the difference that the browser itself lays over.
"use strict";
(() => {
  const gallery = window.gallery;
  const { h } = gallery;
  const PATIENCE = 120_000; // milliseconds
  const FIELD = 8;
  const SEEN = 4; // levels of 255 from which a field counts as different

  const crcTable = Uint32Array.from({ length: 256 }, (_, n) => {
    for (let bit = 0; bit < 8; bit++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
    return n;
  });
  const checksum = (bytes) => {
    let crc = ~0;
    for (const byte of bytes) crc = (crc >>> 8) ^ crcTable[(crc ^ byte) & 255];
    return ~crc >>> 0;
  };

  const pixels = async (address, ground) => {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = h("canvas", { width: image.naturalWidth, height: image.naturalHeight });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    if (ground) {
      context.fillStyle = "white";
      context.fillRect(0, 0, canvas.width, canvas.height);
    }
    context.drawImage(image, 0, 0);
    return context.getImageData(0, 0, canvas.width, canvas.height);
  };

  // Mean colour of each whole field, row by row, three bytes a field.
  const fieldsOf = ({ data, width, height }) => {
    const [columns, rows] = [Math.floor(width / FIELD), Math.floor(height / FIELD)];
    const sums = new Float64Array(3 * columns * rows);
    for (let y = 0; y < rows * FIELD; y++) {
      for (let x = 0; x < columns * FIELD; x++) {
        const to = 3 * (Math.floor(y / FIELD) * columns + Math.floor(x / FIELD));
        for (let k = 0; k < 3; k++) sums[to + k] += data[4 * (y * width + x) + k];
      }
    }
    return sums.map((sum) => Math.round(sum / FIELD ** 2));
  };

  gallery.compare = async (live, fields, stored) => {
    const painted = await pixels(live, true);
    if (checksum((await pixels(live, false)).data) === stored) return { equal: true, mean: 0, share: 0 };
    const known = await pixels(fields, false);
    const own = fieldsOf(painted);
    if (own.length !== 3 * known.width * known.height) return { equal: false, size: true };
    let [sum, differing] = [0, 0];
    for (let field = 0; field < own.length / 3; field++) {
      const apart = [0, 1, 2].map((k) => Math.abs(own[3 * field + k] - known.data[4 * field + k]));
      sum += (apart[0] + apart[1] + apart[2]) / 3;
      differing += Math.max(...apart) > SEEN;
    }
    return { equal: false, mean: (3 * sum) / own.length, share: (3 * differing) / own.length };
  };

  const frameText = (settings, source) => {
    const { page, p5, brush } = gallery.studio;
    const own = { ...settings, source, api: page.api, parameters: page.parameters, head: page.head, tail: page.tail };
    const policy = `default-src 'none'; script-src blob: 'wasm-unsafe-eval' 'unsafe-inline'; style-src 'unsafe-inline'`;
    const scripts = page.scripts.map((text) => `<script>${{ p5, brush }[text] ?? text}</script>`);
    return (
      `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">` +
      `<style>body{margin:0;background:#fff}</style>` +
      `<script type="application/json" id="studio-settings">${JSON.stringify(own).replaceAll("<", "\\u003c")}</script>` +
      `${scripts.join("")}</head><body></body></html>`
    );
  };

  // Run the sketch in a frame inside `place`. Resolves to the page's report (studio/harness.js), or to { lost: why }.
  gallery.paint = async (place, settings, source) => {
    const loaded = await Promise.all(
      ["page", "p5", "brush"].map((name) => name in gallery.studio || gallery.load(`studio/${name}.js`)),
    );
    if (loaded.includes(false)) return { lost: "the folder studio/ of this gallery is missing" };
    return new Promise((resolve) => {
      const frame = h("iframe", { sandbox: "allow-scripts", title: "The sketch paints", tabindex: "-1" });
      const end = (report) => {
        clearTimeout(timer);
        window.removeEventListener("message", listen);
        frame.remove();
        resolve(report);
      };
      const listen = (event) => {
        if (event.source === frame.contentWindow) end(event.data);
      };
      const timer = setTimeout(() => end({ lost: `nothing was painted within ${PATIENCE / 1000} seconds` }), PATIENCE);
      window.addEventListener("message", listen);
      frame.srcdoc = frameText(settings, source);
      place.replaceChildren(frame);
    });
  };

  const words = ({ equal, size, mean, share }, seconds) => {
    const time = `Painted in ${seconds.toFixed(1)} s. `;
    if (equal) return `${time}Equal to the stored painting to the last pixel.`;
    if (size) return `${time}Of another size than the stored painting.`;
    return (
      `${time}In the mean ${mean.toFixed(2)} of 255 levels from the stored painting; ${(100 * share).toFixed(1)} % of the ` +
      `fields of ${FIELD} × ${FIELD} pixels differ by more than ${SEEN}. Rasterizers differ: same sketch, same seed, another machine.`
    );
  };

  const figure = (caption, ...inside) =>
    h("figure", null, h("div", { class: "picture" }, inside), h("figcaption", null, caption));

  // The section of a painting's page. detail: the rollout's details, with its source.
  gallery.repainting = (painting, detail, source) => {
    const run = gallery.run(painting.run);
    if (!painting.image || !source) return null;
    if (!run.live)
      return h(
        "section",
        { class: "live" },
        h("p", { class: "quiet" }, `It cannot be painted again here: ${gallery.live}.`),
      );
    const [result, said] = [h("div", { class: "pair" }), h("p", { class: "said", role: "status" })];
    const button = h("button", { type: "button", id: "repaint", class: "main" }, "Paint it again, here");
    const paint = async () => {
      if (button.disabled) return;
      button.disabled = true;
      said.textContent = "The sketch is painting, with the run's seed …";
      const place = h("div", { class: "picture" });
      result.replaceChildren(
        figure("Stored", gallery.h("img", { src: painting.image, alt: "Stored painting" })),
        h("figure", null, place, h("figcaption", null, "Live")),
      );
      place.scrollIntoView({ block: "nearest" });
      const started = performance.now();
      const report = await gallery.paint(place, run.live, source);
      const seconds = (performance.now() - started) / 1000;
      button.disabled = false;
      const trouble =
        report.lost ??
        report.refusal?.detail ??
        report.errors?.[0]?.message ??
        (report.context_lost && "WebGL was lost");
      if (!report.png) {
        said.textContent = `Nothing was painted: ${trouble || "this browser may lack WebGL 2"}.`;
        return;
      }
      place.replaceChildren(h("img", { src: report.png, alt: "Live painting", id: "live" }));
      result.append(
        figure(
          "Difference, eight times as strong",
          h(
            "div",
            { class: "difference" },
            h("img", { src: painting.image, alt: "" }),
            h("img", { src: report.png, alt: "Difference of both", class: "over" }),
          ),
        ),
      );
      const found = await gallery.compare(report.png, await gallery.fieldsOf(painting), detail.checksum);
      said.dataset.mean = found.mean ?? "";
      said.textContent = words(found, seconds);
    };
    button.addEventListener("click", paint);
    return h(
      "section",
      { class: "live" },
      button,
      h("span", { class: "quiet" }, ` seed ${run.live.seed}, in a sealed frame of your browser`),
      said,
      result,
    );
  };
})();
