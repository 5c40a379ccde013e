"use strict";
const log = JSON.parse(document.getElementById("days").textContent);
const filters = log.filters.map(one => [one, document.getElementById(`filter-${one}`)]);
const SVG = "http://www.w3.org/2000/svg";
const [HEIGHT, LEFT, BOTTOM, TOP, RIGHT] = [190, 52, 26, 8, 10];
const DAYS = log.dates.length;

const put = (parent, name, attributes, text) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return parent.appendChild(made);
};
const shown = value => value.toLocaleString("en", value < 1000 ? {maximumSignificantDigits: 3} : {maximumFractionDigits: 0});
const stepOf = span => {
  const power = 10 ** Math.floor(Math.log10(span / 3));
  return [1, 2, 5, 10].map(times => times * power).find(step => span / step <= 4);
};

// The sums of all groups that the filters let through: four numbers a day, and classes of waits.
function chosen() {
  const found = {days: Array.from({length: DAYS}, () => [0, 0, 0, 0]), waits: []};
  for (const group of log.groups) {
    if (filters.some(([at, select]) => select.value !== "-1" && Number(select.value) !== group.who[at])) continue;
    for (const [day, ...numbers] of group.days) numbers.forEach((value, at) => { found.days[day][at] += value; });
    group.waits.forEach(([kind, jobs]) => { found.waits[kind] = (found.waits[kind] || 0) + jobs; });
  }
  return found;
}

// Days that get a date below them: as many as there is room for, from the first of months or Mondays on.
function ticks(width) {
  const most = Math.max(2, Math.floor((width - LEFT - RIGHT) / 84)), all = log.dates.map((_, day) => day);
  const isDated = /^\d{4}-/.test(log.dates[0]);
  const months = isDated ? all.filter(day => day === 0 ? log.dates[0].endsWith("-01") : log.dates[day].slice(0, 7) !== log.dates[day - 1].slice(0, 7)) : [];
  if (months.length >= 3) return months.filter((_, at) => at % Math.ceil(months.length / most) === 0);
  const every = Math.ceil(DAYS / most);
  return all.filter(day => day % every === 0);
}

function plot(id, values, there) {
  const figure = document.getElementById(id), width = Math.max(300, figure.clientWidth);
  figure.querySelectorAll("svg").forEach(old => old.remove());
  const svg = put(figure, "svg", {viewBox: `0 0 ${width} ${HEIGHT}`, role: "img"});
  svg.setAttribute("aria-label", figure.querySelector("h3").textContent);
  const known = values.filter(value => value !== null);
  const top = Math.max(...known, there || 0, 1e-9), step = stepOf(top), high = Math.ceil(top / step - 1e-9) * step;
  const px = day => LEFT + (width - LEFT - RIGHT) * day / DAYS;
  const py = value => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / high;
  for (let y = 0; y <= high + step / 2; y += step) {
    put(svg, "line", {x1: LEFT, x2: width - RIGHT, y1: py(y), y2: py(y), class: "axis"});
    put(svg, "text", {x: LEFT - 8, y: py(y) + 4, "text-anchor": "end"}, shown(y));
  }
  for (const day of ticks(width)) {
    put(svg, "line", {x1: px(day), x2: px(day), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 5, class: "axis"});
    const end = px(day) > width - 70;
    put(svg, "text", {x: end ? width - RIGHT : px(day), y: HEIGHT - 6, "text-anchor": end ? "end" : "start"}, log.dates[day]);
  }
  if (there) put(svg, "line", {x1: LEFT, x2: width - RIGHT, y1: py(there), y2: py(there), class: "there"});
  values.forEach((value, day) => {
    if (value === null) return;
    const bar = put(svg, "rect", {x: px(day), width: Math.max(px(day + 1) - px(day) - (DAYS < 200 ? 1 : 0), 0.5), y: py(value), height: HEIGHT - BOTTOM - py(value), class: "bar"});
    put(bar, "title", {}, `${log.dates[day]}: ${shown(value)}`);
  });
}

function show() {
  const found = chosen(), sum = at => found.days.reduce((all, day) => all + day[at], 0);
  const [jobs, waited, held] = [sum(0), sum(1), sum(2)];
  const hours = log.hours.reduce((all, one) => all + one, 0);
  const isAll = filters.every(([, select]) => select.value === "-1");
  let below = 0, p90 = null;
  for (let kind = 0; kind < log.ends.length && p90 === null && jobs; kind += 1) {
    below += found.waits[kind] || 0;
    if (below >= 0.9 * jobs) p90 = log.ends[kind];
  }
  const facts = [
    ["Jobs started", shown(jobs)],
    ["Mean wait", jobs ? `${shown(waited / jobs)} h` : "–"],
    ["90 % waited at most", p90 === null ? "–" : p90 <= 1 ? "1 s" : p90 < 5400 ? `${shown(p90 / 60)} min` : `${shown(p90 / 3600)} h`],
    ["GPU hours held", shown(held)],
    ["GPUs in use", `${shown(held / hours)} of ${shown(log.gpus)}`],
  ];
  const list = document.getElementById("chosen");
  list.replaceChildren();
  for (const [name, text] of facts) {
    const box = list.appendChild(document.createElement("div"));
    box.appendChild(document.createElement("dt")).textContent = name;
    box.appendChild(document.createElement("dd")).textContent = text;
  }
  plot("wait", found.days.map(day => day[0] ? day[1] / day[0] : null));
  plot("use", found.days.map((day, at) => day[2] / log.hours[at]), isAll ? log.gpus : 0);
  plot("queue", found.days.map((day, at) => day[3] / log.hours[at]));
}

for (const [, select] of filters) select.addEventListener("input", show);
addEventListener("resize", show);
show();
