"use strict";
const form = document.querySelector("form");
const queries = [...document.querySelectorAll(".query")];
const selects = [...form.querySelectorAll("select")];
const search = form.querySelector("input");
const shown = form.querySelector("output");
const words = new Map();
const text = q => words.get(q) ?? words.set(q, q.textContent.toLowerCase()).get(q);
const fits = (q, select) => !select.value || q.dataset[select.name] === select.value;
function filter() {
  const wanted = search.value.trim().toLowerCase();
  let n = 0;
  for (const q of queries) {
    q.hidden = !(selects.every(select => fits(q, select)) && (!wanted || text(q).includes(wanted)));
    n += !q.hidden;
  }
  shown.value = `showing ${n.toLocaleString("en")} of ${queries.length.toLocaleString("en")}`;
}
function toggle(open) { for (const q of queries) if (!q.hidden) q.open = open; }
function reveal() {
  const q = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (q && queries.includes(q)) { q.open = true; q.scrollIntoView(); }
}
form.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("submit", event => event.preventDefault());
form.querySelector(".open").addEventListener("click", () => toggle(true));
form.querySelector(".close").addEventListener("click", () => toggle(false));
addEventListener("beforeprint", () => toggle(true));
addEventListener("hashchange", reveal);
filter();
reveal();
