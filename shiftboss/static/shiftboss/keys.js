"use strict";

// The keyboard: each key stands for a click that can also be made. They are listed by `?`, and can be turned off
// there, because single letters get in the way of those who speak to their computer.
(() => {
  const OFF = "shiftboss.keys";
  const GO_MS = 1500;

  let going = 0; // when `g` was pressed

  const find = (selector) => document.querySelector(selector);
  const rows = () => [...document.querySelectorAll("#live tbody tr[data-key]")].filter((row) => anchor(row));
  const anchor = (row) => row.querySelector("th a") || row.querySelector("a, button");
  const present = () => document.activeElement.closest("#live tbody tr[data-key]");
  const BOX = "#live input[type=checkbox][form=selection]";

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

  // As with the mouse, so that whatever a click does is done.
  function select(shiftKey) {
    const box = present() && present().querySelector(BOX);
    if (box) box.dispatchEvent(new MouseEvent("click", { shiftKey, bubbles: true, cancelable: true }));
  }

  function count() {
    const selected = document.querySelectorAll(`${BOX}:checked`).length;
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
    // In a form Enter would send it, with whatever button comes first. Here it opens the row, as on its link.
    if (event.key === "Enter" && event.target.matches(BOX)) {
      event.preventDefault();
      return anchor(present()).click();
    }
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

  document.addEventListener("change", (event) => {
    if (event.target.matches(BOX)) count();
    if (event.target.id === "keys-on") turn(event.target.checked);
  });

  document.addEventListener("DOMContentLoaded", () => {
    find("#keys-on").checked = areOn();
    find("#show-keys").addEventListener("click", show);
    find("#close-keys").addEventListener("click", () => find("#keys").close());
  });
})();
