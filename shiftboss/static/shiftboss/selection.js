"use strict";

// Selecting many jobs of a list: all on the page, and with Shift all from one to another. A bulk act that is not at
// its end goes on by itself. Without this file each box is ticked, and each "Go on" pressed, by hand.
(() => {
  const boxes = () => [...document.querySelectorAll("input[name=job][form=selection]")];

  let last = null; // the box where a range begins

  function tick(box, checked) {
    if (box.checked === checked) return;
    box.checked = checked;
    box.dispatchEvent(new Event("change", { bubbles: true }));
  }

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

  document.addEventListener("click", ({ target, shiftKey }) => {
    if (!target.matches("input[name=job][form=selection]")) return;
    const here = boxes();
    const [from, to] = [here.indexOf(last), here.indexOf(target)];
    if (shiftKey && from >= 0)
      for (const box of here.slice(Math.min(from, to), Math.max(from, to) + 1)) tick(box, target.checked);
    last = target;
  });

  document.addEventListener("change", ({ target }) => {
    if (target.matches("[data-all]")) for (const box of boxes()) tick(box, target.checked);
    if (target.matches("[data-all], input[form=selection]")) tell();
  });

  document.addEventListener("DOMContentLoaded", () => {
    tell();
    const form = document.querySelector("form[data-goes-on]");
    if (form) form.requestSubmit();
  });
})();
