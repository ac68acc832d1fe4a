import { describe, expect, test } from 'vitest';
import { readPlan } from '../plan.ts';
import { ROW_NAMES } from '../rows/row.ts';
import { noExtra, sampleFigures, sampleRow, sampleSessions } from '../sample-figures.ts';
import { renderChart } from './chart.ts';

const plan = readPlan([]);

/** Returns the names of the elements in order. Throws when the text is not well-formed XML. */
function elementsOf(xml: string): string[] {
  const open: string[] = [];
  const seen: string[] = [];
  const element = /<(\/?)([a-z]+)((?:\s+[a-zA-Z\d:-]+="[^"<>&]*")*)\s*(\/?)>|([^<]+)/gy;
  while (element.lastIndex < xml.length) {
    const from = element.lastIndex;
    const found = element.exec(xml);
    if (!found) throw new Error(`not XML: ${xml.slice(from, from + 80)}`);
    const [, closing, name, , empty, text] = found;
    if (text !== undefined) {
      if (/&(?!(amp|lt|gt|quot);)/.test(text) || text.includes('>')) throw new Error(`not XML: ${text}`);
    } else if (closing) {
      if (open.pop() !== name) throw new Error(`closes ${name} at ${from}`);
    } else {
      seen.push(name!);
      if (!empty) open.push(name!);
    }
  }
  if (open.length > 0) throw new Error(`left open: ${open.join(', ')}`);
  return seen;
}

describe('the chart', () => {
  test('is well-formed, has a title and a description, and names every row', () => {
    const svg = renderChart(sampleFigures(), plan, '2026-11-23, <dirty> & "quoted"');
    expect(elementsOf(svg).slice(0, 3)).toEqual(['svg', 'title', 'desc']);
    expect(svg).toContain('role="img" aria-labelledby="title desc"');
    for (const name of ROW_NAMES) expect(svg.split(`>${name}</text>`).length).toBe(4); // in each of three panels
    expect(svg).toContain('shellfleet: 13 ms for one command, 125 commands per second in 16 sessions');
  });

  test('leaves a row out of a panel when its figure is unknown', () => {
    const attached = { ...sampleRow(0.5, 5_000, 0, 0), few: undefined, many: undefined };
    const rows = { 'docker-attach': attached, shellfleet: sampleRow(1, 3_000, 50, 60) };
    const svg = renderChart({ rows, sessions: sampleSessions(), extra: noExtra }, plan, 'today');
    elementsOf(svg);
    expect(svg.split('>docker-attach</text>').length).toBe(2);
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  });
});
