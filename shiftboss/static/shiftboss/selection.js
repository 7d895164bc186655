"use strict";

// Choosing all jobs of a page, and how many are chosen; keys.js knows the ranges. A bulk act that is not at its end
// goes on by itself. Without this file each box is ticked, and each "Go on" pressed, by hand.
(() => {
  const boxes = () => [...document.querySelectorAll("input[name=job][form=selection]")];

  function tell() {
    const form = document.getElementById("selection");
    if (!form) return;
    const here = boxes();
    const chosen = here.filter((box) => box.checked).length;
    const all = form.querySelector("[data-all]");
    all.checked = chosen > 0 && chosen === here.length;
    all.indeterminate = chosen > 0 && chosen < here.length;
    const said = form.querySelector("[data-chosen]");
    said.textContent = chosen ? said.dataset.chosen.replace("{n}", chosen) : said.dataset.none;
    form.classList.toggle("some", chosen > 0);
  }

  document.addEventListener("change", ({ target }) => {
    if (target.matches("[data-all]"))
      for (const box of boxes()) {
        if (box.checked === target.checked) continue;
        box.checked = target.checked;
        box.dispatchEvent(new Event("change", { bubbles: true }));
      }
    if (target.matches("[data-all], input[form=selection]")) tell();
  });

  document.addEventListener("DOMContentLoaded", () => {
    tell();
    const form = document.querySelector("form[data-goes-on]");
    if (form) form.requestSubmit();
  });
})();
