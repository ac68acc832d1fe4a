// Colours are light-dark(): a page follows the reader's system, and is printed light. Texts have a contrast of 4.5 and
// more with both grounds. The colours of ends also differ in lightness, and each has its name beside it.

export const PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#f6f7f9, #14171c);
  --panel: light-dark(#ffffff, #1c2027);
  --text: light-dark(#1b2027, #e4e7ec);
  --muted: light-dark(#59616d, #9da6b3);
  --line: light-dark(#dde1e7, #333a45);
  --link: light-dark(#0b5cad, #7db7ff);
  --passed: light-dark(#2a9d78, #37b58c);
  --failed: light-dark(#c8324a, #ef5b70);
  --infrastructure: light-dark(#e0a12b, #d99a24);
  --cancelled: light-dark(#8d95a3, #737c8b);
  --queue: light-dark(#b9a6e3, #7a63b8);
  --run: light-dark(#3f7fd1, #4b8be0);
  --rest: light-dark(#b4bcc8, #596273);
  --good: light-dark(#117153, #4fcda4);
  --bad: light-dark(#b3213a, #ff8696);
}
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
body {
  margin: 0 auto; max-width: 84rem; padding: 0 1.25rem 4rem;
  background: var(--ground); color: var(--text);
  font: .94rem/1.5 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums;
}
h1 { font-size: 1.6rem; margin: 1.5rem 0 0; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 0 0 .5rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .5rem; }
p { margin: .25rem 0 .75rem; max-width: 95ch; }
a { color: var(--link); }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
code, pre { font: .82rem/1.45 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { overflow-wrap: anywhere; }
pre {
  margin: .25rem 0 .75rem; padding: .6rem .8rem; max-height: 24rem; overflow: auto;
  background: var(--ground); border: 1px solid var(--line); border-radius: 6px;
  white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate;
}
figure { margin: 0; }
dl, dd { margin: 0; }
.muted { color: var(--muted); }
.good { color: var(--good); }
.bad { color: var(--bad); }
.note { border-left: 3px solid var(--infrastructure); padding-left: .75rem; }
.unseen { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; list-style: none; margin: .75rem 0 1rem; padding: 0; }
section {
  background: var(--panel); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.1rem 1.25rem 1.25rem; margin: 0 0 1.25rem;
}
.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: .9rem 1.25rem; margin-bottom: 1.25rem; }
.tiles dt { color: var(--muted); font-size: .87rem; }
.tiles dd { font-size: 1.3rem; font-weight: 600; line-height: 1.3; }
.tiles .muted { font-size: 1rem; font-weight: 400; }
svg { display: block; overflow: visible; }
svg text { fill: var(--muted); font-size: 12px; }
svg line { stroke: var(--line); }
.stack { width: 100%; height: 18px; overflow: hidden; border-radius: 5px; background: var(--line); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; list-style: none; margin: .5rem 0 .75rem; padding: 0; }
.key { display: inline-block; width: .75em; height: .75em; border-radius: 3px; margin-right: .35em; }
.passed { --kind: var(--passed); }
.failed { --kind: var(--failed); }
.infrastructure { --kind: var(--infrastructure); }
.cancelled { --kind: var(--cancelled); }
.queue { --kind: var(--queue); }
.run { --kind: var(--run); }
.rest { --kind: var(--rest); }
rect, path { fill: var(--kind, var(--run)); }
.key { background: var(--kind); }
.causes { list-style: none; margin: 0; padding: 0; }
.causes > li { border-top: 1px solid var(--line); padding: .5rem 0; }
summary { display: flex; gap: .75rem; align-items: baseline; cursor: pointer; }
summary::before { content: "▸"; color: var(--muted); }
[open] > summary::before { content: "▾"; }
.what { overflow-wrap: anywhere; min-width: 0; }
.count { min-width: 3.2rem; text-align: right; font-weight: 600; border-right: 4px solid var(--kind); padding-right: .5rem; flex: none; }
details > :not(summary) { margin-left: 1.6rem; }
figcaption { font-weight: 600; }
:is(figcaption, caption) .muted { font-weight: 400; }
.pair { display: grid; grid-template-columns: minmax(0, 3fr) minmax(12rem, 1fr); gap: 2rem; align-items: start; }
.curve { padding: .75rem 1rem 1.75rem 3.2rem; }
.curve > svg { width: 100%; height: 200px; }
.curve svg svg { width: 100%; height: 100%; }
polyline { fill: none; stroke: var(--run); stroke-width: 2.5; vector-effect: non-scaling-stroke; }
circle { fill: var(--run); stroke: var(--panel); stroke-width: 2; }
.measures { display: grid; grid-template-columns: repeat(auto-fill, minmax(19rem, 1fr)); gap: 1.75rem 2.25rem; }
.histogram { width: 100%; height: 142px; margin: 1.2rem 0 .5rem; }
.histogram .bars { width: 100%; }
.quantiles { display: grid; grid-template-columns: repeat(3, 1fr); gap: .35rem .9rem; font-size: .87rem; }
.quantiles dd { white-space: nowrap; }
.quantiles dt { color: var(--muted); }
.host { position: relative; }
.host h3 { margin: .9rem 0 0; overflow-wrap: anywhere; }
.host p { margin: 0 0 .35rem; font-size: .87rem; }
.strip, .axis { width: 100%; }
.strip { background: var(--ground); border-radius: 4px; overflow: hidden; }
.strip[data-found] { cursor: pointer; }
.axis { margin-top: .25rem; overflow: visible; }
.hint {
  position: absolute; z-index: 1; pointer-events: none; max-width: min(24rem, 90%); padding: .3rem .6rem;
  background: var(--text); color: var(--panel); border-radius: 5px; font-size: .87rem; overflow-wrap: anywhere;
}
.changes { display: grid; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); gap: 1.25rem 2rem; align-items: start; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; font-weight: 400; }
th { color: var(--muted); }
.small th:first-child, .small td:first-child { text-align: left; overflow-wrap: anywhere; padding-left: 0; }
.controls { display: flex; flex-wrap: wrap; gap: .6rem 1rem; align-items: end; }
.controls label { display: grid; color: var(--muted); font-size: .87rem; }
input, select, button {
  font: inherit; color: var(--text); background: var(--panel); border: 1px solid var(--muted); border-radius: 6px;
  padding: .3rem .6rem; max-width: 22rem; min-height: 2.2rem;
}
button { cursor: pointer; }
button:disabled { color: var(--muted); border-color: var(--line); cursor: default; }
::placeholder { color: var(--muted); opacity: 1; }
.pager { display: flex; flex-wrap: wrap; gap: .75rem; align-items: center; margin: .9rem 0 .5rem; }
.scroll { overflow-x: auto; }
.tasks th { padding: 0; white-space: nowrap; position: relative; }
.tasks th button { border: 0; background: none; color: var(--muted); padding: .3rem .6rem; width: 100%; text-align: inherit; }
.tasks th[aria-sort] button { color: var(--text); font-weight: 600; }
.tasks th[aria-sort="ascending"] button::after { content: " ▴"; }
.tasks th[aria-sort="descending"] button::after { content: " ▾"; }
.tasks td { white-space: nowrap; }
.tasks :is(th, td):is(:nth-child(1), :nth-child(2), :nth-child(3)) { text-align: left; }
.tasks td:first-child { white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }
.tasks td button { border: 0; background: none; padding: 0; min-height: 0; color: var(--link); text-align: left; text-decoration: underline; }
.tasks .end { border-left: 4px solid var(--kind); padding-left: .5rem; }
.tasks .more td { white-space: normal; padding-left: 1.4rem; }
.about { display: grid; grid-template-columns: minmax(8rem, max-content) minmax(0, 1fr); gap: .3rem 1.25rem; overflow-wrap: anywhere; }
.about dt { color: var(--muted); }
@media (max-width: 40rem) {
  body { padding: 0 .6rem 3rem; }
  section { padding: .9rem .8rem 1rem; border-radius: 8px; }
  .pair { grid-template-columns: minmax(0, 1fr); gap: .75rem; }
  .tiles { grid-template-columns: repeat(auto-fill, minmax(7.5rem, 1fr)); }
  .about { grid-template-columns: minmax(0, 1fr); }
  .about dd { margin-bottom: .5rem; }
  details > :not(summary) { margin-left: 0; }
  .controls label, .controls select, .controls input { width: 100%; max-width: none; }
  .controls label { flex: 1 1 40%; }
}
@media (prefers-reduced-motion: reduce) { html { scroll-behavior: auto; } }
@media print {
  :root { color-scheme: light; }
  html { font-size: 11.5px; }
  body { background: none; max-width: none; padding: 0; }
  section { background: none; border: 0; padding: 0; margin-bottom: 1.5rem; }
  nav, .controls, .pager button { display: none; }
  .causes > li, figure, .host, tr { break-inside: avoid; }
  .scroll { overflow: visible; }
  pre { max-height: none; }
  * { print-color-adjust: exact; }
}
`;
