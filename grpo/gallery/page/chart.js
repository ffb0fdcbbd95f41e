// One chart, drawn as SVG: lines or stacked bars over the steps, values on hover, a click on a step goes to it.
"use strict";
(() => {
  const gallery = window.gallery;
  const { h, svg, number } = gallery;
  const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [460, 210, 40, 10, 8, 22];

  // The values' range, widened to round numbers; the marks on its way.
  const scale = (values, fromZero) => {
    let [low, high] = [Math.min(...values), Math.max(...values)];
    if (fromZero) low = Math.min(0, low);
    if (high === low) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
    const rough = (high - low) / 4;
    const power = 10 ** Math.floor(Math.log10(rough));
    const size = [1, 2, 5, 10].find((times) => times * power >= rough) * power;
    const marks = [];
    for (let mark = Math.floor(low / size); mark * size < high + size * 0.999; mark++) marks.push(mark * size);
    return { low: marks[0], high: marks.at(-1), marks, digits: Math.max(0, -Math.floor(Math.log10(size) + 1e-9)) };
  };

  const path = (points) => {
    let text = "";
    let open = false;
    for (const point of points) {
      if (point) text += `${open ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
      open = Boolean(point);
    }
    return text;
  };

  // series: [{ name, colour (class), faint, steps, values }]; stacked: values are put on one another as bars.
  // onStep(step, series): a click. all: charts that move their mark together.
  gallery.chart = ({ title, series, stacked = false, fromZero = false, unit = "" }, onStep, all) => {
    const steps = [...new Set(series.flatMap((line) => line.steps))].sort((a, b) => a - b);
    const at = series.map((line) => new Map(line.steps.map((step, index) => [step, line.values[index]])));
    const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
    const sums = steps.map((step) =>
      at.reduce((sum, values) => sum + (isNumber(values.get(step)) ? values.get(step) : 0), 0),
    );
    const values = stacked ? [0, ...sums] : at.flatMap((line) => [...line.values()].filter(isNumber));
    if (values.length === 0 || steps.length === 0) return null;
    const { low, high, marks, digits } = scale(values, fromZero || stacked);
    const [first, last] = [steps[0], steps.at(-1)];
    const inner = WIDTH - LEFT - RIGHT;
    const bar = Math.max(1, (inner / (last - first + 1)) * 0.82);
    const x = (step) =>
      stacked
        ? LEFT + bar / 2 + ((inner - bar) * (step - first)) / Math.max(1, last - first)
        : LEFT + (inner * (step - first)) / Math.max(1, last - first);
    const y = (value) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * (value - low)) / (high - low);
    const drawing = svg("svg", {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": `${title}, steps ${first} to ${last}`,
    });
    for (const mark of marks) {
      drawing.append(
        svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(mark), y2: y(mark) }),
        svg("text", { class: "mark", x: LEFT - 6, y: y(mark) + 3.5, "text-anchor": "end" }, mark.toFixed(digits)),
      );
    }
    for (const step of new Set([first, Math.round((first + last) / 2), last]))
      drawing.append(
        svg(
          "text",
          {
            class: "mark",
            x: x(step),
            y: HEIGHT - 6,
            "text-anchor": step === first ? "start" : step === last ? "end" : "middle",
          },
          String(step),
        ),
      );
    if (stacked) {
      steps.forEach((step) => {
        let base = 0;
        at.forEach((line, index) => {
          const value = isNumber(line.get(step)) ? line.get(step) : 0;
          if (value > 0)
            drawing.append(
              svg("rect", {
                class: `fill ${series[index].colour}`,
                x: x(step) - bar / 2,
                width: bar,
                y: y(base + value),
                height: y(base) - y(base + value),
              }),
            );
          base += value;
        });
      });
    } else {
      series.forEach((line, index) => {
        const points = steps
          .map((step) =>
            isNumber(at[index].get(step)) ? [x(step), y(at[index].get(step))] : at[index].has(step) ? null : undefined,
          )
          .filter((point) => point !== undefined);
        drawing.append(svg("path", { class: `stroke ${line.colour}${line.faint ? " faint" : ""}`, d: path(points) }));
        if (points.length < 3)
          drawing.append(
            ...points.filter(Boolean).map(([cx, cy]) => svg("circle", { class: `fill ${line.colour}`, cx, cy, r: 3 })),
          );
      });
    }
    const cursor = svg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
    drawing.append(cursor);

    const value = series.map(() => h("b", null));
    const legend = h(
      "ul",
      { class: "legend" },
      series.map((line, index) =>
        h(
          "li",
          null,
          h("i", { class: `dot ${line.colour}${line.faint ? " faint" : ""}` }),
          line.name,
          " ",
          value[index],
        ),
      ),
    );
    const mark = (step) => {
      const shown = step !== null && step >= first && step <= last;
      cursor.setAttribute("visibility", shown ? "visible" : "hidden");
      if (shown) [cursor.setAttribute("x1", x(step)), cursor.setAttribute("x2", x(step))];
      value.forEach((element, index) => {
        const found = step === null ? undefined : at[index].get(step);
        element.textContent = isNumber(found)
          ? `${number(found, stacked && Number.isInteger(found) ? 0 : Math.max(3, digits))}${unit}`
          : "";
      });
    };
    const stepAt = (event) => {
      const box = drawing.getBoundingClientRect();
      const place = ((event.clientX - box.left) / box.width) * WIDTH;
      return steps.reduce((near, step) => (Math.abs(x(step) - place) < Math.abs(x(near) - place) ? step : near));
    };
    drawing.addEventListener("pointermove", (event) => all.mark(stepAt(event)));
    drawing.addEventListener("pointerleave", () => all.mark(null));
    drawing.addEventListener("click", (event) => onStep(stepAt(event)));
    const element = h("figure", { class: "chart" }, h("figcaption", null, h("h2", null, title), legend), drawing);
    all.charts.push(mark);
    return element;
  };
})();
