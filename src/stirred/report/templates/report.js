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
      const number = Number(text.replace(/[, %]/g, "").replace("−", "-").replace("∞", "Infinity"));
      return Number.isNaN(number) ? -Infinity : number;
    };
    const rows = [...body.rows].sort((a, b) => {
      const x = value(a), y = value(b);
      const order = typeof x === "number" ? x - y : x.localeCompare(y);
      return up ? order : -order;
    });
    body.append(...rows);
  });
}
const dark = window.matchMedia("(prefers-color-scheme: dark)");
function drawCharts(charts) {
  const draw = async (printing) => {
    const night = dark.matches && !printing;
    const ink = night ? "#e7e5df" : "#1d2327", line = night ? "#343b41" : "#d9d6cd";
    const config = {
      background: "transparent", font: "system-ui, sans-serif",
      axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line },
      legend: { labelColor: ink, titleColor: ink }, title: { color: ink }, header: { labelColor: ink, titleColor: ink },
      view: { stroke: line }, text: { color: ink }, rule: { color: ink },
    };
    let drawn = 0;
    for (const [name, spec] of Object.entries(charts)) {
      const place = document.getElementById("chart-" + name);
      try {
        await vegaEmbed(place, spec, { actions: false, renderer: "svg", config });
        place.dataset.drawn = "yes";
        drawn += 1;
      } catch (error) {
        place.dataset.drawn = "no";
        console.error("chart " + name + ": " + error.message);
      }
    }
    document.body.dataset.charts = String(drawn);
  };
  draw(false);
  dark.addEventListener("change", () => draw(false));
}
window.drawCharts = drawCharts;
