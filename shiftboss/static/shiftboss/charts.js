"use strict";

// Series over time. A figure names the element that holds its numbers; that element is refreshed with the page, the
// figure is preserved and drawn again where its numbers have changed. The same numbers stand behind it as a table.
(() => {
  const HEIGHT = 170;
  const DASHES = [[], [7, 4], [2, 3]];
  const STYLES = ["solid", "dashed", "dotted"];
  const WHOLE = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
  const drawn = new Map(); // figure: {plot, text}

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function seconds(value) {
    if (value < 1) return `${Math.round(value * 1000)} ms`;
    if (value < 60) return `${Number(value.toFixed(1))} s`;
    if (value < 3600) return `${Number((value / 60).toFixed(1))} min`;
    if (value < 86400) return `${Number((value / 3600).toFixed(1))} h`;
    return `${Number((value / 86400).toFixed(1))} d`;
  }

  const jobs = (value) => new Intl.NumberFormat(document.documentElement.lang).format(value);

  const two = (number) => String(number).padStart(2, "0");

  function when(stamp) {
    const time = new Date(stamp * 1000);
    return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${two(time.getHours())}:${two(time.getMinutes())}`;
  }

  // Days apart are told by their date, hours by their time of day.
  function ticks(_plot, stamps) {
    const long = stamps.length > 1 && stamps.at(-1) - stamps[0] > 2 * 86400;
    return stamps.map((stamp) => (long ? when(stamp).slice(5, 10) : when(stamp).slice(11)));
  }

  // A deploy, a lost worker, a pause: a line through the chart with its name on top.
  function mark(marks) {
    return (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.strokeStyle = colour("--quiet");
      ctx.fillStyle = colour("--quiet");
      ctx.lineWidth = devicePixelRatio;
      ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
      ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
      let free = -Infinity;
      for (const { time, label } of marks) {
        const x = plot.valToPos(time, "x", true);
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        const width = ctx.measureText(label).width;
        const at = Math.min(x + 3 * devicePixelRatio, bbox.left + bbox.width - width);
        if (at < free) continue; // no room beside the one before; the list under the chart names it
        ctx.fillText(label, at, bbox.top + 10 * devicePixelRatio);
        free = at + width + 6 * devicePixelRatio;
      }
      ctx.restore();
    };
  }

  function series(one, index, spell) {
    const stroke = colour(one.wrong ? "--wrong" : "--accent");
    const bars = one.kind === "bars";
    return {
      label: one.label,
      stroke,
      width: bars ? 0 : 1.75,
      fill: bars ? stroke : undefined,
      dash: bars || one.wrong ? undefined : DASHES[index % DASHES.length],
      paths: bars ? uPlot.paths.bars({ size: [0.7, 24] }) : undefined,
      // A value that stands between two gaps is no line.
      points: bars ? { show: false } : { size: 4, fill: stroke },
      spanGaps: false,
      value: (_plot, value) => (value == null ? "–" : spell(value)),
    };
  }

  function draw(figure, text) {
    const told = JSON.parse(text);
    const spell = told.unit === "seconds" ? seconds : jobs;
    const quiet = colour("--quiet");
    const axis = { stroke: quiet, grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const from = told.times[0];
    const until = told.times.at(-1);
    figure.replaceChildren();
    return new uPlot(
      {
        width: Math.max(figure.clientWidth, 200),
        height: HEIGHT,
        scales: {
          x: { range: () => (from === until ? [from - 1, until + 1] : [from, until]) },
          y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.12 : 1] },
        },
        axes: [
          { ...axis, values: ticks, grid: { show: false }, space: 64, size: 28 },
          {
            ...axis,
            values: (_plot, values) => values.map(spell),
            incrs: told.unit === "seconds" ? undefined : WHOLE,
            size: 58,
            space: 32,
          },
        ],
        series: [
          { label: figure.dataset.time || "", value: (_plot, stamp) => (stamp == null ? "–" : when(stamp)) },
          ...told.series.map((one, index) => series(one, index, spell)),
        ],
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
        legend: {
          markers: {
            width: 2,
            dash: (_plot, index) => (told.series[index - 1].kind === "bars" ? "solid" : STYLES[(index - 1) % STYLES.length]),
          },
        },
        hooks: { draw: [mark(told.marks || [])] },
      },
      [told.times, ...told.series.map((one) => one.values)],
      figure,
    );
  }

  function forget(figure) {
    const known = drawn.get(figure);
    if (known) known.plot.destroy();
    drawn.delete(figure);
    widths.unobserve(figure);
  }

  function drawAll() {
    for (const figure of drawn.keys()) if (!figure.isConnected) forget(figure);
    for (const figure of document.querySelectorAll("figure[data-chart]")) {
      const source = document.getElementById(figure.dataset.chart);
      const text = source ? source.getAttribute("value") : "";
      const known = drawn.get(figure);
      if (!text || (known && known.text === text && figure.firstChild)) continue;
      forget(figure);
      if (!JSON.parse(text).times.length) {
        figure.replaceChildren();
        continue;
      }
      drawn.set(figure, { plot: draw(figure, text), text });
      widths.observe(figure);
    }
  }

  const widths = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const known = drawn.get(target);
      const width = Math.floor(contentRect.width);
      if (known && width > 0 && known.plot.width !== width) known.plot.setSize({ width, height: HEIGHT });
    }
  });

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const figure of [...drawn.keys()]) forget(figure);
    drawAll();
  });
  document.addEventListener("htmx:afterSettle", drawAll);
  document.addEventListener("DOMContentLoaded", drawAll);
})();
