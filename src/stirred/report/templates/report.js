"use strict";
// Tables sort by a click on a heading; numbers as numbers.
for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => {
    const th = button.closest("th"), table = th.closest("table"), body = table.tBodies[0];
    const column = [...th.parentNode.children].indexOf(th);
    const up = th.getAttribute("aria-sort") !== "ascending";
    for (const other of th.parentNode.children) other.setAttribute("aria-sort", "none");
    th.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = (row) => {
      const text = row.children[column].textContent.trim();
      if (!th.classList.contains("number")) return text;
      const plain = text.split(locale.thousands).join("").replace(/[\s%]/g, "").replace(locale.decimal, ".");
      const number = Number(plain.replace("−", "-").replace("∞", "Infinity"));
      return plain === "" || Number.isNaN(number) ? -Infinity : number;
    };
    const rows = [...body.rows].sort((a, b) => {
      const x = value(a), y = value(b);
      const order = typeof x === "number" ? x - y : x.localeCompare(y);
      return up ? order : -order;
    });
    body.append(...rows);
  });
}
// A table that is wider than its place says so.
function sayScrolls() {
  for (const box of document.querySelectorAll(".tablebox > .scroll")) {
    const wide = box.scrollWidth > box.clientWidth + 1;
    box.classList.toggle("wide", wide);
    box.nextElementSibling.hidden = !wide;
  }
}
sayScrolls();
window.addEventListener("resize", sayScrolls);
for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", sayScrolls);
// A link to something that is folded opens it.
function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let fold = target && target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
}
window.addEventListener("hashchange", openTarget);
openTarget();
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const printing = window.matchMedia("print");
function drawCharts(charts) {
  // a chart inside something folded has no width yet: it is drawn when it is opened
  const draw = async (all) => {
    const night = dark.matches && !printing.matches;
    const ink = night ? "#e7e5df" : "#1d2327", line = night ? "#343b41" : "#d9d6cd";
    // Okabe and Ito's colours can be told apart with every common colour vision; at night lighter ones.
    const category = night
      ? ["#6fbdf0", "#f2a35e", "#4fc9a4", "#e9a9cc", "#f0e442", "#b9c4cc", "#9f9ff0", "#c9b08a"]
      : ["#0072B2", "#D55E00", "#009E73", "#A8477F", "#8a6500", "#56B4E9", "#4b4b4b", "#E69F00"];
    const range = {
      category, diverging: night ? ["#6fbdf0", "#262d32", "#f2a35e"] : ["#0072B2", "#f3f1ec", "#D55E00"],
      ramp: night ? ["#222c33", "#9bd3f7"] : ["#eef3f5", "#0a4f7d"],
    };
    const config = {
      background: "transparent", font: "system-ui, sans-serif", range, mark: { color: category[0] },
      axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line },
      legend: { labelColor: ink, titleColor: ink, labelLimit: 260, symbolFillColor: ink, symbolStrokeColor: ink }, title: { color: ink }, header: { labelColor: ink, titleColor: ink },
      view: { stroke: line }, text: { color: ink }, rule: { color: ink }, tick: { color: ink },
      geoshape: { invalid: null }, scale: { invalid: { color: { value: "transparent" } } },
    };
    for (const [name, spec] of Object.entries(charts)) {
      const place = document.getElementById("chart-" + name);
      if (place.closest("details:not([open])") || (!all && place.dataset.drawn)) continue;
      place.dataset.drawn = "begun";
      const narrow = place.clientWidth < 560;
      const shrink = typeof spec.width === "number" ? Math.min(1, (place.clientWidth - 24) / spec.width) : 1;
      const fitted = shrink < 1 ? { ...spec, width: Math.round(spec.width * shrink), height: Math.round(spec.height * shrink) } : { ...spec };
      if (fitted.params) fitted.params = fitted.params.map((one) => (one.name === "night" ? { ...one, value: night } : one));
      if (fitted.layer && fitted.width / spec.width < 0.75) fitted.layer = fitted.layer.filter((layer) => layer.name !== "names");
      const legend = { ...config.legend, ...(narrow ? { orient: "bottom", columns: 1, labelLimit: place.clientWidth - 40, titleLimit: place.clientWidth - 20, gradientLength: Math.min(260, place.clientWidth - 60) } : {}) };
      const axis = { ...config.axis, labelOverlap: "greedy", labelSeparation: 6, labelLimit: 280, ...(narrow ? { labelLimit: 120, titleLimit: place.clientWidth - 20 } : {}) };
      try {
        await vegaEmbed(place, fitted, { actions: false, renderer: "svg", config: { ...config, legend, axis }, formatLocale: locale });
        place.dataset.drawn = "yes";
      } catch (error) {
        place.dataset.drawn = "no";
        console.error("chart " + name + ": " + error.message);
      }
    }
    document.body.dataset.charts = String(document.querySelectorAll('.chart[data-drawn="yes"]').length);
    sayScrolls();
  };
  draw(true);
  dark.addEventListener("change", () => draw(true));
  printing.addEventListener("change", () => draw(true));
  for (const details of document.querySelectorAll("details")) details.addEventListener("toggle", () => draw(false));
}
window.drawCharts = drawCharts;
