import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { LOG_FIELDS } from './log-fields.ts';
import { METRICS } from './metrics.ts';
import { ATTRIBUTES, SPANS, WAIT_SPANS } from './telemetry.ts';

const page = readFileSync(new URL('../../../docs/telemetry.md', import.meta.url), 'utf8');
const [before = '', metrics = ''] = page.split('## Metrics');
const names = before.slice(before.indexOf('## Spans'));
const fields = page.split('## Log fields')[1]?.split('## Log events')[0] ?? '';
const rowsOf = (text: string, start: string) => text.split('\n').filter((line) => line.startsWith(start));

describe('the names of telemetry', () => {
  test('are listed in docs/telemetry.md, every attribute and span and no other', () => {
    const listed = rowsOf(names, '| `').flatMap((row) =>
      [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name),
    );
    const wanted = [ATTRIBUTES, SPANS, WAIT_SPANS].flatMap((each): string[] => Object.values(each));
    expect(listed.sort()).toEqual([...new Set(wanted)].sort());
  });

  test('are listed there for every metric and no other, with type, labels and meaning', () => {
    const wanted = Object.entries(METRICS).map(([name, { type, labels, help }]) => {
      const ofLabels = labels.map((label) => `\`${label}\``).join(', ');
      return `| \`${name}\` | ${type} |${ofLabels === '' ? '' : ` ${ofLabels}`} | ${help} |`;
    });
    expect(rowsOf(metrics, '| `shellfleet_')).toEqual(wanted);
  });

  test('are listed there for every field of a log line, with its meaning', () => {
    const wanted = Object.entries(LOG_FIELDS).map(([name, meaning]) => `| \`${name}\` | ${meaning} |`);
    expect(rowsOf(fields, '| `')).toEqual(wanted);
  });
});
