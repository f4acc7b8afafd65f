"use strict";
/* Draws the figures of a page. A figure is data and layout in the words of Plotly, of which this knows what pages use:
   scatter, bar, box, heatmap, scatter3d and surface; linear, logarithmic and named axes. Nothing is fetched. */
const Plots = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const DASH = { solid: "", dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "11 4" };
  const SIZE = 11; // of text [pixels]
  const LIGHTER = { "#0072B2": "#56B4E9", "#D55E00": "#FF8A4C", "#009E73": "#3FCFA4", "#56B4E9": "#9AD5F7", "#888888": "#A4ADB7" };
  const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#888888"];
  const VIRIDIS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

  const theme = dark => dark
    ? { fg: "#e6e8eb", grid: "#2b3138", zero: "#6c7580", faint: "#a4adb7", bg: "#15181c" }
    : { fg: "#1b1f24", grid: "#e9ecef", zero: "#aab2bb", faint: "#5b626b", bg: "#ffffff" };
  const hue = (colour, dark) => (dark && LIGHTER[colour]) || colour;
  const isNumber = v => typeof v === "number" && isFinite(v);
  const width = (text, size = SIZE) => 0.6 * size * String(text).length;

  function make(name, attributes, parent, text) {
    const node = document.createElementNS(SVG, name);
    for (const key in attributes) if (attributes[key] !== undefined) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  }
  function html(name, classes, parent, text) {
    const node = document.createElement(name);
    if (classes) node.className = classes;
    if (text !== undefined) node.textContent = text;
    if (parent) parent.appendChild(node);
    return node;
  }

  // ---- numbers -------------------------------------------------------------------------------------------------------
  function niceStep(span, count) {
    const raw = span / Math.max(count, 1), power = 10 ** Math.floor(Math.log10(raw));
    return power * [1, 2, 5, 10].find(m => m * power >= raw * 0.999);
  }
  function shown(v, step) {
    if (v === 0 || Math.abs(v) < step * 1e-6) return "0";
    if (Math.abs(v) >= 1e6 || Math.abs(v) < 1e-4) return v.toExponential(Math.max(0, Math.min(3, Math.round(Math.log10(Math.abs(v) / step))))).replace("e+", "e");
    return v.toFixed(Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9)))).replace("-", "−");
  }
  const brief = v => !isNumber(v) ? String(v) : v === 0 ? "0" : (Math.abs(v) >= 1e6 || Math.abs(v) < 1e-4) ? v.toExponential(3) : String(+v.toPrecision(5)).replace("-", "−");
  const decade = k => k >= -4 && k <= 5 ? String(+(10 ** k).toPrecision(2)) : `1e${k}`;

  // ---- axes ----------------------------------------------------------------------------------------------------------
  const keyOf = name => name.replace(/^([xy])/, "$1axis"); // "y2" -> "yaxis2"

  /* One axis: what it spans and where its ticks are; `at(value)` is the place from 0 to 1. */
  function makeAxis(settings, traces, letter) {
    const axis = { settings, letter, names: null, log: settings.type === "log" };
    const all = [];
    let zero = false, wide = 0;
    for (const t of traces) {
      const values = t.type === "heatmap" ? t[letter] : t.type === "box" && letter === "x" ? [t.name] : t[letter];
      for (const v of values || []) if (v !== null && v !== undefined) all.push(v);
      if (letter === "y" && t.type === "bar") zero = true;
      if (letter === "x" && t.type === "bar" && t.width) wide = Math.max(wide, t.width / 2);
      const spread = t[`error_${letter}`];
      if (spread && t[letter]) t[letter].forEach((v, i) => { const e = spread.array[i]; if (isNumber(v) && isNumber(e)) all.push(v - e, v + e); });
    }
    if (all.some(v => typeof v === "string")) {
      axis.names = [...new Set(all.map(String))];
      axis.low = -0.5; axis.high = axis.names.length - 0.5;
    } else {
      let numbers = all.filter(v => isNumber(v) && (!axis.log || v > 0)).map(v => axis.log ? Math.log10(v) : v);
      if (!numbers.length) numbers = axis.log ? [0, 1] : [0, 1];
      axis.low = numbers.reduce((a, b) => Math.min(a, b)); axis.high = numbers.reduce((a, b) => Math.max(a, b));
      axis.low -= wide; axis.high += wide;
      if (zero && !axis.log) { axis.low = Math.min(axis.low, 0); axis.high = Math.max(axis.high, 0); if (axis.high === axis.low) axis.high = 1; }
      if (axis.high - axis.low < 1e-12 * Math.max(1, Math.abs(axis.low))) { const half = axis.log ? 0.5 : Math.abs(axis.low) * 0.1 || 0.5; axis.low -= half; axis.high += half; }
      const lines = letter === "x" && traces.every(t => t.type === "scatter" && !(t.mode || "lines").includes("markers"));
      const pad = lines ? 0 : 0.05 * (axis.high - axis.low);
      if (!(zero && axis.low === 0 && !axis.log)) axis.low -= pad;
      if (!(zero && axis.high === 0 && !axis.log)) axis.high += pad;
      if (settings.range && settings.range.every(isNumber)) [axis.low, axis.high] = settings.range;
    }
    axis.full = [axis.low, axis.high];
    axis.value = v => axis.names ? (typeof v === "string" ? axis.names.indexOf(v) : v) : axis.log ? (v > 0 ? Math.log10(v) : NaN) : v;
    axis.at = v => { const p = (axis.value(v) - axis.low) / (axis.high - axis.low); return settings.autorange === "reversed" ? 1 - p : p; };
    axis.back = p => { const q = settings.autorange === "reversed" ? 1 - p : p; const v = axis.low + q * (axis.high - axis.low); return axis.log ? 10 ** v : v; };
    return axis;
  }

  function ticks(axis, pixels) {
    const s = axis.settings;
    if (s.showticklabels === false) return [];
    if (s.tickvals) return s.tickvals.map((v, i) => [v, (s.ticktext || s.tickvals)[i]]);
    if (axis.names) return axis.names.map(name => [name, name]);
    const room = axis.letter === "x" ? 70 : 34;
    const count = Math.max(2, Math.min(s.nticks || 99, Math.floor(pixels / room)));
    if (axis.log) {
      const a = Math.ceil(axis.low - 1e-9), b = Math.floor(axis.high + 1e-9), every = Math.max(1, Math.ceil((b - a + 1) / count)), out = [];
      for (let k = a; k <= b; k += every) out.push([10 ** k, decade(k)]);
      if (b - a < 2) for (let k = a - 1; k <= b; k++) for (const m of [2, 5]) { const v = m * 10 ** k, l = Math.log10(v); if (l >= axis.low && l <= axis.high) out.push([v, brief(v)]); }
      return out.sort((p, q) => p[0] - q[0]);
    }
    let out = [];
    for (let wanted = count; out.length < 2 && wanted <= 4 * count; wanted *= 2) { // one tick alone tells no size
      const step = niceStep(axis.high - axis.low, wanted);
      out = [];
      for (let k = Math.ceil(axis.low / step - 1e-9); k * step <= axis.high + 1e-9 * step; k++) out.push([k * step, shown(k * step, step)]);
    }
    return out;
  }

  // ---- two dimensions ------------------------------------------------------------------------------------------------
  function flat(node, figure, H, dark) {
    const look = theme(dark), W = Math.max(node.clientWidth, 160), data = node.hidden ? figure.data.filter(t => !node.hidden.has(t.legendgroup || t.name)) : figure.data;
    const used = data.length ? data : figure.data, layout = figure.layout;
    const svg = make("svg", { class: "drawn", width: W, height: H, viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": (layout.title && layout.title.text) || node.dataset.name }, node);
    const pairs = new Map();
    for (const t of used) { const x = t.xaxis || "x", y = t.yaxis || "y"; if (!pairs.has(x + y)) pairs.set(x + y, { x, y, traces: [] }); pairs.get(x + y).traces.push(t); }
    const axes = {};
    for (const { x, y } of pairs.values()) for (const name of [x, y]) if (!axes[name]) {
      const letter = name[0], own = used.filter(t => (t[letter + "axis"] || letter) === name);
      axes[name] = makeAxis(layout[keyOf(name)] || {}, own, letter);
      axes[name].domain = axes[name].settings.domain || [0, 1];
      if (node.zoomed && node.zoomed[name]) [axes[name].low, axes[name].high] = node.zoomed[name];
    }
    const m = margins(axes, W, H, data);
    const inner = { w: W - m.left - m.right, h: H - m.top - m.bottom };
    const panels = [...pairs.values()].map(p => {
      const X = axes[p.x], Y = axes[p.y];
      const left = m.left + X.domain[0] * inner.w, w = (X.domain[1] - X.domain[0]) * inner.w;
      const h = (Y.domain[1] - Y.domain[0]) * inner.h, top = m.top + (1 - Y.domain[1]) * inner.h;
      return { ...p, X, Y, left, top, w, h, px: v => left + X.at(v) * w, py: v => top + (1 - Y.at(v)) * h };
    });
    panels.forEach((p, i) => {
      p.clip = `clip-${node.dataset.name}-${i}`.replace(/[^\w-]/g, "_");
      const clip = make("clipPath", { id: p.clip }, make("defs", {}, svg));
      make("rect", { x: p.left, y: p.top, width: p.w, height: p.h }, clip);
    });
    panels.forEach(p => frame(svg, p, panels, look, m));
    panels.forEach(p => content(svg, p, layout, look, dark));
    for (const s of layout.shapes || []) shape(svg, panels[0], s, dark);
    for (const a of layout.annotations || []) make("text", { x: m.left + a.x * inner.w, y: m.top + (1 - a.y) * inner.h - 3, fill: look.fg, "font-size": (a.font && a.font.size) || SIZE }, svg, a.text);
    if (data.some(t => t.type === "heatmap")) scaleBar(svg, W - 34, m.top, inner.h, data.find(t => t.type === "heatmap"), look);
    pointer(node, svg, panels, figure, dark);
    return panels;
  }

  function margins(axes, W, H, data) {
    const m = { left: 8, right: 10, top: 8, bottom: 6 };
    for (const name in axes) {
      const axis = axes[name], s = axis.settings, size = (s.tickfont && s.tickfont.size) || SIZE;
      const title = s.title && s.title.text;
      if (axis.letter === "y" && axis.domain && (s.automargin !== false)) {
        const widest = Math.max(0, ...ticks(axis, H).map(t => width(t[1], size)));
        m.left = Math.max(m.left, Math.min(widest, W * 0.35) + 10 + (title ? 18 : 0));
      }
    }
    if (data.some(t => t.type === "heatmap")) m.right = 60;
    for (const name in axes) {
      const axis = axes[name], s = axis.settings, size = (s.tickfont && s.tickfont.size) || SIZE;
      if (axis.letter !== "x") continue;
      const labels = ticks(axis, W - m.left - m.right), widest = Math.max(0, ...labels.map(t => width(t[1], size)));
      const room = (W - m.left - m.right) * (axis.domain[1] - axis.domain[0]) / Math.max(labels.length, 1);
      axis.turned = s.tickangle !== undefined ? Math.abs(s.tickangle) === 90 : (axis.names || s.tickvals) && widest + 6 > room;
      const title = s.title && s.title.text, below = (labels.length ? (axis.turned ? Math.min(widest, 0.45 * H) + 8 : size + 8) : 2) + (title ? 18 : 0);
      if (s.automargin === false) m.bottom = Math.max(m.bottom, 4); else m.bottom = Math.max(m.bottom, below);
    }
    return m;
  }

  function frame(svg, p, panels, look, m) {
    const xs = p.X.settings, ys = p.Y.settings, g = make("g", {}, svg);
    const xsize = (xs.tickfont && xs.tickfont.size) || SIZE, ysize = (ys.tickfont && ys.tickfont.size) || SIZE;
    const bottom = p.top + p.h, named = p.X.names && p.X.names.length > 1;
    for (const [v, text] of ticks(p.Y, p.h)) {
      const y = p.py(v); if (y < p.top - 0.5 || y > bottom + 0.5) continue;
      make("line", { x1: p.left, x2: p.left + p.w, y1: y, y2: y, stroke: v === 0 ? look.zero : look.grid }, g);
      make("text", { x: p.left - 5, y: y + ysize * 0.35, "text-anchor": "end", fill: look.faint, "font-size": ysize }, g, clipped(text, m.left - (ys.title && ys.title.text ? 26 : 8), ysize));
    }
    // The labels of an axis that several panels share stand below the lowest of them.
    const lowest = panels.filter(o => o.x === p.x).every(o => o.top + o.h <= bottom + 0.5);
    const labels = ticks(p.X, p.w), room = p.w / Math.max(labels.length, 1);
    const skip = p.X.turned && labels.length > 3 ? Math.ceil((xsize + 1) / Math.max(room, 1)) : 1;
    labels.forEach(([v, text], i) => {
      const x = p.px(v); if (x < p.left - 0.5 || x > p.left + p.w + 0.5) return;
      if (!named) make("line", { x1: x, x2: x, y1: p.top, y2: bottom, stroke: v === 0 ? look.zero : look.grid }, g);
      if (!lowest || i % skip) return;
      if (p.X.turned) make("text", { transform: `translate(${x + xsize * 0.35},${bottom + 5}) rotate(-90)`, "text-anchor": "end", fill: look.faint, "font-size": xsize }, g, clipped(text, svg.viewBox.baseVal.height * 0.45, xsize));
      else make("text", { x: Math.min(x, p.left + p.w + 8 - width(text, xsize) / 2), y: bottom + xsize + 3, "text-anchor": "middle", fill: look.faint, "font-size": xsize }, g, text);
    });
    make("rect", { x: p.left, y: p.top, width: p.w, height: p.h, fill: "none", stroke: look.grid }, g);
    const xt = xs.title && xs.title.text, yt = ys.title && ys.title.text;
    if (xt && lowest) make("text", { x: p.left + p.w / 2, y: xs.automargin === false ? bottom + 2 * xsize + 6 : svg.viewBox.baseVal.height - 5, "text-anchor": "middle", fill: look.fg, "font-size": (xs.title.font && xs.title.font.size) || SIZE }, g, xt);
    if (yt) make("text", { transform: `translate(${Math.min(12, p.left - 10)},${p.top + p.h / 2}) rotate(-90)`, "text-anchor": "middle", fill: look.fg, "font-size": SIZE }, g, clipped(yt, Math.max(p.h, 60) * 1.15, SIZE));
  }
  const clipped = (text, pixels, size) => width(text, size) <= pixels ? text : String(text).slice(0, Math.max(1, Math.floor(pixels / (0.6 * size)) - 1)) + "…";

  function content(svg, p, layout, look, dark) {
    const g = make("g", { "clip-path": `url(#${p.clip})` }, svg);
    const bars = p.traces.filter(t => t.type === "bar"), boxes = p.traces.filter(t => t.type === "box");
    p.traces.forEach((t, i) => {
      const colour = hue(colourOf(t, i), dark);
      if (t.type === "bar") bar(g, p, t, bars.indexOf(t), layout.barmode === "overlay" ? 1 : bars.length, layout, colour, dark);
      else if (t.type === "box") box(g, p, t, colour, look);
      else if (t.type === "heatmap") heat(g, p, t);
      else if (t.type === "scatter") scatter(g, p, t, colour);
      else throw new Error(`figure: unknown kind of trace ${t.type}`);
      if (t.error_y) errors(g, p, t, colour, t.type === "bar" && layout.barmode !== "overlay" ? [bars.indexOf(t), bars.length, layout] : null);
    });
  }
  const colourOf = (t, i) => (t.line && typeof t.line.color === "string" && t.line.color) || (t.marker && typeof t.marker.color === "string" && t.marker.color) || (Array.isArray(t.marker && t.marker.color) ? t.marker.color[0] : COLOURS[i % COLOURS.length]);

  function scatter(g, p, t, colour) {
    const mode = t.mode || "lines", n = (t.x || t.y).length, points = [];
    for (let i = 0; i < n; i++) points.push(t.y[i] === null || t.x[i] === null ? null : [p.px(t.x[i]), p.py(t.y[i])]);
    const good = q => q && isFinite(q[0]) && isFinite(q[1]);
    if (mode.includes("lines")) {
      let d = "", pen = "M";
      for (const q of points) { if (!good(q)) { pen = "M"; continue; } d += `${pen}${q[0].toFixed(1)} ${q[1].toFixed(1)}`; pen = "L"; }
      const filled = t.fill === "toself";
      make("path", { d: filled ? d + "Z" : d, fill: filled ? t.fillcolor : "none", stroke: filled ? "none" : colour, "stroke-width": (t.line && t.line.width) || 1.5, "stroke-dasharray": DASH[(t.line && t.line.dash) || "solid"], "stroke-linejoin": "round" }, g);
    }
    if (mode.includes("markers")) {
      const size = (t.marker && t.marker.size) || 6, symbol = (t.marker && t.marker.symbol) || "circle";
      let d = "";
      for (const q of points) if (good(q)) d += mark(symbol, q[0], q[1], size / 2);
      make("path", { d, fill: symbol.includes("open") || symbol === "x" || symbol === "cross" ? "none" : colour, stroke: symbol.includes("open") || symbol === "x" || symbol === "cross" ? colour : "none", "stroke-width": 1.4, opacity: (t.marker && t.marker.opacity) || 1 }, g);
    }
  }
  function mark(symbol, x, y, r) {
    const f = v => v.toFixed(1), kind = symbol.replace("-open", "");
    if (kind === "square") return `M${f(x - r)} ${f(y - r)}h${f(2 * r)}v${f(2 * r)}h${f(-2 * r)}Z`;
    if (kind === "diamond") return `M${f(x)} ${f(y - 1.3 * r)}l${f(1.3 * r)} ${f(1.3 * r)}l${f(-1.3 * r)} ${f(1.3 * r)}l${f(-1.3 * r)} ${f(-1.3 * r)}Z`;
    if (kind.startsWith("triangle")) { const u = kind.endsWith("down") ? -1 : 1; return `M${f(x)} ${f(y - 1.2 * r * u)}l${f(1.2 * r)} ${f(2.1 * r * u)}h${f(-2.4 * r)}Z`; }
    if (kind === "x") return `M${f(x - r)} ${f(y - r)}l${f(2 * r)} ${f(2 * r)}m0 ${f(-2 * r)}l${f(-2 * r)} ${f(2 * r)}`;
    if (kind === "cross") return `M${f(x - r)} ${f(y)}h${f(2 * r)}m${f(-r)} ${f(-r)}v${f(2 * r)}`;
    if (kind.startsWith("line")) return `M${f(x - r)} ${f(y - 0.8)}h${f(2 * r)}v1.6h${f(-2 * r)}Z`;
    return `M${f(x - r)} ${f(y)}a${f(r)} ${f(r)} 0 1 0 ${f(2 * r)} 0a${f(r)} ${f(r)} 0 1 0 ${f(-2 * r)} 0Z`;
  }

  /* Left edge and width of a bar at `x`. */
  function slot(p, t, x, k, count, layout) {
    const gap = layout.bargap === undefined ? 0.2 : layout.bargap;
    const spacing = p.X.names ? 1 : t.width || smallest(t.x);
    const whole = spacing * p.w / (p.X.high - p.X.low), w = whole * (t.width ? 1 : 1 - gap) / count;
    return [p.px(x) - w * count / 2 + k * w, w];
  }
  function smallest(x) { let s = Infinity; for (let i = 1; i < x.length; i++) s = Math.min(s, Math.abs(x[i] - x[i - 1]) || Infinity); return isFinite(s) ? s : 1; }
  function bar(g, p, t, k, count, layout, colour, dark) {
    const place = layout.barmode === "overlay" ? 0 : k;
    t.x.forEach((x, i) => {
      const v = t.y[i]; if (!isNumber(v)) return;
      const [left, w] = slot(p, t, x, place, count, layout);
      const zero = p.Y.log ? p.top + p.h : p.py(0), y = p.Y.log && v <= 0 ? zero : p.py(v);
      const own = Array.isArray(t.marker && t.marker.color) ? hue(t.marker.color[i], dark) : colour;
      make("rect", { class: "bar", x: left.toFixed(1), y: Math.min(y, zero).toFixed(1), width: Math.max(w - 0.6, 0.6).toFixed(1), height: Math.max(Math.abs(zero - y), 0.5).toFixed(1), fill: own, opacity: t.opacity }, g);
    });
  }
  function errors(g, p, t, colour, barred) {
    let d = "";
    t.y.forEach((v, i) => {
      const e = t.error_y.array[i]; if (!isNumber(v) || !isNumber(e) || t.x[i] === null) return;
      let x = p.px(t.x[i]);
      if (barred) { const [left, w] = slot(p, t, t.x[i], ...barred); x = left + w / 2; }
      const a = p.py(v + e), b = p.Y.log && v - e <= 0 ? p.top + p.h : p.py(v - e);
      if (isFinite(x) && isFinite(a) && isFinite(b)) d += `M${x.toFixed(1)} ${a.toFixed(1)}V${b.toFixed(1)}` + (t.error_y.width === 0 ? "" : `M${(x - 3).toFixed(1)} ${a.toFixed(1)}h6M${(x - 3).toFixed(1)} ${b.toFixed(1)}h6`);
    });
    make("path", { d, stroke: colour, fill: "none", "stroke-width": t.error_y.thickness || 1.2 }, g);
  }
  function box(g, p, t, colour, look) {
    const v = t.y.filter(isNumber).sort((a, b) => a - b); if (!v.length) return;
    const q = f => { const at = f * (v.length - 1), k = Math.floor(at); return v[k] + (at - k) * ((v[k + 1] === undefined ? v[k] : v[k + 1]) - v[k]); };
    const [q1, q2, q3] = [q(0.25), q(0.5), q(0.75)], reach = 1.5 * (q3 - q1);
    const low = v.find(y => y >= q1 - reach), high = [...v].reverse().find(y => y <= q3 + reach);
    const x = p.px(t.name), w = 0.5 * p.w / p.X.names.length, Y = y => p.py(y).toFixed(1);
    make("path", { d: `M${x} ${Y(low)}V${Y(q1)}M${x} ${Y(q3)}V${Y(high)}M${x - w / 4} ${Y(low)}h${w / 2}M${x - w / 4} ${Y(high)}h${w / 2}`, stroke: colour, fill: "none" }, g);
    make("rect", { x: x - w / 2, y: Y(q3), width: w, height: Math.max(p.py(q1) - p.py(q3), 1), fill: colour, "fill-opacity": 0.35, stroke: colour }, g);
    make("line", { x1: x - w / 2, x2: x + w / 2, y1: Y(q2), y2: Y(q2), stroke: look.fg, "stroke-width": 2 }, g);
  }
  const rgb = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
  function scaled(scale, f) {
    const stops = typeof scale === "string" || !scale ? VIRIDIS.map((c, i) => [i / (VIRIDIS.length - 1), c]) : scale.map(([at, c]) => [at, rgb(c)]);
    const k = Math.max(1, stops.findIndex(s => s[0] >= f)), [a, ca] = stops[k - 1], [b, cb] = stops[k];
    const u = Math.max(0, Math.min(1, (f - a) / (b - a)));
    return `rgb(${ca.map((c, i) => Math.round(c + u * (cb[i] - c))).join(",")})`;
  }
  function heat(g, p, t) {
    const w = p.w / p.X.names.length, h = p.h / p.Y.names.length;
    t.z.forEach((row, i) => row.forEach((v, j) => {
      if (isNumber(v)) make("rect", { x: (p.px(t.x[j]) - w / 2).toFixed(1), y: (p.py(t.y[i]) - h / 2).toFixed(1), width: (w + 0.4).toFixed(1), height: (h + 0.4).toFixed(1), fill: scaled(t.colorscale, (v - t.zmin) / (t.zmax - t.zmin)) }, g);
    }));
  }
  function scaleBar(svg, x, top, h, t, look) {
    for (let i = 0; i < 40; i++) make("rect", { x, y: top + h * i / 40, width: 10, height: h / 40 + 0.5, fill: scaled(t.colorscale, 1 - i / 39) }, svg);
    for (const [f, v] of [[0, t.zmax], [0.5, (t.zmin + t.zmax) / 2], [1, t.zmin]]) make("text", { x: x + 13, y: top + h * f + (f ? f === 1 ? 0 : 4 : 9), fill: look.faint, "font-size": 10 }, svg, brief(v));
  }
  function shape(svg, p, s, dark) {
    const whole = s.xref === "paper", tall = s.yref === "paper";
    make("line", { x1: whole ? p.left + s.x0 * p.w : p.px(s.x0), x2: whole ? p.left + s.x1 * p.w : p.px(s.x1), y1: tall ? p.top : p.py(s.y0), y2: tall ? p.top + p.h : p.py(s.y1), stroke: hue(s.line.color, dark), "stroke-width": s.line.width || 1, "stroke-dasharray": DASH[s.line.dash || "solid"] }, svg);
  }

  // ---- looking closer --------------------------------------------------------------------------------------------------
  function pointer(node, svg, panels, figure, dark) {
    let from = null, veil = null;
    const tip = node.tip || (node.tip = html("div", "tip", node));
    tip.hidden = true;
    const spot = e => { const r = svg.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
    const panelAt = ([x, y]) => panels.find(p => x >= p.left && x <= p.left + p.w && y >= p.top && y <= p.top + p.h);
    svg.addEventListener("pointermove", e => {
      const at = spot(e), p = panelAt(at);
      if (from) {
        const [a, b] = [from.at, at]; if (!veil) veil = make("rect", { fill: "#888", opacity: 0.25 }, svg);
        veil.setAttribute("x", Math.min(a[0], b[0])); veil.setAttribute("y", from.p.top); veil.setAttribute("width", Math.abs(a[0] - b[0])); veil.setAttribute("height", from.p.h);
        tip.hidden = true; return;
      }
      if (!p) { tip.hidden = true; return; }
      const said = nearest(p, at);
      tip.hidden = !said.length; if (tip.hidden) return;
      tip.replaceChildren(...said.map(text => html("div", "", null, text)));
      const box = node.getBoundingClientRect(), left = e.clientX - box.left, over = left > box.width / 2;
      tip.style.left = over ? "" : `${left + 14}px`; tip.style.right = over ? `${box.width - left + 14}px` : "";
      tip.style.top = `${Math.max(0, e.clientY - box.top - 10)}px`;
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
    svg.addEventListener("pointerdown", e => { if (e.pointerType === "touch") return; const p = panelAt(spot(e)); if (p) { from = { at: spot(e), p }; svg.setPointerCapture(e.pointerId); e.preventDefault(); } });
    svg.addEventListener("pointerup", e => {
      if (!from) return;
      const to = spot(e), { p } = from, a = (Math.min(from.at[0], to[0]) - p.left) / p.w, b = (Math.max(from.at[0], to[0]) - p.left) / p.w;
      from = null; if (veil) { veil.remove(); veil = null; }
      if ((b - a) * p.w < 8 || p.X.names) return;
      const span = p.X.high - p.X.low;
      node.zoomed = { ...node.zoomed, [p.x]: [p.X.low + Math.max(0, a) * span, p.X.low + Math.min(1, b) * span] };
      draw(node, figure, dark);
    });
    svg.addEventListener("dblclick", () => { node.zoomed = null; draw(node, figure, dark); });
  }
  function nearest(p, [x, y]) {
    const heat = p.traces.find(t => t.type === "heatmap");
    if (heat) {
      const j = Math.round(p.X.low + (x - p.left) / p.w * (p.X.high - p.X.low)), v = (p.top + p.h - y) / p.h;
      const i = Math.round(p.Y.low + (p.Y.settings.autorange === "reversed" ? 1 - v : v) * (p.Y.high - p.Y.low));
      return heat.z[i] && heat.z[i][j] !== undefined ? [`${heat.y[i]}`, `${heat.x[j]}`, brief(heat.z[i][j])] : [];
    }
    const out = [];
    let lead = null;
    for (const t of p.traces) {
      if (!t.x || !t.y || t.hoverinfo === "skip") continue;
      let best = -1, least = 40;
      t.x.forEach((v, i) => { if (v === null || t.y[i] === null) return; const dx = Math.abs(p.px(v) - x), dy = (t.mode || "").includes("markers") ? Math.abs(p.py(t.y[i]) - y) : 0; if (dx + dy < least) { least = dx + dy; best = i; } });
      if (best < 0) continue;
      if (lead === null) lead = t.x[best];
      out.push(`${t.name ? t.name + ": " : ""}${brief(t.y[best])}`);
    }
    return out.length ? [brief(lead), ...out.slice(0, 12)] : [];
  }

  // ---- three dimensions --------------------------------------------------------------------------------------------------
  function solid(node, figure, H, dark) {
    const look = theme(dark), W = Math.max(node.clientWidth, 160), sharp = window.devicePixelRatio || 1;
    const canvas = html("canvas", "drawn", node);
    canvas.width = W * sharp; canvas.height = H * sharp; canvas.style.width = `${W}px`; canvas.style.height = `${H}px`;
    const data = node.hidden ? figure.data.filter(t => !node.hidden.has(t.legendgroup || t.name)) : figure.data;
    const eye = (figure.layout.scene.camera && figure.layout.scene.camera.eye) || { x: 1.5, y: 1.5, z: 0.8 };
    const view = node.view || (node.view = { turn: Math.atan2(eye.y, eye.x), lift: Math.atan2(eye.z, Math.hypot(eye.x, eye.y)) });
    const paint = () => scene(canvas.getContext("2d"), data.length ? data : figure.data, figure.layout.scene, view, { W, H, sharp, look, dark });
    let last = null;
    canvas.addEventListener("pointerdown", e => { last = [e.clientX, e.clientY]; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointermove", e => {
      if (!last) return;
      view.turn -= (e.clientX - last[0]) * 0.01; view.lift = Math.max(-1.5, Math.min(1.5, view.lift + (e.clientY - last[1]) * 0.01));
      last = [e.clientX, e.clientY]; paint();
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { last = null; });
    paint();
  }
  function scene(c, data, settings, view, { W, H, sharp, look, dark }) {
    const all = [[], [], []];
    for (const t of data) ["x", "y", "z"].forEach((k, i) => { const v = t.type === "surface" ? t[k].flat() : t[k]; for (const q of v) if (isNumber(q)) all[i].push(q); });
    const low = all.map(v => v.reduce((a, b) => Math.min(a, b), Infinity)), high = all.map(v => v.reduce((a, b) => Math.max(a, b), -Infinity));
    const middle = low.map((v, i) => (v + high[i]) / 2), size = Math.max(...low.map((v, i) => high[i] - v)) || 1;
    const [ct, st, cl, sl] = [Math.cos(view.turn), Math.sin(view.turn), Math.cos(view.lift), Math.sin(view.lift)];
    const turned = q => { const [x, y, z] = q.map((v, i) => (v - middle[i]) / size), along = ct * x + st * y; return [ct * y - st * x, cl * z - sl * along, cl * along + sl * z]; };
    const corners = [0, 1, 2, 3, 4, 5, 6, 7].map(k => turned([0, 1, 2].map(i => (k >> i) & 1 ? high[i] : low[i])));
    const reach = k => Math.max(...corners.map(q => Math.abs(q[k]))) || 0.5;
    const zoom = Math.min((W - 90) / (2 * reach(0)), (H - 56) / (2 * reach(1)));
    const screen = q => { const [a, b, d] = turned(q); return [W / 2 + a * zoom, H / 2 - b * zoom, d]; };
    c.setTransform(sharp, 0, 0, sharp, 0, 0); c.clearRect(0, 0, W, H);
    floor(c, low, high, screen, settings, look);
    const pieces = [];
    data.forEach((t, i) => (t.type === "surface" ? skin : t.type === "scatter3d" ? strand : unknown)(pieces, t, screen, hue(colourOf(t, i), dark), look));
    pieces.sort((a, b) => a.depth - b.depth).forEach(piece => piece.paint(c));
    const valued = data.map(t => (t.line && Array.isArray(t.line.color) && t.line) || (t.marker && Array.isArray(t.marker.color) && t.marker)).find(Boolean);
    if (valued) legendBar(c, valued, W, H, look);
  }
  const unknown = (_, t) => { throw new Error(`figure: unknown kind of trace ${t.type}`); };
  function floor(c, low, high, screen, settings, look) {
    const line = (a, b) => { const p = screen(a), q = screen(b); c.beginPath(); c.moveTo(p[0], p[1]); c.lineTo(q[0], q[1]); c.stroke(); };
    c.strokeStyle = look.grid; c.fillStyle = look.faint; c.font = "11px system-ui, sans-serif"; c.lineWidth = 1;
    const span = Math.max(...low.map((v, i) => high[i] - v)) || 1, step = niceStep(span, 5);
    const marks = i => { const out = []; for (let k = Math.ceil(low[i] / step - 1e-9); k * step <= high[i] + 1e-9 * span; k++) out.push(k * step); return out; };
    const label = i => (settings[`${"xyz"[i]}axis`] && settings[`${"xyz"[i]}axis`].title && settings[`${"xyz"[i]}axis`].title.text) || "xyz"[i];
    for (const x of marks(0)) line([x, low[1], low[2]], [x, high[1], low[2]]);
    for (const y of marks(1)) line([low[0], y, low[2]], [high[0], y, low[2]]);
    c.strokeStyle = look.zero;
    line([low[0], low[1], low[2]], [high[0], low[1], low[2]]); line([low[0], high[1], low[2]], [high[0], high[1], low[2]]);
    line([low[0], low[1], low[2]], [low[0], high[1], low[2]]); line([high[0], low[1], low[2]], [high[0], high[1], low[2]]);
    // Labels stand on the two edges of the floor that are nearest, heights on its outermost corner.
    const far = [0, 1, 2, 3].map(k => [k & 1 ? high[0] : low[0], k >> 1 ? high[1] : low[1], low[2]]);
    const near = far.reduce((a, b) => screen(a)[2] > screen(b)[2] ? a : b), side = far.reduce((a, b) => screen(a)[0] < screen(b)[0] ? a : b);
    c.textAlign = "center"; c.textBaseline = "top";
    const put = (q, text, dx, dy) => { const [x, y] = screen(q); c.fillText(text, x + dx, y + dy); };
    const apart = (a, b) => Math.abs(screen(a)[0] - screen(b)[0]); // how much room labels have
    const across = apart([low[0], near[1], low[2]], [high[0], near[1], low[2]]), along = apart([near[0], low[1], low[2]], [near[0], high[1], low[2]]);
    if (across > 24 * marks(0).length) for (const x of marks(0)) put([x, near[1], low[2]], shown(x, step), 0, 5);
    if (along > 24 * marks(1).length) for (const y of marks(1)) put([near[0], y, low[2]], shown(y, step), 0, 5);
    c.fillStyle = look.fg;
    if (across > 44) put([(low[0] + high[0]) / 2, near[1], low[2]], label(0), 0, 20);
    if (along > 44) put([near[0], (low[1] + high[1]) / 2, low[2]], label(1), 0, 20);
    line([side[0], side[1], low[2]], [side[0], side[1], high[2]]);
    c.textAlign = "right"; c.textBaseline = "middle"; c.fillStyle = look.faint;
    for (const z of marks(2)) put([side[0], side[1], z], shown(z, step), -5, 0);
    c.fillStyle = look.fg; put([side[0], side[1], high[2]], label(2), -5, -14);
  }
  function skin(pieces, t, screen, colour, look) {
    const base = rgb(colour), n = t.z.length, m = t.z[0].length;
    for (let i = 0; i + 1 < n; i++) for (let j = 0; j + 1 < m; j++) {
      const q = [[i, j], [i, j + 1], [i + 1, j + 1], [i + 1, j]].map(([a, b]) => screen([t.x[a][b], t.y[a][b], t.z[a][b]]));
      const u = [0, 1, 2].map(k => q[2][k] / (k < 2 ? 300 : 1) - q[0][k] / (k < 2 ? 300 : 1)), v = [0, 1, 2].map(k => q[3][k] / (k < 2 ? 300 : 1) - q[1][k] / (k < 2 ? 300 : 1));
      const normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]], length = Math.hypot(...normal) || 1;
      const light = 0.55 + 0.45 * Math.abs(0.3 * normal[0] - 0.6 * normal[1] + 0.74 * normal[2]) / length;
      const fill = `rgba(${base.map(k => Math.round(Math.min(255, k * light + 40 * (light - 0.55)))).join(",")},${t.opacity || 1})`;
      pieces.push({ depth: (q[0][2] + q[1][2] + q[2][2] + q[3][2]) / 4, paint: c => { c.fillStyle = fill; c.beginPath(); q.forEach((s, k) => k ? c.lineTo(s[0], s[1]) : c.moveTo(s[0], s[1])); c.closePath(); c.fill(); } });
    }
  }
  function strand(pieces, t, screen, colour, look) {
    const q = t.x.map((x, i) => screen([x, t.y[i], t.z[i]])), mode = t.mode || "lines";
    const tint = (s, i) => Array.isArray(s && s.color) ? scaled(s.colorscale, (s.color[i] - lowest(s)) / ((highest(s) - lowest(s)) || 1)) : colour;
    if (mode.includes("lines")) for (let i = 0; i + 1 < q.length; i++) pieces.push({ depth: (q[i][2] + q[i + 1][2]) / 2, paint: c => { c.strokeStyle = tint(t.line, i); c.lineWidth = (t.line && t.line.width) || 2; c.lineCap = "round"; c.beginPath(); c.moveTo(q[i][0], q[i][1]); c.lineTo(q[i + 1][0], q[i + 1][1]); c.stroke(); } });
    if (mode.includes("markers")) q.forEach((s, i) => pieces.push({ depth: s[2], paint: c => { c.fillStyle = tint(t.marker, i); c.beginPath(); c.arc(s[0], s[1], ((t.marker && t.marker.size) || 4) * 0.6, 0, 7); c.fill(); } }));
    if (mode.includes("text")) q.forEach((s, i) => pieces.push({ depth: 9, paint: c => { c.fillStyle = look.fg; c.font = "11px system-ui, sans-serif"; c.textAlign = "left"; c.textBaseline = "bottom"; c.fillText(t.text[i], s[0] + 4, s[1] - 3); } }));
  }
  const lowest = s => s.cmin === undefined ? s.color.reduce((a, b) => Math.min(a, b)) : s.cmin, highest = s => s.cmax === undefined ? s.color.reduce((a, b) => Math.max(a, b)) : s.cmax;
  function legendBar(c, s, W, H, look) {
    const h = H * 0.5, top = H * 0.25, x = W - 52;
    for (let i = 0; i < 60; i++) { c.fillStyle = scaled(s.colorscale, 1 - i / 59); c.fillRect(x, top + h * i / 60, 10, h / 60 + 1); }
    c.fillStyle = look.faint; c.font = "11px system-ui, sans-serif"; c.textAlign = "left"; c.textBaseline = "middle";
    c.fillText(brief(highest(s)), x + 14, top + 4); c.fillText(brief(lowest(s)), x + 14, top + h - 4);
    const title = s.colorbar && s.colorbar.title && s.colorbar.title.text;
    if (title) { c.textAlign = "right"; c.fillText(title, W - 6, top - 12); }
  }

  // ---- a figure ----------------------------------------------------------------------------------------------------------
  function legend(node, figure, dark) {
    const layout = figure.layout, seen = new Set(), entries = [];
    figure.data.forEach((t, i) => {
      const key = t.legendgroup || t.name;
      if (t.showlegend === false || !t.name || seen.has(key)) return;
      seen.add(key); entries.push([key, t, colourOf(t, i)]);
    });
    const title = layout.title && layout.title.text, wanted = layout.showlegend !== false && (entries.length > 1 || layout.showlegend === true);
    if (!title && !wanted) return null;
    const head = html("div", "plot-head", node);
    if (title) html("b", "", head, title);
    if (wanted) for (const [key, t, colour] of entries) {
      const button = html("button", "key", head);
      button.type = "button";
      if (node.hidden && node.hidden.has(key)) button.classList.add("off");
      const icon = make("svg", { width: 22, height: 10 }, button), ink = hue(colour, dark);
      if (t.type === "scatter" && (t.mode || "lines").includes("lines") && t.fill !== "toself") make("line", { x1: 1, x2: 21, y1: 5, y2: 5, stroke: ink, "stroke-width": 2.4, "stroke-dasharray": DASH[(t.line && t.line.dash) || "solid"] }, icon);
      else if (t.type === "scatter" && t.fill !== "toself") make("path", { d: mark((t.marker && t.marker.symbol) || "circle", 11, 5, 4), fill: ink, stroke: ink }, icon);
      else make("rect", { x: 5, y: 0, width: 12, height: 10, fill: t.fill === "toself" ? t.fillcolor : t.colorscale ? hue(t.colorscale[0][1], dark) : ink }, icon);
      html("span", "", button, t.name);
      button.addEventListener("click", () => { node.hidden = node.hidden || new Set(); node.hidden.has(key) ? node.hidden.delete(key) : node.hidden.add(key); draw(node, figure, dark); });
    }
    return head;
  }
  function draw(node, figure, dark) {
    node.tip = null; node.replaceChildren();
    const wanted = parseFloat(node.dataset.height), head = legend(node, figure, dark);
    const H = Math.max(wanted - (head ? head.offsetHeight : 0), Math.round(0.72 * wanted));
    (figure.layout.scene ? solid : flat)(node, figure, H, dark);
    node.classList.add("done");
  }
  return { draw };
})();
