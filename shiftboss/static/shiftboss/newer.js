"use strict";

// While jobs of the newest page are selected, nothing there is refreshed. How many have come meanwhile is asked for
// with the address at which the page stays as it is, and is said above the list.
(() => {
  const EVERY_MS = 4000;

  function isHeld() {
    const pace = document.getElementById("pace");
    const off = document.hidden || document.querySelector("dialog[open]") || (pace && pace.value === "0");
    return !off && document.querySelector("#live input[form=selection]:checked") !== null;
  }

  async function look() {
    const list = document.querySelector("#live [data-held]");
    if (!list || !isHeld()) return;
    const address = list.dataset.held;
    const answer = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null);
    const text = answer && answer.ok ? await answer.text() : "";
    const fresh = new DOMParser().parseFromString(text, "text/html").querySelector(".fresh");
    if (!fresh || !list.isConnected || list.dataset.held !== address) return;
    const old = document.querySelector("#live .fresh");
    if (old) old.replaceWith(fresh);
    else list.before(fresh);
  }

  setInterval(look, EVERY_MS);
})();
