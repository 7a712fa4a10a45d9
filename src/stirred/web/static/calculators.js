"use strict";
// Answers while somebody types or slides; without this script the button does the same.
for (const live of document.querySelectorAll("form[data-live]")) {
  const place = document.getElementById(live.dataset.live);
  let asked = 0;
  let timer = 0;
  const ask = async () => {
    const mine = ++asked;
    const words = new URLSearchParams(new FormData(live));
    words.set("part", "answer");
    const reply = await call(live.action.split("?")[0] + "?" + words); // of workbench.js
    if (mine !== asked || !reply || !reply.ok) return;
    place.innerHTML = await reply.text();
    place.dataset.answers = String(Number(place.dataset.answers || "0") + 1);
  };
  live.addEventListener("input", (event) => {
    const slid = event.target.dataset.slides;
    if (slid) live.elements[slid].value = String(Number(event.target.value) / Number(event.target.dataset.scale));
    clearTimeout(timer);
    timer = setTimeout(ask, 60);
  });
}
