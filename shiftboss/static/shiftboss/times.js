"use strict";

// Times in the reader's own zone, with its name. UTC, which the page says without this file, becomes the title.
(() => {
  const PARTS = {
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 3,
    hourCycle: "h23",
    timeZoneName: "short",
  };
  const format = new Intl.DateTimeFormat("en", PARTS);
  const isUtc = ["UTC", "Etc/UTC"].includes(format.resolvedOptions().timeZone);

  const partsOf = (moment) => Object.fromEntries(format.formatToParts(moment).map(({ type, value }) => [type, value]));

  function spell(moment, form) {
    const { year, month, day, hour, minute, second, fractionalSecond, timeZoneName } = partsOf(moment);
    const date = `${year}-${month}-${day}`;
    const today = partsOf(new Date());
    const isToday = date === `${today.year}-${today.month}-${today.day}`;
    if (form === "clock") return `${hour}:${minute}:${second} ${timeZoneName}`;
    if (form === "since") return `${isToday ? "" : `${date} `}${hour}:${minute} ${timeZoneName}`;
    return `${date} ${hour}:${minute}:${second}.${fractionalSecond} ${timeZoneName}`;
  }

  // One that is told from now ("12 s ago") keeps its words, and has its own exact time in both zones as its title.
  function localise(root) {
    for (const time of root.querySelectorAll("time[datetime]:not([data-utc])")) {
      const moment = new Date(time.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      time.dataset.utc = time.title;
      if (time.dataset.form) time.textContent = spell(moment, time.dataset.form);
      else time.title = `${spell(moment, "exact")}\n${time.title}`;
    }
  }

  if (isUtc) return;
  document.addEventListener("shiftboss:arrived", (event) => localise(event.detail));
  document.addEventListener("DOMContentLoaded", () => localise(document));
})();
