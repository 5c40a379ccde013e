"use strict";
const flown = JSON.parse(document.getElementById("flown").textContent);
const controls = flown.axes.map((_, place) => document.getElementById(`axis-${place}`));
const measure = document.getElementById("measure");
const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [480, 260, 56, 36, 10, 14];

const put = (parent, name, attributes, text) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return parent.appendChild(made);
};
const position = () => controls.map(one => Number(one.value));
const runAt = at => flown.runs[at.reduce((sum, step, axis) => sum * flown.axes[axis].values.length + step, 0)];
const shown = value => value.toLocaleString("en", {maximumSignificantDigits: 3});

// A step of 1, 2 or 5 times a power of ten that cuts a span into four or five.
const stepOf = span => {
  const power = 10 ** Math.floor(Math.log10(span / 4));
  return [1, 2, 5, 10].map(times => times * power).find(step => span / step <= 5);
};

// Draws points and lines {x, y, colour, here, title} over x from 0 to `last`; `words` name some x.
function plot(id, title, marks, last, words, join) {
  const figure = document.getElementById(id);
  figure.querySelector("h3").textContent = title;
  figure.querySelectorAll("svg, ul").forEach(old => old.remove());
  const svg = put(figure, "svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "chart", role: "img"});
  svg.setAttribute("aria-label", title);
  const top = Math.max(...marks.map(mark => mark.y), 0) || 1;
  const step = stepOf(top), high = Math.ceil(top / step - 1e-9) * step;
  const px = x => LEFT + (WIDTH - LEFT - RIGHT) * (last ? x / last : 0.5);
  const py = y => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * y / high;
  for (let y = 0; y <= high + step / 2; y += step) {
    put(svg, "line", {x1: LEFT, x2: WIDTH - RIGHT, y1: py(y), y2: py(y), class: "axis"});
    put(svg, "text", {x: LEFT - 8, y: py(y) + 4, "text-anchor": "end"}, shown(y));
  }
  for (const [x, word, anchor] of words) {
    put(svg, "text", {x: px(x), y: HEIGHT - 12, "text-anchor": anchor || "middle"}, word);
  }
  if (join) {
    const points = marks.map(mark => `${px(mark.x)},${py(mark.y)}`).join(" ");
    put(svg, "polyline", {points, fill: "none", stroke: "var(--c1)", "stroke-width": 2});
    return figure;
  }
  for (const mark of marks) {
    const circle = put(svg, "circle", {cx: px(mark.x), cy: py(mark.y), r: mark.here ? 6 : 4});
    circle.setAttribute("fill", `var(--c${mark.colour})`);
    if (mark.here) circle.setAttribute("class", "here");
    put(circle, "title", {}, mark.title);
  }
  return figure;
}

// The runs that differ from the picked one in axis `x` alone, one colour a value of axis `of`.
function across(id, x, of) {
  const at = position(), which = Number(measure.value), metric = flown.measures[which];
  const axis = flown.axes[x], lines = of === null ? [null] : flown.axes[of].values.map((_, i) => i);
  const marks = [], colour = line => 1 + (line || 0) % (flown.colours - 1);
  for (const line of lines) {
    axis.values.forEach((word, step) => {
      const there = at.slice();
      there[x] = step;
      if (line !== null) there[of] = line;
      const run = runAt(there);
      if (run.error || run.values[which] === null) return;
      const here = there.every((value, place) => value === at[place]);
      const name = line === null ? "" : `${flown.axes[of].values[line]}, `;
      const title = `${name}${axis.name} ${word}: ${run.texts[which]}`;
      marks.push({x: step, y: run.values[which] / metric.unit, colour: colour(line), here, title});
    });
  }
  const skip = Math.ceil(axis.values.length / 6), end = axis.values.length - 1;
  const words = axis.values.map((word, step) => [step, word]).filter(([step]) => step % skip === 0);
  const figure = plot(id, `${metric.label}${metric.word}, by ${axis.name.toLowerCase()}`, marks, end, words);
  if (of === null) return;
  const legend = figure.appendChild(document.createElement("ul"));
  flown.axes[of].values.forEach((word, line) => {
    const item = legend.appendChild(document.createElement("li"));
    item.textContent = word;
    item.style.setProperty("--dot", `var(--c${colour(line)})`);
  });
}

function show() {
  const run = runAt(position());
  controls.forEach((one, axis) => {
    const output = one.parentElement.querySelector("output");
    if (output) output.textContent = flown.axes[axis].values[one.value];
    if (one.type === "range") one.setAttribute("aria-valuetext", flown.axes[axis].values[one.value]);
  });
  const trouble = document.getElementById("trouble"), list = document.getElementById("picked");
  trouble.hidden = !run.error;
  trouble.textContent = run.error ? `Not flown: ${run.error}` : "";
  list.replaceChildren();
  if (!run.error) flown.measures.forEach((metric, place) => {
    const box = list.appendChild(document.createElement("div"));
    box.appendChild(document.createElement("dt")).textContent = metric.label;
    const value = box.appendChild(document.createElement("dd"));
    value.textContent = run.texts[place];
    value.dataset.measure = metric.name;
    value.dataset.value = JSON.stringify(run.values[place]);
  });
  const many = flown.axes.map((axis, place) => [axis.values.length, place]).sort((a, b) => b[0] - a[0]);
  const first = many[0][1], words = controls.findIndex((one, place) => place !== first && one.tagName === "SELECT" && flown.axes[place].values.length > 1);
  const others = many.map(([, place]) => place).filter(place => place !== first && place !== words && flown.axes[place].values.length > 1);
  across("across", first, words < 0 ? null : words);
  const along = document.getElementById("along");
  along.hidden = !others.length;
  if (others.length) across("along", others[0], words < 0 ? null : words);
  for (const id of ["waits", "queue"]) document.getElementById(id).hidden = Boolean(run.error);
  if (run.error) return;
  const waits = run.waits.map((wait, place) => ({x: place, y: wait / 3600}));
  const last = Math.max(run.waits.length - 1, 1), end = Math.max(run.queue.length, 1);
  plot("waits", "Waits, h: this share of the jobs waits no longer", waits, last, [[0, "0 %"], [last / 2, "50 %"], [last, "100 %", "end"]], true);
  const queue = run.queue.flatMap((jobs, place) => [{x: place, y: jobs}, {x: place + 1, y: jobs}]);
  plot("queue", "Jobs waiting, from the first submission to the last", queue, end, [[0, "first", "start"], [end, "last", "end"]], true);
}

for (const one of [...controls, measure]) one.addEventListener("input", show);
show();
