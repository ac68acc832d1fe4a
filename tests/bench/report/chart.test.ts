import { describe, expect, test } from 'vitest';
import { readPlan } from '../plan.ts';
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
  test('is well-formed, with a title, a description, and a bar for each way', () => {
    const svg = renderChart(sampleFigures(), plan, '2026-11-23, <dirty> & "quoted"');
    expect(elementsOf(svg).slice(0, 3)).toEqual(['svg', 'title', 'desc']);
    expect(svg).toContain('role="img" aria-labelledby="title desc"');
    expect(svg).toContain('<title id="title">Commands per second in 16 sessions</title>');
    expect(svg).toContain('Shellfleet: 125; its queue alone, no shell: 4,000;');
    expect(svg.split('rx="3"').length - 1).toBe(4);
  });

  test('leaves out a way that was not measured', () => {
    const attached = { ...sampleRow(0.5, 5_000, 0, 0), few: undefined, many: undefined };
    const rows = { 'docker-attach': attached, shellfleet: sampleRow(1, 3_000, 50, 60) };
    const svg = renderChart({ rows, sessions: sampleSessions(), extra: noExtra }, plan, 'today');
    elementsOf(svg);
    expect(svg).toContain('3,000');
    expect(svg).not.toMatch(/bare shell|NaN|Infinity|undefined/);
  });
});
