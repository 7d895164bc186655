"use strict";

// Keeps a page fresh. `#live` asks for its own address every two seconds and is morphed into the answer:
// only what differs is touched, so open details, selected text, focus and scroll stay. Without this file
// every page works all the same; it is then as old as its last loading.
(() => {
  const EVERY_MS = 2000;

  const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.key : undefined);

  const alike = (old, fresh) => old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh);

  function matchFor(fresh, from) {
    if (keyOf(fresh) === undefined || keyOf(fresh) === "") return from && alike(from, fresh) ? from : null;
    for (let old = from; old; old = old.nextSibling) if (alike(old, fresh)) return old;
    return null;
  }

  function morphChildren(old, fresh) {
    const staying = new Set([...fresh.children].map(keyOf));
    for (const child of [...old.children]) if (keyOf(child) && !staying.has(keyOf(child))) child.remove();
    let at = old.firstChild;
    for (const wanted of [...fresh.childNodes]) {
      const match = matchFor(wanted, at);
      if (!match) old.insertBefore(wanted, at);
      else {
        if (match === at) at = at.nextSibling;
        else old.insertBefore(match, at);
        morph(match, wanted);
      }
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  }

  function morphAttributes(old, fresh) {
    // Whether a details element is open is the reader's business.
    const ours = (name) => !(name === "open" && old.nodeName === "DETAILS");
    for (const { name, value } of [...fresh.attributes])
      if (ours(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    for (const { name } of [...old.attributes])
      if (ours(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }

  function morph(old, fresh) {
    if (old.isEqualNode(fresh)) return;
    if (old.nodeType !== Node.ELEMENT_NODE) old.nodeValue = fresh.nodeValue;
    else {
      morphAttributes(old, fresh);
      morphChildren(old, fresh);
    }
  }

  htmx.defineExtension("morph", {
    isInlineSwap: (style) => style === "morph",
    handleSwap(style, target, fragment) {
      if (style !== "morph") return false;
      morph(target, fragment.querySelector("#live"));
      const titled = target.querySelector("[data-title]");
      if (titled) document.title = titled.dataset.title;
      return [target];
    },
  });

  function refreshing(live, freshness) {
    const refresh = () => {
      if (!document.hidden) htmx.trigger(live, "refresh");
    };
    setInterval(refresh, EVERY_MS);
    document.addEventListener("visibilitychange", refresh);
    live.addEventListener("htmx:responseError", (event) => {
      // The page is no longer this person's to see, or is gone: loading it says so.
      if ([403, 404].includes(event.detail.xhr.status)) window.location.reload();
    });
    live.addEventListener("htmx:afterRequest", (event) => {
      const state = event.detail.successful ? "live" : "stale";
      if (freshness.className !== state) {
        freshness.className = state;
        freshness.textContent = freshness.dataset[state];
      }
    });
  }

  // A link with `data-dialog` leads to a page with a form. Here the form is shown above the present page, where no
  // refresh reaches it. Whatever else comes back (a login, a refusal) is shown as the page that it is.
  async function ask(link, dialog) {
    const answer = await fetch(link.href, { headers: { "HX-Request": "true" } }).catch(() => null);
    const text = answer && answer.ok ? await answer.text() : "";
    const form = new DOMParser().parseFromString(text, "text/html").querySelector("form.act");
    if (!form) return window.location.assign(link.href);
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
    if (live) refreshing(live, document.getElementById("freshness"));
  });
})();
