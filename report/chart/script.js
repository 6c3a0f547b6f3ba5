// Values under the pointer, tables that sort, and commands that are copied. Pages work without it.
(() => {
  "use strict";
  const box = document.createElement("div");
  box.id = "values";
  box.hidden = true;
  const show = (e, text) => {
    if (!text) { box.hidden = true; return; }
    if (!box.isConnected) document.body.append(box);
    box.textContent = text;
    box.hidden = false;
    box.style.left = "0"; // near the border it would be narrower
    const r = box.getBoundingClientRect();
    const left = e.clientX + 14 + r.width > innerWidth ? e.clientX - r.width - 14 : e.clientX + 14;
    box.style.left = Math.max(4, Math.min(left, innerWidth - r.width - 4)) + "px";
    box.style.top = Math.max(4, Math.min(e.clientY + 14, innerHeight - r.height - 4)) + "px";
  };
  const list = (e, name) => (e.dataset[name] || "").split(" ");
  const bytes = n => {
    let unit = 0;
    for (; n >= 1024 && unit < 4; unit++) n /= 1024;
    return n.toFixed(unit ? 1 : 0) + " " + ["B", "KiB", "MiB", "GiB", "TiB"][unit];
  };
  const time = (s, step) => {
    for (const [least, name] of [[0.01, "s"], [1e-5, "ms"], [0, "us"]])
      if (step >= least) {
        const unit = {s: 1, ms: 1e-3, us: 1e-6}[name];
        return (s / unit).toFixed(step >= unit ? 0 : step >= unit / 10 ? 1 : 2) + " " + name;
      }
  };
  const across = (e, svg) => {
    const r = svg.getBoundingClientRect();
    return Math.min(Math.max((e.clientX - r.left) / r.width, 0), 0.9999);
  };

  // Of lines: the point next to the pointer, of each, and a mark that is close.
  const ofLines = (e, svg) => {
    const at = 100 * across(e, svg), out = [];
    let x = "";
    for (const line of svg.querySelectorAll("polyline")) {
      const points = line.getAttribute("points").split(" ").map(p => parseFloat(p));
      let best = 0;
      points.forEach((p, i) => { if (Math.abs(p - at) < Math.abs(points[best] - at)) best = i; });
      const xs = list(line, "x"), ys = list(line, "y");
      best = Math.min(best, xs.length - 1);
      x = x || xs[best];
      out.push(line.dataset.name + " " + ys[best] + (xs[best] === x ? "" : " (at " + xs[best] + ")"));
    }
    for (const mark of svg.querySelectorAll(".mark"))
      if (Math.abs(parseFloat(mark.getAttribute("x1")) - at) < 1) out.push(mark.textContent);
    return (svg.dataset.unit || "at") + " " + x + "\n" + out.join("\n");
  };

  // Of a time line: the shares of the column.
  const ofStrip = (e, svg) => {
    const columns = svg.viewBox.baseVal.width, at = Math.floor(across(e, svg) * columns);
    let from = 0;
    for (const part of (svg.dataset.v || "").split(";")) {
      const [times, text] = part.includes("*") ? part.split("*") : [1, part];
      from += +times;
      if (at >= from || !text) continue;
      const labels = svg.closest("[data-labels]").dataset.labels.split(","), values = text.split(",");
      const seconds = +svg.dataset.from + at * svg.dataset.step;
      const out = [(svg.previousElementSibling || {}).textContent + ", " + time(seconds, +svg.dataset.step)];
      labels.forEach((label, i) => { if (values[i]) out.push(label + " " + values[i] + "%"); });
      if (values[labels.length]) out.push("mostly waiting for rank " + values[labels.length]);
      return out.join("\n");
    }
    return "";
  };

  const ofHeat = (e, svg) => {
    const n = svg.viewBox.baseVal.width, r = svg.getBoundingClientRect();
    const x = Math.floor(across(e, svg) * n), y = Math.min(n - 1, Math.max(0, Math.floor((e.clientY - r.top) / r.height * n)));
    const v = +list(svg, "v")[y * n + x], unit = svg.closest("[data-unit]").dataset.unit;
    return svg.dataset.down + " " + y + ", " + svg.dataset.across + " " + x + "\n" +
      (unit === "bytes" ? bytes(v) : unit === "rows" ? v.toLocaleString("en") + " rows" : v.toFixed(2) + " s");
  };

  document.addEventListener("pointermove", e => {
    const svg = e.target.closest && e.target.closest("svg");
    if (!svg) return show(e, "");
    if (svg.matches(".curves") && svg.querySelector("[data-x]")) return show(e, ofLines(e, svg));
    if (svg.matches(".strip")) return show(e, ofStrip(e, svg));
    if (svg.closest(".heat-grid")) return show(e, ofHeat(e, svg));
    show(e, "");
  });

  for (const gone of ["resize", "scroll"]) addEventListener(gone, () => { box.hidden = true; });
  document.documentElement.addEventListener("pointerleave", () => { box.hidden = true; });

  // Tables: a click on a head sorts by it, another one the other way. The order of a table with an id outlives updates.
  const orders = {};
  const units = {ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30,
    TiB: 2 ** 40, "%": 1, x: 1, "": 1};
  const key = cell => {
    if (!cell) return "";
    if ("v" in cell.dataset) return parseFloat(cell.dataset.v);
    const text = cell.textContent.trim(), m = /^[\u00b1]?(-?[\d.,]+(?:e[-+]?\d+)?) ?([a-zA-Z%]*)$/.exec(text);
    return m && m[2] in units ? parseFloat(m[1].replaceAll(",", "")) * units[m[2]] : text;
  };
  const compare = (x, y) => {
    const a = typeof x === "number", b = typeof y === "number";
    if (a && b) return (x || 0) - (y || 0);
    return a ? -1 : b ? 1 : x.localeCompare(y); // numbers before words
  };
  const sort = (table, column, down) => {
    const rows = [...table.tBodies[0].rows], sign = down ? -1 : 1;
    rows.sort((a, b) => sign * compare(key(a.cells[column]), key(b.cells[column])));
    table.tBodies[0].append(...rows);
    [...table.tHead.rows[0].cells].forEach((h, i) => {
      if (i === column) h.setAttribute("aria-sort", down ? "descending" : "ascending");
      else h.removeAttribute("aria-sort");
    });
  };
  document.addEventListener("click", e => {
    const head = e.target.closest && e.target.closest(".sortable th");
    if (!head) return;
    const table = head.closest("table"), down = head.getAttribute("aria-sort") === "ascending";
    if (table.id) orders[table.id] = [head.cellIndex, down];
    sort(table, head.cellIndex, down);
  });
  window.sortAgain = within => {
    for (const table of within.querySelectorAll("table.sortable"))
      if (orders[table.id]) sort(table, ...orders[table.id]);
  };

  document.addEventListener("click", e => {
    const button = e.target.closest && e.target.closest(".copy");
    if (!button) return;
    const code = button.parentElement.querySelector("code");
    const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
    if (navigator.clipboard) return navigator.clipboard.writeText(code.textContent).then(done, () => getSelection().selectAllChildren(code));
    getSelection().selectAllChildren(code);
  });
})();
