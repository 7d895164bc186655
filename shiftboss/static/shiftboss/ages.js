"use strict";

// Ages go on by themselves, second by second, in the words of the page: nothing is asked for meanwhile. They count
// from the time that stands with them by the server's clock, which may differ from the reader's.
(() => {
  const STEP_MS = 1000;
  const [MINUTE, HOUR, DAY] = [60, 3600, 86400];

  document.addEventListener("DOMContentLoaded", () => {
    const told = document.getElementById("ages");
    if (!told) return;
    const words = JSON.parse(told.value);
    const ahead = Date.parse(told.dataset.now) - Date.now();

    const spell = (unit, n) => words[unit].replace("%(n)s", n).replaceAll(" ", "\u00a0");

    // In its two largest units: 42 s, 3 min 5 s, 2 h 10 min.
    function length(seconds) {
      const two = (large, n, small, rest) => spell(large, n) + (rest ? `\u00a0${spell(small, rest)}` : "");
      if (seconds < MINUTE) return spell("s", seconds);
      if (seconds < HOUR) return two("min", Math.floor(seconds / MINUTE), "s", seconds % MINUTE);
      if (seconds < DAY) return two("h", Math.floor(seconds / HOUR), "min", Math.floor((seconds % HOUR) / MINUTE));
      return two("d", Math.floor(seconds / DAY), "h", Math.floor((seconds % DAY) / HOUR));
    }

    // In its largest unit.
    function distance(seconds) {
      if (seconds < MINUTE) return spell("s", seconds);
      if (seconds < HOUR) return spell("min", Math.floor(seconds / MINUTE));
      if (seconds < 2 * DAY) return spell("h", Math.floor(seconds / HOUR));
      return spell("d", Math.floor(seconds / DAY));
    }

    function said(form, seconds) {
      const whole = Math.floor(Math.abs(seconds));
      if (form === "ago") {
        if (!whole) return words.now;
        return words[seconds > 0 ? "ago" : "in"].replace("%(time)s", distance(whole));
      }
      const lasting = form === "left" ? -seconds : seconds;
      return lasting < 1 ? null : length(whole);
    }

    function step() {
      if (document.hidden || !getSelection().isCollapsed) return;
      const now = Date.now() + ahead;
      const passed = (moment) => (now - Date.parse(moment)) / 1000;
      for (const time of document.querySelectorAll("#live time[data-ages]")) {
        const text = said(time.dataset.ages, passed(time.dateTime));
        // The text node itself is kept, so that whoever looks at it keeps it too.
        if (text && time.firstChild && time.firstChild.data !== text) time.firstChild.data = text;
      }
      for (const meter of document.querySelectorAll("#live meter[data-since]")) meter.value = passed(meter.dataset.since);
    }

    setInterval(step, STEP_MS);
  });
})();
