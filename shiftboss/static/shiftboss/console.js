"use strict";

// Keeps a page fresh. `#live` asks for its own address at the pace that the reader has chosen and is morphed into the
// answer: only what differs is touched, so open details, selected text, focus and scroll stay. Without this file
// every page works all the same; it is then as old as its last loading.
(() => {
  const TICK_MS = 250;
  const OLD_MS = 15_000;
  const WAIT_MS = 8_000; // what htmx waits for an answer, see base.html
  const PACE = "shiftboss.pace";

  // Idiomorph knows elements by their ids. Rows carry the keys of the record, which are unique in their own list only.
  function identify(root) {
    const given = new Set([...root.querySelectorAll("[id]")].map((element) => element.id));
    for (const element of root.querySelectorAll("[data-key]:not([id])")) {
      const list = element.parentElement.closest("table, ol, ul, dl");
      const id = encodeURIComponent(`${list ? list.className : ""}/${element.dataset.key}`);
      if (given.has(id)) continue;
      given.add(id);
      element.id = id;
    }
  }

  // Between blocks and rows white space means nothing, but would be matched across them: every row behind a new one
  // would be taken out and put back, and the text that is selected in it would not be any more.
  function tighten(live) {
    const inside = [...live.querySelectorAll("[data-key], tr, section")].map((element) => element.parentNode);
    for (const parent of new Set([live, ...inside]))
      for (const child of [...parent.childNodes])
        if (child.nodeType === Node.TEXT_NODE && !child.nodeValue.trim()) child.remove();
  }

  // What is the reader's business: which details are open, and which jobs are selected.
  const isReaders = (name, element) =>
    (name === "open" && element.nodeName === "DETAILS") || (name === "checked" && element.getAttribute("form") === "selection");

  function morph(live, fragment) {
    const fresh = fragment.querySelector("#live");
    document.dispatchEvent(new CustomEvent("shiftboss:arrived", { detail: fresh }));
    for (const one of [live, fresh]) {
      identify(one);
      tighten(one);
    }
    const focused = live.contains(document.activeElement) ? document.activeElement : null;
    const row = focused && focused.closest("tbody tr");
    const index = row ? [...live.querySelectorAll("tbody tr")].indexOf(row) : -1;
    const [morphed] = Idiomorph.morph(live, fresh, {
      callbacks: { beforeAttributeUpdated: (name, element) => !isReaders(name, element) },
    }).filter((node) => node.id === "live");
    if (focused && document.activeElement !== focused) refocus(focused, morphed, index);
    return [morphed];
  }

  // Where the focused element is gone, the row that has its row's place is focused, or else the page itself.
  function refocus(focused, live, index) {
    if (focused.isConnected) return focused.focus({ preventScroll: true });
    const rows = live.querySelectorAll("tbody tr");
    const row = index < 0 ? undefined : rows[Math.min(index, rows.length - 1)];
    ((row && row.querySelector("th a, a")) || document.getElementById("content")).focus({ preventScroll: true });
  }

  htmx.defineExtension("morph", {
    isInlineSwap: (style) => style === "morph",
    handleSwap(style, target, fragment) {
      if (style !== "morph") return false;
      const morphed = morph(target, fragment);
      const titled = document.querySelector("#live [data-title]");
      if (titled) document.title = titled.dataset.title;
      return morphed;
    },
  });

  const remembered = (name) => {
    try {
      return localStorage.getItem(name);
    } catch {
      return null; // a browser that keeps nothing
    }
  };

  const remember = (name, value) => {
    try {
      localStorage.setItem(name, value);
    } catch {
      // It holds for this page then.
    }
  };

  const clock = (time) =>
    new Intl.DateTimeFormat(document.documentElement.lang, {
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
      hourCycle: "h23",
      timeZoneName: "short",
    }).format(time);

  // Why nothing is asked for now: a refresh would disturb what the reader has in hand.
  function holding(live) {
    if (document.querySelector("#live input[form=selection]:checked")) return "selected";
    if (document.querySelector("dialog[open], .offers details[open]")) return "asking";
    const field = document.activeElement;
    if (live.contains(field) && field.matches("select, textarea, input:not([type=checkbox], [type=radio])"))
      return "typing";
    const selection = getSelection();
    if (!selection.isCollapsed && selection.rangeCount && selection.getRangeAt(0).intersectsNode(live)) return "marked";
    return null;
  }

  function refreshing(live, freshness, choice) {
    const loaded = Date.now();
    let asked = loaded;
    let answered = loaded;
    let failed = false;

    const pace = () => Number(choice.value) * 1000;

    function say(state) {
      const text = freshness.dataset[state].replace("{time}", clock(answered));
      if (freshness.textContent === text) return;
      freshness.className = ["live", "stale"].includes(state) ? state : "";
      freshness.textContent = text;
    }

    function tell() {
      const held = holding(live);
      if (failed || (pace() && !held && Date.now() - answered > Math.max(OLD_MS, pace() + WAIT_MS))) say("stale");
      else if (!pace()) say("off");
      else if (held) say(held);
      else if (answered > loaded) say("live");
    }

    function ask() {
      asked = Date.now();
      htmx.trigger(live, "refresh");
    }

    function tick() {
      if (document.hidden) return;
      if (pace() && Date.now() - asked >= pace() && !holding(live)) ask();
      tell();
    }

    choice.value = remembered(PACE) ?? choice.value;
    if (!choice.value) choice.selectedIndex = 1;
    choice.addEventListener("change", () => {
      remember(PACE, choice.value);
      tick();
    });
    setInterval(tick, TICK_MS);
    document.addEventListener("shiftboss:refresh", ask);
    document.addEventListener("visibilitychange", () => {
      // What was hidden was not asked for: that is no missing answer.
      if (!document.hidden && pace() && !holding(live)) ask();
    });
    document.body.addEventListener("htmx:responseError", (event) => {
      // The page is no longer this person's to see, or is gone: loading it says so.
      if (event.detail.elt === live && [403, 404].includes(event.detail.xhr.status)) window.location.reload();
    });
    document.body.addEventListener("htmx:afterRequest", (event) => {
      if (event.detail.elt && event.detail.elt.id !== "live") return;
      failed = !event.detail.successful;
      if (!failed) answered = Date.now();
      tell();
    });
  }

  // A link with `data-dialog` leads to a page with a form. Here the form is shown above the present page, where no
  // refresh reaches it. Whatever else comes back (a login, a refusal) is shown as the page that it is.
  async function ask(link, dialog) {
    const answer = await fetch(link.href, { headers: { "HX-Request": "true" } }).catch(() => null);
    const text = answer && answer.ok ? await answer.text() : "";
    const form = new DOMParser().parseFromString(text, "text/html").querySelector("form.act");
    if (!form) return window.location.assign(link.href);
    document.dispatchEvent(new CustomEvent("shiftboss:arrived", { detail: form }));
    form.querySelector("h1").id = "asked"; // a page that asks has a question of its own
    dialog.replaceChildren(form);
    if (!dialog.open) dialog.showModal();
  }

  document.addEventListener("click", (event) => {
    const dialog = document.getElementById("dialog");
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const link = event.target.closest("a[data-dialog], dialog a[data-close]");
    if (!dialog || !plain || !link) return;
    event.preventDefault();
    if (link.matches("[data-close]")) dialog.close();
    else ask(link, dialog);
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  });

  document.addEventListener("DOMContentLoaded", () => {
    document.documentElement.classList.add("js");
    const live = document.getElementById("live");
    document.documentElement.classList.toggle("refreshes", live !== null);
    if (live) refreshing(live, document.getElementById("freshness"), document.getElementById("pace"));
    // A status is announced when it changes, not when the page is loaded with it.
    const news = document.querySelector(".news");
    if (news) setTimeout(() => news.append(...news.childNodes), 200);
  });
})();
