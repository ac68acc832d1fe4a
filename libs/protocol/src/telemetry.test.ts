import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ATTRIBUTES, SPANS } from './telemetry.ts';

describe('the names of telemetry', () => {
  test('are listed in docs/telemetry.md, every attribute and span and no other', () => {
    const document = readFileSync(new URL('../../../docs/telemetry.md', import.meta.url), 'utf8');
    const rows = document.split('\n').filter((line) => line.startsWith('| `'));
    const listed = rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name));
    expect(listed.sort()).toEqual([...Object.values(ATTRIBUTES), ...Object.values(SPANS)].sort());
  });
});
