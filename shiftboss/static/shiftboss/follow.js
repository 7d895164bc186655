"use strict";

// Follows a log: while it is asked to and the page is seen, the host's agent is asked again at a steady pace, and what
// it answers is shown by the page's own refresh. Without this file "Look again" does the same, one look at a time.
(() => {
  const EVERY_MS = 2000;
  const SOON_MS = 700; // about what an agent takes to answer

  document.addEventListener("DOMContentLoaded", () => {
    const form = document.getElementById("again");
    const choice = document.getElementById("follow");
    const said = document.getElementById("followed");
    if (!form || !choice) return;
    let asking = false;

    const refresh = () => document.dispatchEvent(new Event("shiftboss:refresh"));

    // Whoever reads a line that they have marked is not disturbed.
    const isHeld = () => document.hidden || !getSelection().isCollapsed || document.querySelector("dialog[open]");

    function toEnd() {
      const log = document.querySelector("#live .log");
      if (log) log.scrollTop = log.scrollHeight;
    }

    function end(text) {
      choice.checked = false;
      said.textContent = text;
    }

    async function look() {
      if (asking || !choice.checked || isHeld()) return;
      asking = true;
      const answer = await fetch(form.action, {
        method: "POST",
        body: new URLSearchParams(new FormData(form)),
        headers: { "HX-Request": "true" },
      }).catch(() => null);
      asking = false;
      if (answer && answer.status !== 204) return end(form.dataset.over);
      if (answer) setTimeout(refresh, SOON_MS);
    }

    setInterval(look, EVERY_MS);
    choice.addEventListener("change", () => {
      said.textContent = "";
      look();
      toEnd();
    });
    document.body.addEventListener("htmx:afterSettle", () => choice.checked && toEnd());
    toEnd();
    // The first answer comes a moment after it was asked for.
    if (!document.querySelector("#live .log")) setTimeout(refresh, SOON_MS);
  });
})();
