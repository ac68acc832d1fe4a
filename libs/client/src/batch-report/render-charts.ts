import type { Distribution } from './distribution.ts';
import { formatCount, formatMs, formatShare } from './format.ts';
import { type Html, html } from './html.ts';
import type { PassAtK } from './pass-at-k.ts';

// Charts are SVG with few elements. What is stretched to the width of the page is in an inner SVG, without texts.

/** Returns a histogram. `format` writes the value of an edge. */
export function histogram(name: string, distribution: Distribution, format: (value: number) => string): Html {
  const { bins, median, p99 } = distribution;
  const highest = Math.max(...bins.map(({ count }) => count));
  const bars = bins.map(({ from, to, count }, index) => {
    // A bin with one task among thousands must be seen.
    const height = count === 0 ? 0 : Math.max(1.5, (100 * count) / highest);
    return html`<rect x="${index + 0.04}" y="${fixed(100 - height)}" width="0.92" height="${fixed(height)}"><title>${format(from)} to ${format(to)}: ${tasks(count)}</title></rect>`;
  });
  const label = `${name}: median ${format(median)}, 99 % within ${format(p99)}`;
  return html`<svg class="histogram" role="img" aria-label="${label}"><svg class="bars" height="120" viewBox="0 0 ${bins.length} 100" preserveAspectRatio="none">${bars}</svg><line x1="0" x2="100%" y1="120" y2="120"/><text x="0" y="-5">${tasks(highest)}</text>${edgeLabels(distribution, format)}</svg>`;
}

/** Returns the edges at the begin, in the middle and at the end. */
function edgeLabels({ bins }: Distribution, format: (value: number) => string): Html[] {
  const edges = [bins[0]?.from ?? 0, ...bins.map(({ to }) => to)];
  const places = edges.length < 6 ? [0, edges.length - 1] : [0, Math.round((edges.length - 1) / 2), edges.length - 1];
  return places.map((place) => {
    const anchor = place === 0 ? 'start' : place === edges.length - 1 ? 'end' : 'middle';
    const x = fixed((100 * place) / (edges.length - 1));
    return html`<text x="${x}%" y="137" text-anchor="${anchor}">${format(edges[place] ?? 0)}</text>`;
  });
}

/** Returns one bar with parts of different kinds, and its legend. Parts of 0 are in the legend alone. */
export function stackedBar(
  name: string,
  parts: readonly { kind: string; name: string; value: number; text: string }[],
): Html {
  const total = parts.reduce((sum, { value }) => sum + value, 0);
  let at = 0;
  const bars = parts.map(({ kind, name: part, value, text }) => {
    const width = total === 0 ? 0 : (100 * value) / total;
    const bar = html`<rect class="${kind}" x="${fixed(at)}%" y="0" width="${fixed(width)}%" height="100%"><title>${part}: ${text}</title></rect>`;
    at += width;
    return bar;
  });
  const legend = parts.map(
    ({ kind, name: part, value, text }) =>
      html`<li><span class="key ${kind}" aria-hidden="true"></span>${part} <b>${text}</b> <span class="muted">${formatShare(total === 0 ? 0 : value / total)}</span></li>`,
  );
  const label = parts.map(({ name: part, text }) => `${part} ${text}`).join(', ');
  return html`<figure class="stacked"><svg class="stack" role="img" aria-label="${name}: ${label}">${bars}</svg><ul class="legend">${legend}</ul></figure>`;
}

/** Returns a curve of pass@k, with the estimates written at its points. */
export function passAtKCurve(points: readonly PassAtK[]): Html {
  const placed = points.map(({ k, estimate }, index) => ({
    ...{ k, estimate, y: fixed(100 - 100 * estimate) },
    x: fixed(points.length === 1 ? 50 : (100 * index) / (points.length - 1)),
  }));
  const grid = [0, 25, 50, 75, 100].map(
    (share) =>
      html`<line x1="0" x2="100%" y1="${100 - share}%" y2="${100 - share}%"/><text x="-8" y="${100 - share}%" dy="4" text-anchor="end">${share} %</text>`,
  );
  const dots = placed.map(
    ({ k, x, y, estimate }) =>
      html`<circle cx="${x}%" cy="${y}%" r="4"><title>pass@${k}: ${formatShare(estimate)}</title></circle><text x="${x}%" y="100%" dy="20" text-anchor="middle">${k}</text>`,
  );
  const label = points.map(({ k, estimate }) => `pass@${k} ${formatShare(estimate)}`).join(', ');
  return html`<div class="curve"><svg role="img" aria-label="${label}">${grid}<svg viewBox="0 0 100 100" preserveAspectRatio="none"><polyline points="${placed.map(({ x, y }) => `${x},${y}`).join(' ')}"/></svg>${dots}</svg></div>`;
}

/** Returns the ticks of an axis of time with the length, at a round distance. */
export function timeTicks(lengthMs: number): { ms: number; x: string }[] {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400];
  const all = [...[1, 2, 5, 10, 20, 50, 100, 200, 500], ...steps.map((seconds) => seconds * 1_000)];
  const step = all.find((ms) => lengthMs / ms <= 6) ?? Math.ceil(lengthMs / 6 / 86_400_000) * 86_400_000;
  const count = Math.floor(lengthMs / step);
  return Array.from({ length: count + 1 }, (_, index) => ({
    ms: index * step,
    x: fixed((100 * index * step) / lengthMs),
  }));
}

/** Formats a number of tasks. */
export const tasks = (count: number) => `${formatCount(count)} ${count === 1 ? 'task' : 'tasks'}`;

/** Returns a name with its value, for lists of numbers. */
export const numberOf = (name: string, value: string | Html) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`;

/** Returns the quantiles of a distribution as a list. */
export const quantilesOf = (
  { least, median, p90, p99, most, mean }: Distribution,
  format: (value: number) => string = formatMs,
) =>
  html`<dl class="quantiles">${[
    numberOf('least', format(least)),
    numberOf('median', format(median)),
    numberOf('mean', format(mean)),
    numberOf('90 %', format(p90)),
    numberOf('99 %', format(p99)),
    numberOf('most', format(most)),
  ]}</dl>`;

/** Writes a number for SVG, with two digits at most. */
export const fixed = (value: number) => String(Math.round(value * 100) / 100);
