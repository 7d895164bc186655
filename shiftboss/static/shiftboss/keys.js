"use strict";

// The keyboard: each key stands for a click that can also be made. They are listed by `?`, and can be turned off
// there, because single letters get in the way of those who speak to their computer.
(() => {
  const OFF = "shiftboss.keys";
  const GO_MS = 1500;

  let going = 0; // when `g` was pressed
  let last = null; // the box that was last ticked, where a range begins

  const find = (selector) => document.querySelector(selector);
  const rows = () => [...document.querySelectorAll("#live tbody tr[data-key]")].filter((row) => anchor(row));
  const anchor = (row) => row.querySelector("th a") || row.querySelector("a, button");
  const present = () => document.activeElement.closest("#live tbody tr[data-key]");
  const boxOf = (row) => row && row.querySelector("input[name=job]");
  const boxes = () => [...document.querySelectorAll("#live input[name=job]")];

  const isTyping = (element) =>
    element.isContentEditable || element.matches("textarea, select, input:not([type=checkbox], [type=radio])");

  function areOn() {
    try {
      return localStorage.getItem(OFF) !== "off";
    } catch {
      return true;
    }
  }

  function turn(on) {
    try {
      localStorage.setItem(OFF, on ? "on" : "off");
    } catch {
      // A browser that keeps nothing.
    }
  }

  function say(text) {
    find("#said").textContent = text;
  }

  function step(by) {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(present());
    const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1);
    anchor(all[next]).focus();
    all[next].scrollIntoView({ block: "nearest" });
  }

  function tick(box, checked) {
    if (box.checked === checked) return;
    box.checked = checked;
    box.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function range(to, checked) {
    const all = boxes();
    const [from, until] = [all.indexOf(last), all.indexOf(to)];
    if (from < 0 || until < 0) return tick(to, checked);
    for (const box of all.slice(Math.min(from, until), Math.max(from, until) + 1)) tick(box, checked);
  }

  function select(withRange) {
    const box = boxOf(present());
    if (!box) return;
    const checked = !box.checked;
    if (withRange) range(box, checked);
    else tick(box, checked);
    last = box;
  }

  function count() {
    const selected = boxes().filter((box) => box.checked).length;
    say(find("#said").dataset.selected.replace("{n}", selected));
  }

  function show() {
    const dialog = find("#keys");
    if (dialog.open) dialog.close();
    else dialog.showModal();
  }

  const KEYS = {
    "/": () => (find("#q") || find(".filter input, .filter select"))?.focus(),
    j: () => step(1),
    k: () => step(-1),
    x: () => select(false),
    X: () => select(true),
    ".": () => document.dispatchEvent(new Event("shiftboss:refresh")),
    g: () => (going = Date.now()),
  };

  function escape(event) {
    if (find("dialog[open]")) return;
    const menu = document.activeElement.closest("details[open]") || find(".offers details[open]");
    if (!menu) return;
    event.preventDefault();
    menu.open = false;
    menu.querySelector("summary").focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
    if (event.key === "Escape") return escape(event);
    if (!areOn()) return;
    if (event.key === "?") {
      event.preventDefault();
      return show();
    }
    if (find("dialog[open]")) return;
    const page = Date.now() - going < GO_MS && find(`.top nav a[data-go="${CSS.escape(event.key)}"]`);
    going = 0;
    const act = page ? () => page.click() : KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // A range with the mouse: from the box that was clicked before to the one that is clicked with shift.
  document.addEventListener("click", (event) => {
    if (!event.target.matches("#live input[name=job]")) return;
    if (event.shiftKey) range(event.target, event.target.checked);
    last = event.target;
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("#live input[name=job]")) count();
    if (event.target.id === "keys-on") turn(event.target.checked);
  });

  document.addEventListener("DOMContentLoaded", () => {
    find("#keys-on").checked = areOn();
    find("#show-keys").addEventListener("click", show);
    find("#close-keys").addEventListener("click", () => find("#keys").close());
  });
})();
