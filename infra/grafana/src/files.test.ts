import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { METRICS } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { ALERTS } from './alerts.ts';
import { writeFiles } from './files.ts';
import { ROWS } from './panels.ts';

const panels = ROWS.flatMap((row) => row.panels);
const expressions = [
  ...panels.flatMap(({ queries }) => queries.map(({ expr }) => expr)),
  ...ALERTS.map(({ value }) => value),
];

describe('the dashboard and the alert rules', () => {
  test.each(writeFiles().map(({ path, text }) => [basename(path), path, text]))(
    'are committed in %s as the program writes them',
    (_name, path, text) => {
      expect(readFileSync(path, 'utf8')).toBe(text);
    },
  );

  test('use every metric but that about versions, and none that does not exist', () => {
    const used = expressions.flatMap((expr) => expr.match(/shellfleet_\w+/g) ?? []);
    const names = new Set(used.map((name) => name.replace(/_(?:bucket|count|sum)$/, '')));
    expect([...names].sort()).toEqual(
      Object.keys(METRICS)
        .filter((name) => name !== 'shellfleet_worker_info')
        .sort(),
    );
  });

  test('have a title of their own each', () => {
    const titles = [...panels.map(({ title }) => title), ...ALERTS.map(({ name }) => name)];
    expect(new Set(titles).size).toBe(titles.length);
  });
});
