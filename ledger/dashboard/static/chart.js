// Draws a table of numbers over time. The table is what counts; it stays beneath, for who cannot see a chart.
"use strict";

document.addEventListener("DOMContentLoaded", () => {
  const colour = (name) => {
    const probe = document.createElement("span");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const numbers = (row) => [...row.querySelectorAll("td[data-n]")].map((cell) => Number(cell.dataset.n));
  const counted = (value) => (value ?? 0).toLocaleString("en");
  const WIDTHS = { hour: 3600, day: 86400, week: 604800, "four weeks": 2419200, year: 31449600 };

  // Hours as hours, with their day where it begins; days as days.
  const label = (tick, before, width) => {
    const text = new Date(tick * 1000).toISOString();
    const day = text.slice(0, 10);
    if (width >= 86400) return day;
    const same = before !== undefined && new Date(before * 1000).toISOString().slice(0, 10) === day;
    return same ? text.slice(11, 16) : `${text.slice(11, 16)}\n${day}`;
  };

  const read = (table) => {
    const rows = [...table.tBodies[0].rows].reverse();
    const times = rows.map((row) => Date.parse(row.querySelector("time").dateTime) / 1000);
    const all = rows.map(numbers);
    // A few bars across the whole width would look like more than they are. The room is before them: behind them is
    // what has not come yet.
    const width = WIDTHS[table.dataset.width] ?? 86400;
    while (times.length < 12) {
      times.unshift(times[0] - width);
      all.unshift([0, 0, 0, 0]);
    }
    return { times, all };
  };

  const draw = (place) => {
    const table = document.getElementById(place.dataset.chart);
    if (table === null || typeof uPlot === "undefined") return null;
    const { times, all } = read(table);
    const width = times[1] - times[0];
    const applied = all.map(([a]) => a);
    const failed = all.map(([, , f]) => f);
    const unknown = all.map(([, , , u]) => u);
    // One upon the other: the tallest is drawn first, and the next one over it.
    const withFailed = applied.map((value, index) => value + failed[index]);
    const whole = withFailed.map((value, index) => value + unknown[index]);
    const bars = uPlot.paths.bars({ size: [0.7, 40], align: 0 });
    const series = (label, name, values) => ({
      label,
      fill: colour(name),
      stroke: colour(name),
      width: 0,
      points: { show: false },
      paths: bars,
      // Where nothing is pointed at, all of them together.
      value: (plot, shown, number, index) => counted(index === null ? values.reduce((sum, value) => sum + value, 0) : values[index]),
    });
    const moment = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
    const begin = times[all.findIndex((row) => row.some((count) => count > 0))] ?? times[0];
    const axis = { stroke: colour("text-soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false } };
    return new uPlot({
      width: place.clientWidth,
      height: 220,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { range: (plot, from, to) => [from - width / 2, to + width / 2] },
        y: { range: (plot, from, to) => [0, Math.max(1, to * 1.08)] },
      },
      series: [
        { label: "from (UTC)", value: (plot, seconds) => moment(seconds ?? begin) },
        series("unknown", "warn", unknown),
        series("failed", "bad", failed),
        series("applied", "good", applied),
      ],
      axes: [
        { ...axis, grid: { show: false }, values: (plot, ticks) => ticks.map((tick, index) => label(tick, ticks[index - 1], width)) },
        { ...axis, size: 70, values: (plot, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? counted(tick) : "")) },
      ],
    }, [times, whole, withFailed, applied], place);
  };

  for (const place of document.querySelectorAll("[data-chart]")) {
    let plot = draw(place);
    new ResizeObserver(() => plot?.setSize({ width: place.clientWidth, height: 220 })).observe(place);
    const again = () => {
      plot?.destroy();
      plot = draw(place);
    };
    document.addEventListener("theme", again);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  }
});
