"use strict";
// Everything works without this script; with it answers come while a slider moves, and progress without a reload.
const csrf = document.body.dataset.csrf;

// A server that is gone, or was started anew, is not called again: whoever has its port now would be sent what is typed.
let gone = false;
async function call(address, how) {
  if (gone) return null;
  const ask = () => fetch(address, { credentials: "same-origin", redirect: "error", ...how }).catch(() => null);
  let reply = await ask();
  if (!reply && !how) { // a connection that was closed while it waited
    await new Promise((go) => { setTimeout(go, 300); });
    reply = await ask();
  }
  if (reply && reply.status !== 401 && reply.status !== 403) return reply;
  gone = true;
  const told = document.createElement("p");
  told.id = "gone";
  told.className = "note";
  told.setAttribute("role", "alert");
  told.textContent = "The workbench does not answer this page any more. Start it again, and open the address that it prints.";
  document.querySelector("main").prepend(told);
  for (const button of document.querySelectorAll("form button")) button.disabled = true;
  return null;
}

function later(action, pause) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(action, pause); };
}

const form = document.getElementById("promise-form");
const place = document.getElementById("answer");
if (form && place) {
  let asked = 0;
  const ask = async () => {
    const mine = ++asked;
    const part = new URL(form.action).searchParams.get("part") || "0";
    const began = performance.now();
    const reply = await call("/promise/answer?part=" + encodeURIComponent(part), {
      method: "POST", body: new URLSearchParams(new FormData(form)),
    });
    if (mine !== asked || !reply || !reply.ok) return;
    const text = await reply.text();
    place.innerHTML = text;
    const told = document.getElementById("slider-budget"), budget = document.getElementById("budget");
    if (told) told.textContent = budget ? budget.textContent : "refused";
    place.dataset.milliseconds = String(Math.round(performance.now() - began));
    place.dataset.answers = String(Number(place.dataset.answers || "0") + 1);
  };
  const soon = later(ask, 40);
  const sliders = [...form.querySelectorAll("input.stops")];
  const show = (slider, value) => {
    document.getElementById(slider.id + "-value").textContent = value || "none";
    slider.setAttribute("aria-valuetext", value || "none");
  };
  for (const slider of sliders) {
    const values = slider.dataset.values.split(" "), field = form.elements[slider.dataset.field];
    slider.addEventListener("input", () => {
      const value = values[Number(slider.value)];
      show(slider, value);
      if (field) field.value = value;
      soon();
    });
    if (field) field.addEventListener("input", () => {
      const at = values.indexOf(field.value.trim());
      if (at >= 0) slider.value = String(at);
      show(slider, field.value.trim());
    });
  }
  const universe = document.getElementById("universe");
  let counted = 0;
  const count = async () => {
    const mine = ++counted;
    const part = new URL(form.action).searchParams.get("part") || "0";
    const reply = await call("/promise/universe?part=" + encodeURIComponent(part), {
      method: "POST", body: new URLSearchParams(new FormData(form)),
    });
    if (mine !== counted || !reply || !reply.ok) return;
    const text = await reply.text();
    universe.innerHTML = text;
    universe.dataset.answers = String(Number(universe.dataset.answers || "0") + 1);
  };
  const later_count = later(count, 300);
  form.addEventListener("input", (event) => {
    if (sliders.includes(event.target)) return;
    soon();
    if (universe) later_count();
  });
}

for (const box of document.querySelectorAll("[data-load]")) {
  call(box.dataset.load).then(async (reply) => {
    if (reply && reply.ok) box.innerHTML = await reply.text();
  });
}

for (const box of document.querySelectorAll("[data-poll]")) {
  const busy = () => box.querySelector("[data-state=running], [data-state=waiting]") !== null;
  const states = () => [...box.querySelectorAll("[data-state]")].map((one) => one.id + one.dataset.state).join();
  const look = async () => {
    if (!box.contains(document.activeElement)) {
      const before = states();
      const reply = await call(box.dataset.poll);
      if (gone) return;
      if (reply && reply.ok) {
        box.innerHTML = await reply.text();
        if (before !== states() && !busy()) { window.location.reload(); return; }
      }
    }
    if (busy()) setTimeout(look, 700);
  };
  if (busy()) setTimeout(look, 700);
}

const again = document.querySelector("[data-reload]");
if (again) {
  let edited = false; // what a person typed is not thrown away
  document.addEventListener("input", () => { edited = true; });
  setTimeout(async () => {
    if (!edited && await call("/calculators", { method: "HEAD" })) window.location.reload();
  }, Number(again.dataset.reload));
}

for (const drop of document.querySelectorAll("form.drop")) {
  const input = drop.querySelector("input[type=file]");
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    input.files = event.dataTransfer.files;
    drop.requestSubmit();
  });
}

for (const code of document.querySelectorAll("pre.command, pre.python")) {
  if (!navigator.clipboard) break;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy this " + (code.classList.contains("python") ? "Python" : "command"));
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = "Copied";
  });
  code.after(button);
}
